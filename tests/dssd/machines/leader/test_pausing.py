import pytest

from dss_core.limits import LEASE_MS
from dss_core.progress import Progress
from dssd.machines.leader.events import (
    Concluded,
    Instructed,
    LeaderEffect,
    LeaderInput,
    PauseGroup,
    SessionClosed,
    SessionsEnding,
    StopAsked,
    StoredStream,
    Ticked,
    TookOver,
)
from dssd.machines.leader.machine import step
from dssd.machines.leader.state import KeptFor, Leader
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.machines.leader.timing import LeaderTiming
from dssd.machines.messages import (
    Disconnect,
    Grant,
    LeaderWanted,
    LeaseStreams,
    Pause,
    PauseChanged,
    PauseObeyed,
    Ping,
    StreamReport,
    ToBorrower,
)
from support.played_leader import LEADER, LeaderRun, fresh, of_kind, session_of, stream

ANN, BOB = b"ann", b"bob"
SURE_MS = LEASE_MS * 4 // 10
"""How long a client that hears nothing hands out."""
PAUSED, RESUMED = Pause(1, True), Pause(1, False)


class Run(LeaderRun):
    """A leader of one stream, and the operations that it concluded."""

    def __init__(
        self,
        stored: StoredStream | None = None,
        *,
        paused: bool = False,
        lease: bool = False,
        idle_ms: int = 30_000,
    ) -> None:
        self.concluded: list[int] = []
        sets = StreamSets() if lease else None
        leader = Leader(LEADER, timing=LeaderTiming(idle_ms=idle_ms), stream_sets=sets)
        streams = (fresh(0) if stored is None else stored,)
        step(leader, TookOver(0, streams, restarted=False, paused=paused))
        super().__init__(leader)

    def feed(self, given_input: LeaderInput) -> list[LeaderEffect]:
        effects = super().feed(given_input)
        self.concluded += [each.number for each in effects if isinstance(each, Concluded)]
        return effects

    def join(self, name: bytes, *, paused: bool = False, leader: int = 0) -> list[ToBorrower]:
        return self.tell(LeaderWanted(name, leader, session_of(name), name.decode(), paused=paused))

    def instruct(self, number: int, *, paused: bool) -> list[ToBorrower]:
        before = len(self.sent)
        self.feed(Instructed(PauseGroup(number, paused), self.now_ms))
        return self.sent[before:]

    def obey(self, name: bytes, change: int, *, leader: int = LEADER) -> None:
        self.tell(PauseObeyed(name, leader, change))


def test_a_pause_is_told_to_every_member_and_concludes_with_the_last_confirmation() -> None:
    run = Run()
    run.join(ANN)
    run.join(BOB)
    assert run.instruct(7, paused=True) == [
        PauseChanged(ANN, LEADER, PAUSED),
        PauseChanged(BOB, LEADER, PAUSED),
    ]
    run.obey(ANN, 1)
    assert run.concluded == []
    run.obey(BOB, 1)
    assert run.concluded == [7]


def test_a_group_without_members_is_paused_at_once() -> None:
    run = Run()
    assert run.instruct(7, paused=True) == []
    assert run.concluded == [7]


def test_the_same_instruction_again_changes_nothing_and_concludes_when_the_first_does() -> None:
    run = Run()
    run.join(ANN)
    run.instruct(7, paused=True)
    assert run.instruct(7, paused=True) == []
    run.obey(ANN, 1)
    assert run.concluded == [7]
    assert run.instruct(7, paused=True) == []
    assert run.concluded == [7, 7]


def test_a_member_that_does_not_confirm_is_told_again_ever_more_rarely() -> None:
    run = Run()
    run.join(ANN)
    run.instruct(7, paused=True)
    times: list[int] = []
    for _ in range(300):
        run.now_ms += 20
        run.tell(Ping(ANN, LEADER, run.now_ms))
        if of_kind(run.pass_ms(0), PauseChanged):
            times.append(run.now_ms)
    assert times[:4] == [260, 760, 1_760, 3_260]
    run.obey(ANN, 1)
    assert run.concluded == [7]
    assert of_kind(run.pass_ms(5_000), PauseChanged) == []


def test_a_member_that_is_frozen_holds_a_pause_until_its_lease_ends() -> None:
    run = Run()
    run.join(ANN)
    run.instruct(7, paused=True)
    run.pass_ms(run.leader.timing.lease_ms - 1)
    assert run.concluded == []
    run.pass_ms(1)
    assert run.concluded == [7]


def test_a_member_whose_client_is_gone_and_silent_does_not_hold_a_pause() -> None:
    run = Run()
    run.join(ANN)
    run.instruct(7, paused=True)
    run.feed(SessionClosed(session_of(ANN), run.now_ms))
    assert run.concluded == [7]


LOSSES = pytest.mark.parametrize("says_goodbye", [True, False])


