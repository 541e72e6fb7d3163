"""The leader of a lease group, seen from outside: messages in, sets and commits out."""

from hypothesis import given, settings
from hypothesis import strategies as st

from dss_core.progress import Progress
from dssd.machines.leader.events import (
    PresentStream,
    Received,
    SessionClosed,
    SetVersion,
    StoredStream,
    StreamsChanged,
)
from dssd.machines.leader.lent_stream import HELD, StreamState
from dssd.machines.leader.state import Leader
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.machines.messages import (
    Disconnect,
    GrantedStream,
    Invalidate,
    LeaderConnectResponse,
    LeaderWanted,
    LeaseStreams,
    ProgressSaved,
    RenewStreamLease,
    Revoked,
    RevokeFinished,
    StreamReport,
    Taken,
    TakenState,
    ToBorrower,
    UpdateStreams,
    UpdateStreamStates,
)
from support.played_leader import LEADER, LeaderRun, fresh, of_kind, session_of, stream
from support.proof_share import share

ANN, BOB = b"ann", b"bob"


def held_before(at: int, holder: bytes) -> StoredStream:
    return StoredStream(stream(at), Progress(10), 10, 100, None, 3, session_of(holder), holder)


def granted(at: int, epoch: int = 1, *, suspect_end: int = 10) -> GrantedStream:
    return GrantedStream(stream(at), epoch, Progress(10), 10, (), suspect_end)


def report(at: int, epoch: int = 1, floor: int = 10) -> StreamReport:
    return StreamReport(stream(at), epoch, Progress(floor), floor, sent=floor)


def taken(at: int, epoch: int = 1, floor: int = 10, *, final: bool = False) -> TakenState:
    return TakenState(report(at, epoch, floor), final)


def states(
    name: bytes,
    version: int,
    *reports: StreamReport,
    over: tuple[TakenState, ...] = (),
    sent_ms: int = 1,
    asks: bool = True,
) -> UpdateStreamStates:
    return UpdateStreamStates(name, LEADER, sent_ms, version, reports, None, over, asks)


class Run(LeaderRun):
    """A leader of a lease group."""

    def __init__(
        self, *stored: StoredStream, versions: tuple[SetVersion, ...] = (), restarted: bool = False
    ) -> None:
        leader = Leader(LEADER, stream_sets=StreamSets())
        super().__init__(leader, *stored, restarted=restarted, versions=versions)

    def ask(self, name: bytes) -> list[ToBorrower]:
        return self.tell(wanted(name))

    def join(self, name: bytes) -> list[ToBorrower]:
        """A member joins, and what it is told is made durable and said."""
        self.ask(name)
        self.pass_ms(200)
        return self.commit_all()

    def state(self, at: int) -> StreamState:
        return self.leader.streams[stream(at)].state


def wanted(
    name: bytes, *held: StreamReport, version: int = 0, epoch: int = 0, sent_ms: int = 1
) -> LeaderWanted:
    return LeaderWanted(name, epoch, session_of(name), name.decode(), held, version, sent_ms)


def two_members() -> Run:
    """Ann shows version 1 with both streams; Bob joins, so one of hers is taken over."""
    run = Run(fresh(0), fresh(1))
    run.join(ANN)
    run.tell(states(ANN, 1, report(0), report(1)))
    run.commit_all()
    run.ask(BOB)
    run.pass_ms(200)
    return run


# Persist before send


def test_the_first_set_leaves_once_its_version_and_its_grant_epochs_are_durable() -> None:
    run = Run(fresh(0), fresh(1))
    assert run.ask(ANN) == []
    assert run.pass_ms(200) == []
    [persist] = run.persists
    assert persist.versions == (SetVersion(session_of(ANN), 1),)
    assert {record.stream for record in persist.records} == {stream(0), stream(1)}
    lease_ms = run.leader.timing.lease_ms
    assert run.commit() == [LeaseStreams(ANN, LEADER, 1, (granted(0), granted(1)), lease_ms, 1)]


def test_a_member_without_streams_gets_an_empty_set() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.tell(states(ANN, 1, report(0)))
    lease_ms = run.leader.timing.lease_ms
    assert LeaseStreams(BOB, LEADER, 1, (), lease_ms, 1) in run.join(BOB)


def test_an_update_leaves_once_its_version_is_durable() -> None:
    run = two_members()
    assert of_kind(run.sent, UpdateStreams) == []
    updates = of_kind(run.commit_all(), UpdateStreams)
    over = (Taken(stream(1), 1, 10_000),)
    assert updates == [UpdateStreams(ANN, LEADER, 1, 2, (granted(0),), over, 1)]


