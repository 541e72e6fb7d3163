from collections import Counter
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dss_core.errors import GroupDestroyed, GroupNotFound
from dss_core.progress import Progress
from dssd.machines.leader.events import (
    Committed,
    Destroyed,
    GrantRecord,
    Hold,
    Instructed,
    LeaderInput,
    LendAgain,
    MoveCursors,
    PresentStream,
    Received,
    SessionClosed,
    SessionsEnding,
    StopAsked,
    StoredStream,
    StreamsChanged,
    Ticked,
    TookOver,
)
from dssd.machines.leader.lent_stream import HELD, StreamState
from dssd.machines.leader.machine import TRANSITIONS, step
from dssd.machines.leader.receiving import MESSAGES
from dssd.machines.leader.state import Leader, LeaderState, view
from dssd.machines.leader.timing import LeaderTiming
from dssd.machines.messages import (
    Disconnect,
    Grant,
    Invalidate,
    LeaderConnectResponse,
    LeaderWanted,
    Ping,
    PingResponse,
    ProgressSaved,
    Revoke,
    Revoked,
    RevokeFinished,
    StreamReport,
    ToBorrower,
    ToLeader,
    UpdateProgress,
)
from support.played_leader import LEADER, LeaderRun, fresh, of_kind, session_of, stream
from support.proof_share import share

ANN, BOB, CAT = b"ann", b"bob", b"cat"
S = LeaderState


def held_before(at: int, holder: bytes, *, exact: bool = False) -> StoredStream:
    return StoredStream(
        stream(at),
        Progress(10),
        10,
        100,
        None,
        grant_epoch=3,
        session_id=session_of(holder),
        borrower_id=None if exact else holder + b" before",
    )


class Run(LeaderRun):
    """A leader whose members borrow."""

    def __init__(
        self, *stored: StoredStream, restarted: bool = False, owner_session: bytes | None = None
    ) -> None:
        super().__init__(Leader(LEADER, owner_session=owner_session), *stored, restarted=restarted)

    def join(self, *names: bytes) -> None:
        """Members join, are granted their share, and confirm it."""
        for name in names:
            self.tell(LeaderWanted(name, 0, session_of(name), name.decode()))
        self.pass_ms(200)
        self.confirm(self.commit_all())

    def confirm(self, messages: list[ToBorrower]) -> None:
        for message in messages:
            if isinstance(message, Grant):
                for granted in message.streams:
                    report = StreamReport(
                        granted.stream, granted.grant_epoch, granted.progress, granted.frontier
                    )
                    self.tell(UpdateProgress(message.borrower_id, LEADER, (report,)))

    def owners(self) -> dict[int, bytes | None]:
        return {
            lent.stream.partition: lent.holder if lent.state in HELD else None
            for lent in self.leader.streams.values()
        }

    def epoch(self, at: int) -> int:
        return self.leader.streams[stream(at)].grant_epoch

    def report(self, name: bytes, at: int, floor: int, *, final: bool = False) -> UpdateProgress:
        report = StreamReport(stream(at), self.epoch(at), Progress(floor), floor, sent=floor)
        return UpdateProgress(name, LEADER, (report,), final=final)


# Who is gone, and what is finished


def test_a_request_that_comes_after_its_borrower_said_goodbye_makes_it_no_member() -> None:
    run = Run(fresh(0), fresh(1))
    run.join(ANN, BOB)
    run.tell(Disconnect(ANN, LEADER, ()))
    assert run.tell(LeaderWanted(ANN, 0, session_of(ANN), "ann")) == [
        Invalidate(ANN, LEADER, "gone")
    ]
    run.pass_ms(200)
    run.confirm(run.commit_all())
    assert set(run.owners().values()) == {BOB}


def test_a_borrower_whose_goodbye_overtook_its_request_does_not_become_a_member() -> None:
    run = Run(fresh(0))
    run.tell(Disconnect(ANN, 0, ()))
    run.tell(LeaderWanted(ANN, 0, session_of(ANN), "ann"))
    assert not run.leader.members


def test_a_borrower_that_was_told_that_it_is_no_member_does_not_become_one_later() -> None:
    """Its word that it leaves overtook its request, which comes once it is gone."""
    run = Run(fresh(0))
    leaves = UpdateProgress(ANN, LEADER, (), leaving=True)
    assert run.tell(leaves) == [Invalidate(ANN, LEADER, "not a member")]
    wanted = LeaderWanted(ANN, LEADER - 1, session_of(ANN), "ann")
    assert run.tell(wanted) == [Invalidate(ANN, LEADER, "gone")]
    run.pass_ms(200)
    assert run.owners() == {0: None}