def lose(run: Run, name: bytes, *, says_goodbye: bool, silent_ms: int = 0) -> None:
    """The connection of a client breaks; it may live. The goodbye of its borrower may be lost."""
    if says_goodbye:
        run.tell(Disconnect(name, LEADER, (), silent_ms))
    run.feed(SessionClosed(session_of(name), run.now_ms, silent_ms))


@LOSSES
def test_a_client_that_is_lost_before_it_confirms_holds_a_pause_for_as_long_as_it_is_sure(
    says_goodbye: bool,
) -> None:
    run = Run()
    run.join(ANN)
    run.instruct(7, paused=True)
    lose(run, ANN, says_goodbye=says_goodbye)
    assert not run.leader.members
    run.pass_ms(SURE_MS)
    assert run.concluded == []
    run.pass_ms(run.leader.timing.silent_holder_ms - SURE_MS)
    assert run.concluded == [7]


@LOSSES
@pytest.mark.parametrize(
    ("silent_ms", "left_ms"),
    [
        pytest.param(9_000, 1_000, id="it had nothing to say before the pause either"),
        pytest.param(1_500, 1_500, id="it spoke last in the pause"),
    ],
)
def test_a_client_that_said_nothing_for_a_while_before_its_loss_holds_a_pause_for_the_rest(
    says_goodbye: bool, silent_ms: int, left_ms: int
) -> None:
    run = Run()
    run.pass_ms(10_000)
    run.join(ANN)
    run.instruct(7, paused=True)
    run.pass_ms(run.leader.timing.silent_holder_ms - 1_000)
    lose(run, ANN, says_goodbye=says_goodbye, silent_ms=silent_ms)
    run.pass_ms(left_ms - 1)
    assert run.concluded == []
    run.pass_ms(1)
    assert run.concluded == [7]


@LOSSES
def test_a_frozen_client_that_is_cut_off_after_its_time_does_not_hold_a_pause(
    says_goodbye: bool,
) -> None:
    run = Run()
    run.join(ANN)
    run.instruct(7, paused=True)
    run.pass_ms(5_000)
    lose(run, ANN, says_goodbye=says_goodbye, silent_ms=5_000)
    assert run.concluded == [7]


@LOSSES
def test_who_joins_a_paused_group_and_is_lost_has_its_time_from_then_on(says_goodbye: bool) -> None:
    run = Run(paused=True)
    run.pass_ms(10_000)
    run.instruct(7, paused=True)
    run.join(ANN)
    run.pass_ms(1_000)
    run.instruct(8, paused=True)
    lose(run, ANN, says_goodbye=says_goodbye, silent_ms=9_000)
    run.pass_ms(run.leader.timing.silent_holder_ms - 1_001)
    assert run.concluded == [7]
    run.pass_ms(1)
    assert run.concluded == [7, 8]


@LOSSES
def test_a_client_that_was_lost_shortly_before_a_pause_holds_it_too(says_goodbye: bool) -> None:
    run = Run()
    run.join(ANN)
    lose(run, ANN, says_goodbye=says_goodbye)
    run.pass_ms(1_000)
    run.instruct(7, paused=True)
    run.pass_ms(SURE_MS - 1_000)
    assert run.concluded == []
    run.pass_ms(run.leader.timing.silent_holder_ms - SURE_MS)
    assert run.concluded == [7]


@LOSSES
def test_a_client_that_is_lost_after_it_confirmed_does_not_hold_a_pause(says_goodbye: bool) -> None:
    run = Run()
    run.join(ANN)
    run.join(BOB)
    run.instruct(7, paused=True)
    run.obey(ANN, 1)
    lose(run, ANN, says_goodbye=says_goodbye)
    run.obey(BOB, 1)
    assert run.concluded == [7]


def test_a_client_that_is_lost_does_not_hold_the_end_of_a_pause() -> None:
    run = Run()
    run.join(ANN)
    run.instruct(7, paused=True)
    lose(run, ANN, says_goodbye=True)
    run.instruct(8, paused=False)
    assert run.concluded == [7, 8]