def test_the_versions_of_a_session_go_on_where_an_earlier_leader_left_them() -> None:
    run = Run(fresh(0), versions=(SetVersion(session_of(ANN), 7),))
    [lease] = of_kind(run.join(ANN), LeaseStreams)
    assert isinstance(lease, LeaseStreams)
    assert lease.version == 8


# One set on its way


def test_the_next_version_waits_until_the_one_before_was_shown() -> None:
    run = Run(fresh(0), fresh(1))
    run.join(ANN)
    run.ask(BOB)
    run.pass_ms(200)
    assert of_kind(run.commit_all(), UpdateStreams) == []
    run.tell(states(ANN, 1, report(0), report(1)))
    updates = of_kind(run.commit_all(), UpdateStreams)
    assert [message.borrower_id for message in updates] == [ANN]


def test_a_set_is_sent_again_until_it_is_shown() -> None:
    run = Run(fresh(0))
    [lease] = run.join(ANN)
    assert run.pass_ms(250) == [lease]
    run.tell(states(ANN, 1, report(0)))
    run.commit_all()
    assert run.pass_ms(3_000) == []


def test_a_repeated_request_gets_the_set_again() -> None:
    run = Run(fresh(0))
    [lease] = run.join(ANN)
    assert run.ask(ANN) == [lease]


def test_a_set_that_was_shown_is_confirmed_with_a_renewal() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    answer = run.tell(states(ANN, 1, report(0), sent_ms=30))
    assert RenewStreamLease(ANN, LEADER, 1, 30) in answer
    assert run.state(0) is StreamState.GRANTED


def test_while_a_set_is_on_its_way_it_is_the_answer_to_a_request_for_a_renewal() -> None:
    run = two_members()
    run.commit_all()
    [again] = run.tell(states(ANN, 1, sent_ms=50))
    assert isinstance(again, UpdateStreams)
    assert (again.version_old, again.version, again.heard_ms) == (1, 2, 50)


# Taken-over streams


def test_a_taken_over_stream_is_lent_on_only_once_it_is_fully_acked_and_durable() -> None:
    run = two_members()
    run.commit_all()
    updating = run.tell(states(ANN, 2, over=(taken(1, floor=12),)))
    assert updating == [RenewStreamLease(ANN, LEADER, 2, 1, version_old=1)]
    assert run.state(1) is StreamState.REVOKING
    assert of_kind(run.tell(states(ANN, 2, over=(taken(1, floor=15, final=True),))),
                   LeaseStreams) == []  # fmt: skip
    run.tell(states(BOB, 1))
    sent = run.commit()
    assert RenewStreamLease(ANN, LEADER, 2, 1, None, ((stream(1), 1),)) in sent
    assert run.leader.streams[stream(1)].holder == BOB
    [update] = of_kind(run.commit_all(), UpdateStreams)
    assert isinstance(update, UpdateStreams)
    moved = GrantedStream(stream(1), 2, Progress(15), 15, (), 15)
    assert (update.borrower_id, update.streams) == (BOB, (moved,))


def test_a_stream_is_named_as_accepted_until_the_member_no_longer_names_it() -> None:
    run = two_members()
    run.commit_all()
    final = states(ANN, 2, over=(taken(1, final=True),))
    run.tell(final)
    run.commit_all()
    accepted = RenewStreamLease(ANN, LEADER, 2, 1, None, ((stream(1), 1),))
    assert run.tell(final) == [accepted]
    assert run.tell(states(ANN, 2)) == [RenewStreamLease(ANN, LEADER, 2, 1)]


def test_a_stream_taken_over_from_a_member_that_never_had_it_is_free_on_its_answer() -> None:
    run = two_members()
    run.commit_all()
    run.tell(RevokeFinished(ANN, LEADER, stream(1), 1))
    assert run.leader.streams[stream(1)].holder == BOB


def test_after_the_deadline_a_stream_is_revoked_but_not_lent_on_before_its_holder_answers() -> None:
    run = two_members()
    run.commit_all()
    for _ in range(21):
        run.pass_ms(500)
        run.tell(states(ANN, 2, over=(taken(1),)))
        run.tell(states(BOB, 1))
        run.commit_all()
    assert Revoked(ANN, LEADER, stream(1), 1, Progress(10)) in run.sent
    assert run.leader.streams[stream(1)].holder == ANN
    run.tell(RevokeFinished(ANN, LEADER, stream(1), 1))
    assert run.leader.streams[stream(1)].holder == BOB
    assert run.leader.streams[stream(1)].unmeasured


