"""For each rule the shortest step of a leader that breaks it, and one beside it that does not."""

from collections.abc import Callable

import pytest

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.groups.leader_times import check_times, times_before
from dss_sim.groups.machine_rules import LATE_MS, check_deadlines
from dssd.machines.leader.commits import mark_dirty
from dssd.machines.leader.events import (
    LeaderInput,
    Received,
    SessionClosed,
    StoredStream,
    StreamsChanged,
    Ticked,
    TookOver,
)
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.leader.machine import step
from dssd.machines.leader.state import Alarm, Leader, MemberLease
from dssd.machines.leader.turn import LeaderTurn
from dssd.machines.messages import LeaderWanted, Ping
from support.judged import broken

A = StreamId(1, 0)
ANN, BOB = b"ann", b"bob"
LEASE_MS, GATHER_MS, COMMIT_MS = 6_000, 200, 50
HEARD_MS = 100
"""When Ann and Bob were last heard."""


@pytest.fixture
def leader() -> Leader:
    """Ann holds the stream; Bob is a member."""
    leader = Leader(1)
    step(leader, TookOver(0, (StoredStream(A, Progress(5), 5, 20, None),), restarted=False))
    for name in (ANN, BOB):
        step(leader, Received(LeaderWanted(name, 0, name + b"'s", name.decode()), HEARD_MS))
    lent = leader.streams[A]
    lent.state, lent.holder = StreamState.GRANTED, ANN
    leader.members[ANN].streams.add(A)
    leader.timers.clear(Alarm.REBALANCE)
    return leader


def judged(leader: Leader, given: LeaderInput, change: Callable[[], object]) -> None:
    """Judge a step that changes the leader like this."""
    times = times_before(leader, given)
    change()
    check_times(times, leader, 10)


def lasts(leader: Leader, name: bytes, until_ms: int) -> Callable[[], None]:
    return lambda: leader.timers.set(MemberLease(name), until_ms)


def test_a_lease_must_end_as_long_after_the_last_message_as_it_lasts(leader: Leader) -> None:
    ping = Received(Ping(ANN, 1, 200), 300)
    judged(leader, ping, lasts(leader, ANN, 300 + LEASE_MS))
    with broken("I13"):
        judged(leader, ping, lasts(leader, ANN, 301 + LEASE_MS))
    with broken("I14"):
        judged(leader, ping, lasts(leader, ANN, 299 + LEASE_MS))


def test_a_message_must_not_touch_the_lease_of_another(leader: Leader) -> None:
    ping = Received(Ping(ANN, 1, HEARD_MS), HEARD_MS)
    judged(leader, ping, lasts(leader, BOB, HEARD_MS + LEASE_MS))
    with broken("I13"):
        judged(leader, ping, lasts(leader, BOB, HEARD_MS + LEASE_MS + 1))
    with broken("I14"):
        judged(leader, ping, lasts(leader, BOB, HEARD_MS + LEASE_MS))


def test_a_message_for_another_leader_extends_nothing(leader: Leader) -> None:
    stray = Received(Ping(ANN, 2, 200), 300)
    judged(leader, stray, lambda: None)
    with broken("I13"):
        judged(leader, stray, lasts(leader, ANN, 300 + LEASE_MS))


def test_a_member_must_not_be_given_up_within_its_lease(leader: Leader) -> None:
    gone = leader.members.pop(BOB)
    for given, lives in (
        (Ticked(HEARD_MS + LEASE_MS), False),
        (Ticked(HEARD_MS + LEASE_MS - 1), True),
        (SessionClosed(b"bob's", 300), False),
        (Received(Ping(ANN, 1, 200), HEARD_MS), True),
    ):
        leader.members[BOB] = gone
        if not lives:
            judged(leader, given, lambda: leader.members.pop(BOB))
            continue
        with broken("I14"):
            judged(leader, given, lambda: leader.members.pop(BOB))


def test_an_evicted_member_must_not_be_given_up_before_it_has_let_go(leader: Leader) -> None:
    leader.evictions.ended[ANN] = "stuck"
    gone = leader.members.pop(ANN)
    for given in (StreamsChanged(HEARD_MS, gone=(A,)), Ticked(HEARD_MS)):
        leader.members[ANN] = gone
        if isinstance(given, StreamsChanged):
            judged(leader, given, lambda: leader.members.pop(ANN))
            continue
        with broken("I14"):
            judged(leader, given, lambda: leader.members.pop(ANN))


def test_a_lease_that_is_over_must_end(leader: Leader) -> None:
    check_deadlines(leader, HEARD_MS + LEASE_MS + LATE_MS)
    with broken("I13"):
        check_deadlines(leader, HEARD_MS + LEASE_MS + LATE_MS + 1)


def dies(leader: Leader, rebalance_ms: int | None) -> Callable[[], None]:
    def change() -> None:
        del leader.members[ANN]
        leader.streams[A].state = StreamState.FREE
        if rebalance_ms is not None:
            leader.timers.set(Alarm.REBALANCE, rebalance_ms)

    return change


@pytest.mark.parametrize("late_ms", [2, GATHER_MS, None])
def test_a_death_must_be_acted_on_at_once(leader: Leader, late_ms: int | None) -> None:
    at_ms = None if late_ms is None else 300 + late_ms
    with broken("L1"):
        judged(leader, SessionClosed(b"ann's", 300), dies(leader, at_ms))


def test_a_death_may_wait_for_the_next_step(leader: Leader) -> None:
    judged(leader, SessionClosed(b"ann's", 300), dies(leader, 301))


def test_a_stream_that_is_free_must_not_wait_longer_than_leaves_gather(leader: Leader) -> None:
    def gives_back(rebalance_ms: int) -> Callable[[], None]:
        def change() -> None:
            leader.streams[A].state = StreamState.FREE
            leader.members[ANN].streams.clear()
            leader.timers.set(Alarm.REBALANCE, rebalance_ms)

        return change

    judged(leader, Ticked(300), gives_back(300 + GATHER_MS))
    with broken("L1"):
        judged(leader, Ticked(300), gives_back(302 + GATHER_MS))
    leader.streams[A].reserved = True
    judged(leader, Ticked(300), gives_back(302 + GATHER_MS))


def test_a_stream_may_stay_free_where_the_daemon_ends_its_sessions(leader: Leader) -> None:
    closed = SessionClosed(b"ann's", 300)
    leader.sessions_ending = True
    judged(leader, closed, dies(leader, None))


def test_nothing_must_be_lent_where_the_daemon_ends_its_sessions(leader: Leader) -> None:
    def lent_on() -> None:
        dies(leader, None)()
        lent = leader.streams[A]
        lent.state, lent.holder, lent.grant_epoch = StreamState.GRANTING, BOB, 1

    leader.sessions_ending = True
    with broken("S4"):
        judged(leader, SessionClosed(b"ann's", 300), lent_on)


def test_what_was_reported_must_not_wait_longer_than_reports_gather(leader: Leader) -> None:
    mark_dirty(LeaderTurn(leader, 300), A)
    judged(leader, Ticked(300), lambda: None)
    with broken("I17"):
        judged(leader, Ticked(300), lambda: leader.timers.set(Alarm.COMMIT, 301 + COMMIT_MS))
    with broken("I17"):
        judged(leader, Ticked(300), lambda: leader.timers.clear(Alarm.COMMIT))