@pytest.mark.parametrize("goodbye", [True, False])
def test_who_held_a_stream_of_a_leader_before_and_is_lost_holds_a_pause(goodbye: bool) -> None:
    run = Run(held_before(0), paused=True)
    run.join(BOB)
    run.instruct(7, paused=True)
    run.obey(BOB, 0)
    if goodbye:
        run.tell(Disconnect(b"ann before", LEADER - 1, (report_of(0),), silent_ms=0))
    else:
        run.feed(SessionClosed(session_of(ANN), run.now_ms, silent_ms=0))
    for _ in range(SURE_MS // 100):
        run.pass_ms(100)
        run.tell(Ping(BOB, LEADER, run.now_ms))
        run.commit_all()
    # Nothing is kept any more, as others joined; only the time of its client counts.
    assert run.leader.reserve is KeptFor.NOTHING
    assert run.concluded == []
    run.pass_ms(run.leader.timing.silent_holder_ms - SURE_MS)
    assert run.concluded == [7]


def test_a_member_that_goes_with_its_daemon_holds_a_pause_for_the_next_one() -> None:
    run = Run()
    run.join(ANN)
    run.join(BOB)
    run.instruct(7, paused=True)
    run.obey(BOB, 1)
    run.feed(SessionsEnding(run.now_ms))
    for name in (ANN, BOB):
        run.tell(Disconnect(name, LEADER, ()))
        run.feed(SessionClosed(session_of(name), run.now_ms))
    run.feed(StopAsked(run.now_ms))
    run.commit_all()
    assert (run.stopped, run.concluded) == (["asked"], [])


def test_a_pause_that_is_taken_back_as_the_daemon_stops_concludes() -> None:
    run = Run()
    run.join(ANN)
    run.instruct(7, paused=True)
    run.feed(SessionsEnding(run.now_ms))
    run.instruct(8, paused=False)
    assert run.concluded == [7]


@pytest.mark.parametrize(("change", "leader"), [(0, LEADER), (1, LEADER - 1)])
def test_a_confirmation_of_another_change_or_another_leader_is_late(
    change: int, leader: int
) -> None:
    run = Run()
    run.join(ANN)
    run.instruct(7, paused=True)
    run.obey(ANN, change, leader=leader)
    assert run.concluded == []


def test_a_resume_concludes_the_pause_that_it_takes_back_and_waits_for_the_members_itself() -> None:
    run = Run()
    run.join(ANN)
    run.instruct(7, paused=True)
    assert run.instruct(8, paused=False) == [PauseChanged(ANN, LEADER, Pause(2, False))]
    assert run.concluded == [7]
    run.obey(ANN, 1)
    assert run.concluded == [7]
    run.obey(ANN, 2)
    assert run.concluded == [7, 8]


@pytest.mark.parametrize("lease", [False, True])
def test_who_joins_a_paused_group_is_told_and_its_grants_say_it_too(lease: bool) -> None:
    run = Run(paused=True, lease=lease)
    told = run.join(ANN)
    assert of_kind(told, PauseChanged) == [PauseChanged(ANN, LEADER, Pause(0, True))]
    run.pass_ms(200)
    [given] = [each for each in run.commit_all() if isinstance(each, Grant | LeaseStreams)]
    assert [granted.pause for granted in given.streams] == [Pause(0, True)]


def test_nobody_is_told_of_a_pause_where_there_is_none() -> None:
    run = Run()
    assert of_kind(run.join(ANN), PauseChanged) == []


def test_a_member_that_a_leader_before_paused_is_told_that_the_group_is_not() -> None:
    run = Run()
    told = run.join(ANN, paused=True, leader=LEADER - 1)
    assert PauseChanged(ANN, LEADER, Pause(0, False)) in told


def test_a_member_that_joins_while_a_pause_waits_is_waited_for() -> None:
    run = Run()
    run.join(ANN)
    run.instruct(7, paused=True)
    run.join(BOB)
    run.obey(ANN, 1)
    assert run.concluded == []
    run.obey(BOB, 1)
    assert run.concluded == [7]


def held_before(at: int) -> StoredStream:
    before = fresh(at)
    return StoredStream(
        before.stream, before.progress, 10, 100, None, 3, session_of(ANN), b"ann before"
    )


def report_of(at: int) -> StreamReport:
    return StreamReport(stream(at), 3, Progress(0), 0, sent=0)


def test_a_pause_waits_for_those_who_may_hold_streams_of_a_leader_before() -> None:
    run = Run(held_before(0), paused=True)
    assert run.leader.streams[stream(0)].reserved
    run.instruct(7, paused=True)
    run.pass_ms(run.leader.timing.lease_ms - 1)
    assert run.concluded == []
    run.pass_ms(1)
    assert run.concluded == [7]


def test_a_leader_without_members_does_not_stop_before_a_pause_has_concluded() -> None:
    run = Run(held_before(0), paused=True, idle_ms=1_000)
    run.instruct(7, paused=True)
    run.pass_ms(1_100)
    run.commit_all()
    run.pass_ms(100)
    assert run.stopped == []
    run.pass_ms(run.leader.timing.lease_ms)
    assert run.concluded == [7]
    run.commit_all()
    run.pass_ms(100)
    assert run.stopped == ["idle"]


def test_a_member_whose_lease_ended_is_not_told_again_in_the_same_step() -> None:
    run = Run()
    run.join(ANN)
    run.instruct(7, paused=True)
    run.pass_ms(run.leader.timing.lease_ms - 1)
    before = len(run.sent)
    # A step that comes late finds both due: the end of the lease, and what is to be told again.
    run.now_ms *= 10
    run.feed(Ticked(run.now_ms))
    assert not run.leader.members
    assert not of_kind(run.sent[before:], PauseChanged)