def test_the_streams_of_a_silent_member_are_free_at_the_end_of_its_lease() -> None:
    run = two_members()
    run.commit_all()
    for _ in range(6):
        run.pass_ms(1_000)
        run.tell(states(BOB, 1))
        run.commit_all()
    assert set(run.leader.members) == {BOB}
    assert {lent.holder for lent in run.leader.streams.values()} == {BOB}


def test_a_stream_that_is_born_while_another_is_taken_over_does_not_wait() -> None:
    run = two_members()
    run.commit_all()
    run.tell(states(ANN, 2, over=(taken(1),)))
    run.tell(states(BOB, 1))
    run.feed(StreamsChanged(run.now_ms, (PresentStream(stream(2), None),)))
    sent = of_kind(run.commit_all(), UpdateStreams)
    assert [
        [each.stream for each in update.streams]
        for update in sent
        if isinstance(update, UpdateStreams)
    ] in ([[stream(0), stream(2)]], [[stream(2)]])


def test_a_finished_stream_leaves_the_set_and_is_accepted() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.tell(states(ANN, 1, report(0)))
    run.feed(StreamsChanged(run.now_ms, (PresentStream(stream(0), 20),)))
    run.tell(states(ANN, 1, report(0, floor=20)))
    [update] = of_kind(run.commit_all(), UpdateStreams)
    assert isinstance(update, UpdateStreams)
    assert (update.streams, [each.stream for each in update.taken_over]) == ((), [stream(0)])
    answer = run.tell(states(ANN, 2, over=(taken(0, floor=20, final=True),)))
    assert run.state(0) is StreamState.FINISHED
    assert RenewStreamLease(ANN, LEADER, 2, 1, None, ((stream(0), 1),)) in answer


# Versions that do not fit


def test_a_version_that_was_never_sent_is_invalid_and_frees_nothing() -> None:
    run = two_members()
    run.commit_all()
    assert Invalidate(ANN, LEADER, "version mismatch") in run.tell(states(ANN, 9))
    assert run.leader.streams[stream(0)].holder == ANN


def test_a_message_of_an_older_version_came_late_and_its_reports_still_count() -> None:
    run = two_members()
    run.commit_all()
    run.tell(states(ANN, 2, over=(taken(1),)))
    run.tell(states(ANN, 1, report(0, floor=30)))
    assert run.leader.streams[stream(0)].progress == Progress(30)


# Leaders


def test_a_new_leader_adopts_a_member_with_its_set_and_its_version() -> None:
    run = Run(held_before(0, ANN), held_before(1, ANN), versions=(SetVersion(session_of(ANN), 7),))
    presented = wanted(ANN, report(0, 3, 20), report(1, 3), version=7, epoch=LEADER, sent_ms=40)
    assert RenewStreamLease(ANN, LEADER, 7, 40) in run.tell(presented)
    assert (run.state(0), run.state(1)) == (StreamState.GRANTED, StreamState.GRANTED)
    run.pass_ms(1_000)
    run.commit_all()
    assert of_kind(run.sent, LeaseStreams) == of_kind(run.sent, UpdateStreams) == []
    run.tell(states(ANN, 7))
    run.ask(BOB)
    run.pass_ms(200)
    [update] = of_kind(run.commit_all(), UpdateStreams)
    assert isinstance(update, UpdateStreams)
    assert (update.version_old, update.version) == (7, 8)


def test_a_set_that_a_member_presents_late_replaces_a_first_one() -> None:
    run = Run(held_before(0, ANN), versions=(SetVersion(session_of(ANN), 7),))
    run.join(ANN)
    presented = wanted(ANN, report(0, 3), version=7, epoch=LEADER, sent_ms=40)
    assert RenewStreamLease(ANN, LEADER, 7, 40) in run.tell(presented)
    assert run.state(0) is StreamState.GRANTED
    run.commit_all()
    assert of_kind(run.sent, Invalidate) == []


def test_a_member_of_the_leader_before_is_asked_to_present_itself() -> None:
    run = Run(fresh(0))
    stale = UpdateStreamStates(ANN, LEADER - 1, 5, 3)
    lease_ms = run.leader.timing.lease_ms
    assert run.tell(stale) == [LeaderConnectResponse(ANN, LEADER, lease_ms)]


# The end


def test_the_counter_of_a_session_without_members_is_deleted() -> None:
    run = two_members()
    run.commit_all()
    assert set(run.versions) == {session_of(ANN), session_of(BOB)}
    run.tell(Disconnect(ANN, LEADER, ()))
    run.pass_ms(50)
    run.commit_all()
    assert set(run.versions) == {session_of(BOB)}


def test_the_counter_stays_for_the_successor_of_a_borrower_that_leaves() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.tell(LeaderWanted(b"ann again", 0, session_of(ANN), "ann", (), 0, 1))
    run.tell(Disconnect(ANN, LEADER, ()))
    run.pass_ms(200)
    run.commit_all()
    assert run.versions == {session_of(ANN): 2}