def test_that_a_borrower_is_gone_is_forgotten_after_a_lease() -> None:
    run = Run(fresh(0))
    run.join(ANN, BOB)
    run.tell(Disconnect(ANN, LEADER, ()))
    run.feed(SessionClosed(session_of(BOB), run.now_ms))
    assert run.leader.departed == {ANN, BOB}
    run.pass_ms(run.leader.timing.lease_ms)
    assert not run.leader.departed


def test_when_a_stream_is_finished_the_others_are_shared_out_anew() -> None:
    run = Run(fresh(0), fresh(1), fresh(2))
    run.join(ANN, BOB)
    [lone] = [at for at, owner in run.owners().items() if owner == BOB]
    run.feed(StreamsChanged(run.now_ms, (PresentStream(stream(lone), 10),)))
    run.commit_all()
    run.tell(RevokeFinished(BOB, LEADER, stream(lone), run.epoch(lone)))
    revoked = of_kind(run.pass_ms(run.leader.timing.gather_ms), Revoke)
    assert [message.borrower_id for message in revoked] == [ANN]


# Totality

ONE_OF_EACH: list[LeaderInput] = [
    TookOver(0, (fresh(0),), restarted=False),
    Received(Ping(ANN, LEADER, 0), 0),
    SessionClosed(b"s", 0),
    StreamsChanged(0),
    Committed(9, 0),
    Hold(0),
    LendAgain(0),
    Instructed(MoveCursors(7, ()), 0),
    Destroyed(0),
    SessionsEnding(0),
    StopAsked(0),
    Ticked(0),
]


def leader_in(state: LeaderState) -> Leader:
    leader = Leader(LEADER)
    if state is not S.LOADING:
        step(leader, TookOver(0, (fresh(0),), restarted=False))
    if state is S.STOPPING:
        step(leader, Received(LeaderWanted(ANN, 0, b"s", "ann"), 0))
        step(leader, Ticked(200))
        step(leader, StopAsked(200))
    if state is S.STOPPED:
        step(leader, StopAsked(0))
    assert leader.state is state
    return leader


NEXT = {
    (S.LOADING, TookOver): S.LEADING,
    (S.LOADING, Destroyed): S.STOPPED,
    (S.LOADING, StopAsked): S.STOPPED,
    (S.LEADING, Destroyed): S.STOPPED,
    (S.LEADING, StopAsked): S.STOPPED,
    (S.STOPPING, Destroyed): S.STOPPED,
}
"""All other pairs leave the leader where it is; without dirt a stop is immediate."""


@pytest.mark.parametrize("given_input", ONE_OF_EACH, ids=lambda given: type(given).__name__)
@pytest.mark.parametrize("state", LeaderState, ids=lambda state: state.value)
def test_each_state_takes_each_input(state: LeaderState, given_input: LeaderInput) -> None:
    leader = leader_in(state)
    step(leader, given_input)
    assert leader.state is NEXT.get((state, type(given_input)), state)


def test_the_tables_are_total() -> None:
    assert set(TRANSITIONS) == {
        (state, kind) for state in LeaderState for kind in get_args(LeaderInput)
    }
    assert set(MESSAGES) == set(get_args(ToLeader))


# Persist before send


def test_a_grant_leaves_only_after_its_epoch_is_durable() -> None:
    run = Run(fresh(0))
    assert run.tell(LeaderWanted(ANN, 0, session_of(ANN), "ann")) == [
        LeaderConnectResponse(ANN, LEADER, 6_000)
    ]
    assert run.pass_ms(5_000) == []
    [persist] = run.persists
    assert persist.records[0].grant == GrantRecord(1, session_of(ANN), ANN)
    [grant] = run.commit()
    assert isinstance(grant, Grant)
    assert grant.streams[0].grant_epoch == 1
    assert grant.streams[0].progress == Progress(10)