def test_an_idle_leader_forgets_sessions_that_never_came_back() -> None:
    run = Run(fresh(0), versions=(SetVersion(session_of(ANN), 7),))
    run.versions = {session_of(ANN): 7}
    while not run.stopped:
        run.pass_ms(1_000)
        run.commit_all()
    assert run.versions == {}


def test_a_settled_group_says_nothing_by_itself() -> None:
    run = two_members()
    run.commit_all()
    run.tell(states(ANN, 2, over=(taken(1, final=True),)))
    run.tell(states(BOB, 1))
    run.commit_all()
    run.tell(states(BOB, 2, report(1, 2)))
    run.commit_all()
    assert run.pass_ms(5_000) == []


# Any order

NAMES = st.sampled_from([ANN, BOB])
EPOCHS = st.integers(0, 4)
VERSIONS = st.integers(0, 5)
REPORTS = st.lists(
    st.builds(report, st.integers(0, 3), EPOCHS, st.integers(10, 40)), max_size=3
).map(tuple)
TAKEN = st.lists(
    st.builds(TakenState, st.builds(report, st.integers(0, 3), EPOCHS), st.booleans()), max_size=3
).map(tuple)
LEADERS = st.integers(LEADER - 1, LEADER)
STEPS = st.one_of(
    st.builds(
        lambda name, epoch, held, version: wanted(name, *held, version=version, epoch=epoch),
        NAMES,
        LEADERS,
        REPORTS,
        VERSIONS,
    ),
    st.builds(
        UpdateStreamStates,
        NAMES,
        LEADERS,
        st.just(1),
        VERSIONS,
        REPORTS,
        st.none(),
        TAKEN,
        st.booleans(),
    ),
    st.builds(RevokeFinished, NAMES, LEADERS, st.integers(0, 3).map(stream), EPOCHS),
    st.builds(Disconnect, NAMES, LEADERS, REPORTS),
    NAMES.map(session_of),
    st.sampled_from(["commit", "answer"]),
    st.integers(0, 4_000),
    st.lists(st.integers(0, 3), max_size=1).map(tuple),
)


@settings(max_examples=share(25, 400), deadline=None)
@given(st.lists(STEPS, max_size=50), st.booleans(), st.booleans())
def test_any_inputs_in_any_order_keep_the_books_and_the_versions(
    steps: list[object], restarted: bool, owned: bool
) -> None:
    """S1; and of one session no version is durable twice, none is sent before it is."""
    stored = [held_before(at, ANN) if owned and at < 2 else fresh(at) for at in range(3)]
    run = Run(*stored, restarted=restarted)
    said = 0
    for act in steps:
        perform(run, act)
        held = {at for at, lent in run.leader.streams.items() if lent.state in HELD}
        books = [at for member in run.leader.members.values() for at in member.streams]
        assert sorted(books) == sorted(held)
        assert run.leader.stream_sets is not None
        assert set(run.leader.stream_sets.by_member) == set(run.leader.members)
        said = check_sent(run, said)


def check_sent(run: Run, said: int) -> int:
    for message in run.sent[said:]:
        if isinstance(message, UpdateStreams):
            assert message.version_old < message.version
        if isinstance(message, LeaseStreams | UpdateStreams):
            assert all(each.grant_epoch > 0 for each in message.streams)
    return len(run.sent)


def perform(run: Run, act: object) -> None:
    match act:
        case int():
            run.pass_ms(act)
        case bytes():
            run.feed(SessionClosed(act, run.now_ms))
        case "commit":
            if run.persists:
                run.commit()
        case "answer":
            answer_all(run)
        case tuple():
            run.feed(StreamsChanged(run.now_ms, gone=tuple(stream(at) for at in act)))
        case _:
            run.feed(Received(act, run.now_ms))  # type: ignore[arg-type]  # a ToLeader


def answer_all(run: Run) -> None:
    """Members answer the newest set that each was sent."""
    newest = {
        message.borrower_id: message
        for message in run.sent
        if isinstance(message, LeaseStreams | UpdateStreams)
    }
    for name, message in newest.items():
        reports = tuple(
            StreamReport(each.stream, each.grant_epoch, each.progress, each.frontier)
            for each in message.streams
        )
        run.tell(states(name, message.version, *reports))


def test_progress_is_confirmed_as_under_the_borrow_protocol() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.tell(states(ANN, 1, report(0, floor=20), asks=False))
    run.pass_ms(50)
    assert run.commit_all() == [ProgressSaved(ANN, LEADER, stream(0), 1, Progress(20))]