@pytest.mark.parametrize(("took_ms", "gathers_ms"), [(0, 50), (200, 400), (30_000, 1_000)])
def test_after_a_slow_commit_reports_gather_longer_but_for_a_second_at_most(
    took_ms: int, gathers_ms: int
) -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.pass_ms(1_000)
    run.commit_all()
    run.tell(run.report(ANN, 0, 20))
    run.pass_ms(50)
    for _ in range(took_ms // 100):
        run.tell(Ping(ANN, LEADER, 0))
        run.pass_ms(100)
    run.commit()
    run.tell(run.report(ANN, 0, 30))
    run.pass_ms(gathers_ms - 1)
    assert run.persists == []
    run.pass_ms(1)
    assert len(run.persists) == 1


def test_revoked_leaves_only_after_the_final_progress_is_durable() -> None:
    run = Run(fresh(0), fresh(1))
    run.join(ANN)
    run.tell(LeaderWanted(BOB, 0, session_of(BOB), "bob"))
    [revoke] = of_kind(run.pass_ms(200), Revoke)
    assert isinstance(revoke, Revoke)
    at = revoke.stream.partition
    assert run.tell(run.report(ANN, at, 40, final=True)) == []
    assert of_kind(run.pass_ms(100), Revoked) == []
    assert of_kind(run.commit(), Revoked) == [
        Revoked(ANN, LEADER, revoke.stream, revoke.grant_epoch, Progress(40))
    ]
    assert run.saved[revoke.stream].progress == Progress(40)


def test_a_moved_stream_starts_where_it_was_left() -> None:
    run = Run(fresh(0), fresh(1))
    run.join(ANN)
    run.tell(LeaderWanted(BOB, 0, session_of(BOB), "bob"))
    [revoke] = of_kind(run.pass_ms(200), Revoke)
    assert isinstance(revoke, Revoke)
    at = revoke.stream.partition
    run.tell(run.report(ANN, at, 40, final=True))
    run.commit()
    run.tell(RevokeFinished(ANN, LEADER, revoke.stream, revoke.grant_epoch))
    [grant] = of_kind(run.commit(), Grant)
    assert isinstance(grant, Grant)
    assert grant.borrower_id == BOB
    assert grant.streams[0].progress == Progress(40)
    assert grant.streams[0].suspect_end == grant.streams[0].frontier == 40
    assert grant.streams[0].grant_epoch == revoke.grant_epoch + 1


# Commits


def test_reports_of_fifty_milliseconds_make_one_commit() -> None:
    run = Run(*map(fresh, range(4)))
    run.join(ANN)
    run.pass_ms(100)
    run.commit_all()
    for at in range(4):
        run.tell(run.report(ANN, at, 20))
        run.pass_ms(10)
    assert run.persists == []
    run.pass_ms(10)
    [persist] = run.persists
    assert len(persist.records) == 4
    saved = of_kind(run.commit(), ProgressSaved)
    assert len(saved) == 4
    assert ProgressSaved(ANN, LEADER, stream(0), 1, Progress(20)) in saved


def test_what_a_client_waits_for_is_committed_at_once_with_what_was_gathered() -> None:
    run = Run(fresh(0), fresh(1))
    run.join(ANN)
    run.pass_ms(100)
    run.commit_all()
    run.tell(run.report(ANN, 0, 20))
    assert run.persists == []
    awaited = run.report(ANN, 1, 20)
    run.tell(replace(awaited, reports=(replace(awaited.reports[0], is_awaited=True),)))
    [persist] = run.persists
    assert len(persist.records) == 2


def test_what_was_noted_before_is_committed_at_once_where_a_client_waits_for_it() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.pass_ms(100)
    run.commit_all()
    told = run.report(ANN, 0, 20)
    run.tell(told)
    assert run.persists == []
    run.tell(replace(told, reports=(replace(told.reports[0], is_awaited=True),)))
    assert len(run.persists) == 1


def test_a_slow_store_makes_commits_rarer() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.tell(run.report(ANN, 0, 20))
    run.pass_ms(50)
    run.pass_ms(200)
    run.commit()
    run.tell(run.report(ANN, 0, 30))
    run.pass_ms(399)
    assert run.persists == []
    run.pass_ms(1)
    assert len(run.persists) == 1


def test_what_is_saved_is_what_the_commit_held_not_what_came_since() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.tell(run.report(ANN, 0, 20))
    run.pass_ms(50)
    run.tell(run.report(ANN, 0, 30))
    assert run.commit() == [ProgressSaved(ANN, LEADER, stream(0), 1, Progress(20))]


def test_a_lost_answer_is_given_again_without_a_commit() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.tell(run.report(ANN, 0, 20))
    run.pass_ms(50)
    run.commit()
    again = run.tell(run.report(ANN, 0, 20))
    assert again == [ProgressSaved(ANN, LEADER, stream(0), 1, Progress(20))]
    run.pass_ms(1_000)
    assert run.persists == []


# Fencing


def test_a_report_of_an_older_grant_changes_nothing_and_is_answered() -> None:
    run = Run(held_before(0, ANN, exact=True))
    run.join(BOB)
    run.pass_ms(1_000)
    run.confirm(run.commit_all())
    run.tell(LeaderWanted(ANN, 0, session_of(ANN), "ann"))
    stale = StreamReport(stream(0), 3, Progress(99), 99)
    assert run.tell(UpdateProgress(ANN, LEADER, (stale,))) == [
        Invalidate(ANN, LEADER, "not the holder", stream(0), 3)
    ]
    assert run.leader.streams[stream(0)].progress == Progress(10)


def test_a_stranger_of_this_epoch_is_invalidated_and_one_of_an_older_is_asked_to_present() -> None:
    run = Run(fresh(0))
    assert run.tell(Ping(ANN, LEADER, 0)) == [Invalidate(ANN, LEADER, "not a member")]
    assert run.tell(Ping(ANN, LEADER - 1, 0)) == [LeaderConnectResponse(ANN, LEADER, 6_000)]
    assert run.tell(RevokeFinished(ANN, LEADER, stream(0), 1)) == []


def test_a_message_for_a_newer_leader_is_left_to_that_one() -> None:
    run = Run(fresh(0))
    assert run.tell(LeaderWanted(ANN, LEADER + 1, session_of(ANN), "ann")) == []
    assert run.leader.members == {}


def test_an_exclusive_group_has_only_borrowers_of_its_session() -> None:
    run = Run(fresh(0), owner_session=session_of(ANN))
    assert run.tell(LeaderWanted(BOB, 0, session_of(BOB), "bob")) == [
        Invalidate(BOB, LEADER, GroupNotFound.code)
    ]
    run.join(ANN)
    assert run.owners() == {0: ANN}


# Timers


def test_transient_states_are_sent_again_at_doubling_intervals_each_on_its_own() -> None:
    run = Run(fresh(0))
    run.tell(LeaderWanted(ANN, 0, session_of(ANN), "ann"))
    run.pass_ms(200)
    run.commit()
    at_ms: list[int] = []
    begun_ms = run.now_ms
    for _ in range(40):
        run.tell(Ping(ANN, LEADER, 0))
        if of_kind(run.pass_ms(250), Grant):
            at_ms.append(run.now_ms - begun_ms)
    assert at_ms == [250, 750, 1_750, 3_250, 4_750, 6_250, 7_750, 9_250]


def test_a_silent_member_is_dropped_after_its_lease_however_busy_others_are() -> None:
    run = Run(*map(fresh, range(4)))
    run.join(ANN, BOB)
    for _ in range(59):
        run.pass_ms(100)
        run.tell(run.report(BOB, 0, 10))
    assert ANN in run.leader.members
    run.pass_ms(101)
    assert set(run.leader.members) == {BOB}
    run.commit_all()
    assert set(run.owners().values()) == {BOB}


def test_progress_counts_as_life() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    for floor in range(20, 32):
        run.pass_ms(5_000)
        run.tell(run.report(ANN, 0, floor))
        run.commit_all()
    assert run.owners() == {0: ANN}


def revoke_in_vain(run: Run) -> Revoke:
    """Ann holds two streams, Bob joins, and Ann does not answer the revoke by its deadline."""
    run.join(ANN)
    run.tell(LeaderWanted(BOB, 0, session_of(BOB), "bob"))
    [revoke] = of_kind(run.pass_ms(200), Revoke)
    assert isinstance(revoke, Revoke)
    for _ in range(10):
        run.tell(Ping(ANN, LEADER, 0))
        run.tell(Ping(BOB, LEADER, 0))
        run.pass_ms(1_000)
    return revoke


def test_a_revoke_that_is_not_answered_by_its_deadline_ends_with_the_stream_revoked() -> None:
    run = Run(fresh(0), fresh(1))
    revoke = revoke_in_vain(run)
    assert of_kind(run.commit(), Revoked) == [
        Revoked(ANN, LEADER, revoke.stream, revoke.grant_epoch, Progress(10))
    ]
    run.tell(RevokeFinished(ANN, LEADER, revoke.stream, revoke.grant_epoch))
    [grant] = of_kind(run.commit(end=77), Grant)
    assert isinstance(grant, Grant)
    assert (grant.borrower_id, grant.streams[0].suspect_end) == (BOB, 77)
    assert run.owners()[1 - revoke.stream.partition] == ANN


def test_nobody_gets_a_stream_before_a_living_holder_has_heard_that_it_is_revoked() -> None:
    run = Run(fresh(0), fresh(1))
    revoke = revoke_in_vain(run)
    run.commit()
    for _ in range(10):
        run.tell(Ping(ANN, LEADER, 0))
        run.tell(Ping(BOB, LEADER, 0))
        assert of_kind(run.pass_ms(2_000), Revoked)
        assert not run.persists
    run.feed(SessionClosed(session_of(ANN), run.now_ms))
    [grant] = of_kind(run.commit(end=99), Grant)
    assert isinstance(grant, Grant)
    assert revoke.stream in {granted.stream for granted in grant.streams}


def test_one_slow_revoke_does_not_delay_another() -> None:
    run = Run(*map(fresh, range(6)))
    run.join(ANN)
    run.tell(LeaderWanted(BOB, 0, session_of(BOB), "bob"))
    revokes = of_kind(run.pass_ms(200), Revoke)
    assert len(revokes) == 3
    for revoke in revokes[1:]:
        assert isinstance(revoke, Revoke)
        run.tell(run.report(ANN, revoke.stream.partition, 20, final=True))
        run.commit_all()
        run.tell(RevokeFinished(ANN, LEADER, revoke.stream, revoke.grant_epoch))
        run.commit_all()
    assert Counter(run.owners().values()) == {ANN: 4, BOB: 2}


# Membership


def test_joins_are_gathered_and_leave_everyone_with_an_equal_share() -> None:
    run = Run(*map(fresh, range(9)))
    run.tell(LeaderWanted(ANN, 0, session_of(ANN), "ann"))
    run.pass_ms(100)
    run.tell(LeaderWanted(BOB, 0, session_of(BOB), "bob"))
    run.tell(LeaderWanted(CAT, 0, session_of(CAT), "cat"))
    run.pass_ms(99)
    assert run.persists == []
    run.pass_ms(1)
    run.commit_all()
    assert Counter(run.owners().values()) == {ANN: 3, BOB: 3, CAT: 3}


def test_more_members_than_streams_leaves_one_standing_by() -> None:
    run = Run(fresh(0))
    run.join(ANN, BOB)
    standby = [member for member in view(run.leader, run.now_ms).members if not member.streams]
    assert [member.client_id for member in standby] == ["bob"]


def test_the_death_of_a_session_is_acted_on_at_once() -> None:
    run = Run(*map(fresh, range(4)))
    run.join(ANN, BOB)
    run.feed(SessionClosed(session_of(ANN), run.now_ms))
    grants = of_kind(run.commit_all(), Grant)
    assert len(grants) == 1
    assert set(run.owners().values()) == {BOB}


def test_a_goodbye_before_the_close_counts_and_the_close_makes_it_urgent() -> None:
    run = Run(*map(fresh, range(2)))
    run.join(ANN, BOB)
    [at] = [at for at, owner in run.owners().items() if owner == ANN]
    last = StreamReport(stream(at), 1, Progress(50), 50, sent=60)
    run.tell(Disconnect(ANN, LEADER, (last,)))
    run.feed(SessionClosed(session_of(ANN), run.now_ms))
    [grant] = of_kind(run.commit_all(), Grant)
    assert isinstance(grant, Grant)
    [granted] = grant.streams
    assert (granted.progress, granted.frontier, granted.suspect_end) == (Progress(50), 50, 60)


def test_a_leave_is_gathered() -> None:
    run = Run(*map(fresh, range(2)))
    run.join(ANN, BOB)
    run.tell(Disconnect(ANN, LEADER, ()))
    run.pass_ms(199)
    run.commit_all()
    assert None in run.owners().values()
    run.pass_ms(1)
    run.commit_all()
    assert set(run.owners().values()) == {BOB}


def leaving(run: Run, name: bytes, *held: int) -> UpdateProgress:
    reports = tuple(report for at in held for report in run.report(name, at, 0).reports)
    return UpdateProgress(name, LEADER, reports, leaving=True)


def test_a_member_that_is_leaving_is_lent_nothing_of_what_becomes_free() -> None:
    run = Run(*map(fresh, range(4)))
    run.join(ANN, BOB)
    held = sorted(at for at, owner in run.owners().items() if owner == ANN)
    run.tell(leaving(run, ANN, *held))
    run.tell(run.report(ANN, held[0], 0, final=True))
    run.commit()
    run.tell(RevokeFinished(ANN, LEADER, stream(held[0]), run.epoch(held[0])))
    run.pass_ms(200)
    assert run.owners()[held[0]] == BOB
    run.tell(Disconnect(BOB, LEADER, ()))
    run.pass_ms(400)
    assert {at for at, owner in run.owners().items() if owner == ANN} == {held[1]}
    assert None in run.owners().values()


def test_what_a_leaving_member_was_to_inherit_goes_to_others() -> None:
    run = Run(*map(fresh, range(2)))
    run.join(ANN)
    run.tell(LeaderWanted(BOB, 0, session_of(BOB), "bob"))
    run.pass_ms(200)
    (revoke,) = (message for message in run.sent if isinstance(message, Revoke))
    run.tell(leaving(run, BOB))
    run.tell(run.report(ANN, revoke.stream.partition, 0, final=True))
    run.commit()
    run.tell(RevokeFinished(ANN, LEADER, revoke.stream, revoke.grant_epoch))
    run.pass_ms(200)
    assert set(run.owners().values()) == {ANN}


def test_ping_is_answered_with_its_own_send_time() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    assert run.tell(Ping(ANN, LEADER, 1_234)) == [PingResponse(ANN, LEADER, 1_234)]


def test_a_doubled_request_for_the_leader_changes_nothing() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    assert run.tell(LeaderWanted(ANN, LEADER, session_of(ANN), "ann")) == [
        LeaderConnectResponse(ANN, LEADER, 6_000)
    ]
    assert run.pass_ms(1_000) == []
    assert run.persists == []


def test_a_settled_group_says_nothing_by_itself() -> None:
    run = Run(*map(fresh, range(5)))
    run.join(ANN, BOB)
    run.pass_ms(100)
    run.commit_all()
    for _ in range(10):
        assert run.tell(Ping(ANN, LEADER, 1)) == [PingResponse(ANN, LEADER, 1)]
        assert run.tell(Ping(BOB, LEADER, 1)) == [PingResponse(BOB, LEADER, 1)]
        assert run.pass_ms(1_500) == []
    assert run.persists == []


# Streams


def test_a_stream_that_is_born_begins_at_zero_and_is_granted() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.feed(StreamsChanged(run.now_ms, present=(PresentStream(stream(1), None),)))
    [grant] = of_kind(run.commit_all(), Grant)
    assert isinstance(grant, Grant)
    assert grant.streams[0].stream == stream(1)
    assert grant.streams[0].progress == Progress(0)


def test_a_stream_that_is_gone_is_taken_from_its_holder() -> None:
    run = Run(fresh(0), fresh(1))
    run.join(ANN)
    before = len(run.sent)
    run.feed(StreamsChanged(run.now_ms, gone=(stream(1), stream(7))))
    assert run.sent[before:] == [Invalidate(ANN, LEADER, "topic removed", stream(1), 1)]
    assert run.owners() == {0: ANN}


def test_a_finished_stream_is_never_granted_again() -> None:
    run = Run(fresh(0, sealed_end=40), fresh(1))
    run.join(ANN)
    run.tell(run.report(ANN, 0, 40))
    assert of_kind(run.commit_all(), Revoked) == [Revoked(ANN, LEADER, stream(0), 1, Progress(40))]
    run.tell(RevokeFinished(ANN, LEADER, stream(0), 1))
    run.pass_ms(60)
    run.commit_all()
    assert run.saved[stream(0)].finished
    run.join(BOB)
    assert run.owners() == {0: None, 1: ANN}


# Takeover


def test_after_a_restart_each_session_gets_its_streams_and_newcomers_only_the_rest() -> None:
    run = Run(
        *(held_before(at, ANN) for at in (0, 1, 2)),
        *(held_before(at, BOB) for at in (3, 4)),
        fresh(5),
        restarted=True,
    )
    run.tell(LeaderWanted(CAT, 0, session_of(CAT), "cat"))
    run.tell(LeaderWanted(b"ann again", 0, session_of(ANN), "ann"))
    run.pass_ms(200)
    run.commit_all()
    again = b"ann again"
    assert run.owners() == {0: again, 1: again, 2: again, 3: None, 4: None, 5: CAT}
    run.tell(LeaderWanted(b"bob again", 0, session_of(BOB), "bob"))
    run.pass_ms(200)
    run.commit_all()
    back = b"bob again"
    assert Counter(run.owners().values()) == {again: 3, back: 2, CAT: 1}


def test_after_a_restart_streams_of_sessions_that_stay_away_wait_for_two_thirds_of_a_lease() -> (
    None
):
    run = Run(held_before(0, ANN), fresh(1), restarted=True)
    run.join(BOB)
    run.pass_ms(run.leader.timing.lease_ms * 2 // 3 - 200 - 1)
    run.commit_all()
    assert run.owners() == {0: None, 1: BOB}
    run.tell(Ping(BOB, LEADER, 0))
    run.pass_ms(100)
    run.commit_all()
    assert run.owners() == {0: BOB, 1: BOB}


@pytest.mark.parametrize(("exact", "suspect_end"), [(False, 100), (True, 10)])
def test_after_a_restart_records_are_doubted_unless_the_grant_ended_exactly(
    exact: bool, suspect_end: int
) -> None:
    run = Run(held_before(0, ANN, exact=exact), restarted=True)
    run.tell(LeaderWanted(b"again", 0, session_of(ANN), "ann"))
    run.pass_ms(200)
    [grant] = of_kind(run.commit(end=500), Grant)
    assert isinstance(grant, Grant)
    assert grant.streams[0].suspect_end == suspect_end
    assert grant.streams[0].frontier == 10
    assert grant.streams[0].grant_epoch == 4


def test_a_late_goodbye_to_the_daemon_before_is_merged_and_lends_nothing_sooner() -> None:
    """The client behind it may stand still, and hand out what it has as soon as it goes on."""
    run = Run(held_before(0, ANN), restarted=True)
    run.join(BOB)
    last = StreamReport(stream(0), 3, Progress(20), 20, sent=120)
    run.tell(Disconnect(ANN + b" before", LEADER - 1, (last,), silent_ms=500))
    run.pass_ms(run.leader.timing.reserve_ms - 201)
    run.commit_all()
    assert run.owners() == {0: None}
    run.tell(Ping(BOB, LEADER, 0))
    run.pass_ms(100)
    run.commit_all()
    assert run.owners() == {0: BOB}
    lent = run.leader.streams[stream(0)]
    assert (lent.progress, lent.suspect_end) == (Progress(20), 120)


def test_a_new_leader_adopts_the_holder_that_presents_its_epoch() -> None:
    run = Run(held_before(0, ANN), fresh(1))
    holder = ANN + b" before"
    held = StreamReport(stream(0), 3, Progress(30), 30)
    answer = run.tell(LeaderWanted(holder, LEADER - 1, session_of(ANN), "ann", (held,)))
    assert answer == [LeaderConnectResponse(holder, LEADER, 6_000)]
    assert run.owners() == {0: holder, 1: None}
    run.pass_ms(200)
    run.commit_all()
    assert run.owners() == {0: holder, 1: holder}
    assert run.epoch(0) == 3


def test_a_report_to_the_leader_before_is_merged_and_makes_nobody_the_holder() -> None:
    """It came late: its borrower let go of the stream before it met this leader."""
    run = Run(held_before(0, ANN))
    holder = ANN + b" before"
    run.tell(LeaderWanted(holder, LEADER, session_of(ANN), "ann"))
    late = UpdateProgress(holder, LEADER - 1, (StreamReport(stream(0), 3, Progress(30), 30),))
    assert run.tell(late) == []
    assert run.owners() == {0: None}
    assert run.leader.streams[stream(0)].progress == Progress(30)
    run.tell(replace(late, leader_epoch=LEADER))
    assert run.owners() == {0: holder}


def test_a_new_leader_keeps_streams_for_holders_that_do_not_come_until_their_lease_ends() -> None:
    run = Run(held_before(0, ANN))
    run.join(BOB)
    for _ in range(5):
        run.pass_ms(1_000)
        run.tell(Ping(BOB, LEADER, 0))
    assert run.owners() == {0: None}
    run.pass_ms(800)
    [grant] = of_kind(run.commit(end=140), Grant)
    assert isinstance(grant, Grant)
    assert grant.streams[0].suspect_end == 140


# The end


def test_a_leader_without_members_stops_after_thirty_seconds_with_all_saved() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.tell(run.report(ANN, 0, 20))
    last = StreamReport(stream(0), 1, Progress(25), 25, sent=25)
    run.tell(Disconnect(ANN, LEADER, (last,)))
    run.commit_all()
    run.pass_ms(29_999)
    assert run.stopped == []
    for _ in range(3):
        run.pass_ms(100)
        run.commit_all()
    assert run.stopped == ["idle"]
    assert run.saved[stream(0)].progress == Progress(25)
    assert run.saved[stream(0)].grant == GrantRecord(1, None, None)


def test_a_leader_that_nobody_joined_stops_too() -> None:
    run = Run(fresh(0))
    run.pass_ms(30_000)
    assert run.stopped == ["idle"]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_leader_does_not_stop_idle_while_streams_are_kept_for_who_held_them(
    *, restarted: bool
) -> None:
    hasty = Leader(LEADER, timing=LeaderTiming(idle_ms=1_000))
    run = LeaderRun(hasty, held_before(0, ANN), restarted=restarted)
    kept_ms = hasty.timing.reserve_ms if restarted else hasty.timing.lease_ms
    for _ in range(kept_ms // 100 - 1):
        run.pass_ms(100)
        run.commit_all()
    assert run.stopped == []
    run.pass_ms(200)
    run.commit_all()
    run.pass_ms(100)
    assert run.stopped == ["idle"]
    # Where only the leader was new, nobody knows how far its last holder went.
    assert run.saved[stream(0)].grant == GrantRecord(3, None, ANN + b" before")


def test_a_stop_saves_what_is_known_first() -> None:
    run = Run(fresh(0))
    run.join(ANN)
    run.tell(run.report(ANN, 0, 20))
    run.feed(StopAsked(run.now_ms))
    assert run.stopped == []
    run.commit_all()
    assert run.stopped == ["asked"]
    assert run.saved[stream(0)].progress == Progress(20)


@pytest.mark.parametrize("gathers_ms", [0, 1_000])
def test_as_the_daemon_ends_its_sessions_each_stream_stays_with_the_last_that_held_it(
    gathers_ms: int,
) -> None:
    """The next daemon keeps it for that one, whose client may not know of the end yet."""
    run = Run(*map(fresh, range(4)))
    run.join(ANN, BOB)
    owners = run.owners()
    run.feed(SessionsEnding(run.now_ms))
    for name in (ANN, BOB):
        held = [at for at, owner in owners.items() if owner == name]
        reports = tuple(each for at in held for each in run.report(name, at, 20).reports)
        run.tell(Disconnect(name, LEADER, reports, silent_ms=0))
        run.feed(SessionClosed(session_of(name), run.now_ms, silent_ms=0))
        run.pass_ms(gathers_ms)
    run.feed(StopAsked(run.now_ms))
    run.commit_all()
    assert run.stopped == ["asked"]
    kept = {at: GrantRecord(1, session_of(owner or b""), None) for at, owner in owners.items()}
    assert {stream.partition: record.grant for stream, record in run.saved.items()} == kept


def test_members_of_a_removed_group_are_told_with_its_code() -> None:
    run = Run(fresh(0))
    run.join(ANN, BOB)
    before = len(run.sent)
    run.feed(Destroyed(run.now_ms))
    assert run.sent[before:] == [
        Invalidate(ANN, LEADER, GroupDestroyed.code),
        Invalidate(BOB, LEADER, GroupDestroyed.code),
    ]
    assert run.stopped == ["destroyed"]


# Any order

NAMES = st.sampled_from([ANN, BOB, CAT])
STREAMS = st.integers(0, 3).map(stream)
EPOCHS = st.integers(0, 4)
REPORTS = st.lists(
    st.builds(
        StreamReport,
        STREAMS,
        EPOCHS,
        st.integers(0, 40).map(Progress),
        st.integers(0, 40),
        st.just(()),
        st.none() | st.integers(0, 40),
    ),
    max_size=3,
).map(tuple)
LEADERS = st.integers(LEADER - 1, LEADER)
ANY_MESSAGE = st.one_of(
    st.builds(
        lambda name, epoch, held: LeaderWanted(name, epoch, session_of(name), "c", held),
        NAMES,
        LEADERS,
        REPORTS,
    ),
    st.builds(Ping, NAMES, LEADERS, st.just(0)),
    st.builds(UpdateProgress, NAMES, LEADERS, REPORTS, st.booleans()),
    st.builds(RevokeFinished, NAMES, LEADERS, STREAMS, EPOCHS),
    st.builds(Disconnect, NAMES, LEADERS, REPORTS),
)
PRESENT = st.builds(PresentStream, STREAMS, st.none() | st.integers(0, 40))
STEPS = st.one_of(
    ANY_MESSAGE,
    NAMES.map(session_of),
    st.sampled_from(["commit", "present", "own reports"]),
    st.lists(PRESENT, max_size=2).map(tuple),
    st.lists(STREAMS, max_size=1),
    st.integers(0, 4_000),
)


@settings(max_examples=share(25, 400), deadline=None)
@given(st.lists(STEPS, max_size=50), st.booleans(), st.booleans())
def test_any_inputs_in_any_order_keep_one_holder_a_stream(
    steps: list[object], restarted: bool, owned: bool
) -> None:
    stored = [held_before(at, ANN) if owned and at < 2 else fresh(at) for at in range(3)]
    run = Run(*stored, restarted=restarted)
    for act in steps:
        perform(run, act)
        check_books(run)


def perform(run: Run, act: object) -> None:
    match act:
        case int():
            run.pass_ms(act)
        case bytes():
            run.feed(SessionClosed(act, run.now_ms))
        case "commit" | "present":
            if run.persists:
                run.commit()
        case "own reports":
            for lent in list(run.leader.streams.values()):
                if lent.holder is not None and lent.state in HELD and lent.durable:
                    run.tell(run.report(lent.holder, lent.stream.partition, 20))
        case tuple():
            run.feed(StreamsChanged(run.now_ms, present=act))
        case list():
            run.feed(StreamsChanged(run.now_ms, gone=tuple(act)))
        case _:
            run.feed(Received(act, run.now_ms))  # type: ignore[arg-type]  # a ToLeader


def check_books(run: Run) -> None:
    """S1, and that every book of the leader says the same."""
    leader = run.leader
    books = {
        held: member.borrower_id for member in leader.members.values() for held in member.streams
    }
    assert sum(len(member.streams) for member in leader.members.values()) == len(books)
    held = {lent.stream: lent.holder for lent in leader.streams.values() if lent.state in HELD}
    assert leader.state is LeaderState.STOPPED or books == held
    heirs = {lent.stream: lent.heir for lent in leader.streams.values() if lent.heir is not None}
    inherited = [(each, m.borrower_id) for m in leader.members.values() for each in m.inherits]
    assert sorted(heirs.items()) == sorted(inherited)
    sessions = [(session, each) for session, of_it in leader.sessions.items() for each in of_it]
    assert sorted(sessions) == sorted(
        (m.session_id, m.borrower_id) for m in leader.members.values()
    )
    for lent in leader.streams.values():
        assert not (lent.reserved and lent.state is not StreamState.FREE)
    assert set(leader.dirty) <= set(leader.streams)
    assert len(run.persists) <= 1
