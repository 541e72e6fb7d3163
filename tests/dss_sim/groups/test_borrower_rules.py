"""For each rule the shortest step of a borrower that breaks it, and one beside it that does not."""

from collections.abc import Callable

import pytest

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.groups.borrower_rules import (
    RESETS_MAX,
    BorrowerRules,
    Incarnations,
    Machine,
    check_lease,
    check_limits,
)
from dss_sim.groups.schedule import Host, Schedule
from dssd.machines.borrower.state import Borrower, BorrowerState, HeldStream, LeaseBorrower, Timer
from dssd.machines.leader.state import Leader, MemberLease
from dssd.machines.messages import (
    Disconnect,
    Grant,
    GrantedStream,
    LeaderConnectResponse,
    LeaderWanted,
    PingResponse,
    ProgressSaved,
    Revoke,
    Revoked,
    RevokeFinished,
    StreamReport,
    TakenState,
    ToBorrower,
    ToLeader,
    UpdateProgress,
    UpdateStreamStates,
)
from support.judged import broken

A, B = StreamId(1, 0), StreamId(1, 1)
ME = b"me"
LEASE_MS = 6_000


def report(epoch: int = 2, floor: int = 10, *, sent: int | None = None) -> StreamReport:
    return StreamReport(A, epoch, Progress(floor), floor, sent=sent)


def granted(stream: StreamId = A, epoch: int = 2) -> GrantedStream:
    return GrantedStream(stream, epoch, Progress(5), 5, (), 5)


def borrower_in(state: BorrowerState) -> Borrower:
    """It holds the stream under epoch 2 of a leader of epoch 4."""
    borrower = Borrower(ME, b"session", "ann", LEASE_MS)
    borrower.state = state
    borrower.leader_epoch = 4
    borrower.streams[A] = HeldStream(report())
    borrower.timers.set(Timer.LEASE, LEASE_MS)
    return borrower


def judged(
    message: ToBorrower,
    *said: ToLeader,
    state: BorrowerState = BorrowerState.CONNECTED,
    then: Callable[[Borrower], object] = lambda borrower: None,
) -> None:
    """Judge a step in which the borrower hears the message, says that and changes like this."""
    rules, borrower = BorrowerRules(), borrower_in(state)
    rules.installed(ME, granted())
    hearing = rules.about_to_hear(borrower, message)
    assert hearing is not None
    then(borrower)
    for each in said:
        rules.said(each)
    rules.check_heard(hearing)


# Leaders


def test_what_a_leader_of_before_says_must_change_nothing() -> None:
    late = PingResponse(ME, 3, 100)
    judged(late)
    with broken("S3"):
        judged(late, then=lambda borrower: borrower.timers.set(Timer.LEASE, LEASE_MS + 100))
    with broken("S3"):
        judged(late, then=lambda borrower: borrower.streams.clear())
    with broken("S3"):
        judged(late, RevokeFinished(ME, 4, A, 2))


def test_all_that_is_held_must_be_presented_to_a_new_leader() -> None:
    new = LeaderConnectResponse(ME, 5, LEASE_MS)
    judged(new, LeaderWanted(ME, 5, b"session", "ann", (report(),)))
    for said in ((), (LeaderWanted(ME, 5, b"session", "ann"),)):
        with broken("I11"):
            judged(new, *said)
    judged(new, state=BorrowerState.UNSUBSCRIBING)


# Answers


@pytest.mark.parametrize("state", BorrowerState)
def test_revoked_must_be_answered_in_every_state(state: BorrowerState) -> None:
    revoked = Revoked(ME, 4, B, 7, Progress(0))
    judged(revoked, RevokeFinished(ME, 4, B, 7), state=state)
    for said in ((), (RevokeFinished(ME, 4, B, 6),)):
        with broken("I11"):
            judged(revoked, *said, state=state)


def test_the_revoke_of_a_stream_that_is_not_held_must_be_answered() -> None:
    judged(Revoke(ME, 4, A, 2, 100))
    with broken("I11"):
        judged(Revoke(ME, 4, A, 1, 100))


def test_a_report_that_is_not_durable_must_be_sent_again() -> None:
    saved = ProgressSaved(ME, 4, A, 2, Progress(9))
    with broken("I11"):
        judged(saved)
    judged(saved, then=lambda borrower: borrower.timers.set(A, 250))
    judged(ProgressSaved(ME, 4, A, 2, Progress(10)))


def test_what_is_called_durable_must_be_what_the_leader_said() -> None:
    rules = BorrowerRules()
    rules.about_to_hear(borrower_in(BorrowerState.CONNECTED), Revoked(ME, 4, A, 2, Progress(9)))
    rules.saved(Progress(9))
    with broken("S2"):
        rules.saved(Progress(10))


# Grants


def test_a_grant_that_was_over_must_not_come_back() -> None:
    rules = BorrowerRules()
    rules.installed(ME, granted())
    rules.dropped(ME, A, 2)
    rules.installed(ME, granted(epoch=3))
    rules.dropped(ME, A, 3)
    for epoch in (2, 3):
        with broken("S4"):
            rules.installed(ME, granted(epoch=epoch))
    rules.installed(b"another", granted())


@pytest.mark.parametrize(
    "said",
    [
        UpdateProgress(ME, 4, (report(sent=14),), final=True),
        LeaderWanted(ME, 4, b"session", "ann", (report(sent=14),)),
        Disconnect(ME, 4, (report(),)),
        UpdateStreamStates(ME, 4, 0, 1, taken_over=(TakenState(report(sent=14), True),)),
        UpdateProgress(ME, 4, (report(3),)),
    ],
    ids=["final", "presented", "goodbye", "fully acked", "another grant"],
)
def test_a_final_report_may_be_said_again_as_one(said: ToLeader) -> None:
    rules = BorrowerRules()
    rules.reported_last(ME, report(sent=14))
    rules.said(said)


@pytest.mark.parametrize(
    ("invariant", "said"),
    [
        ("I11", UpdateProgress(ME, 4, (report(sent=14),))),
        ("I11", UpdateStreamStates(ME, 4, 0, 1, (report(sent=14),))),
        ("S4", UpdateProgress(ME, 4, (report(sent=13),), final=True)),
        ("S4", UpdateProgress(ME, 4, (report(floor=9, sent=14),), final=True)),
    ],
    ids=["ordinary", "ordinary in a set", "less was sent", "less was acknowledged"],
)
def test_a_final_report_must_not_become_another(invariant: str, said: ToLeader) -> None:
    rules = BorrowerRules()
    rules.reported_last(ME, report(sent=14))
    with broken(invariant):
        rules.said(said)
    rules.closing()
    rules.said(said)


# Leaving


def test_who_leaves_must_say_so_at_once() -> None:
    rules, borrower = BorrowerRules(), borrower_in(BorrowerState.UNSUBSCRIBING)
    rules.said(UpdateProgress(b"another", 4, (report(),), leaving=True))
    rules.said(UpdateProgress(ME, 4, (report(),)))
    with broken("L1"):
        rules.check_left([borrower])
    rules.said(UpdateProgress(ME, 4, (report(),), leaving=True))
    rules.check_left([borrower])


def test_who_leaves_must_give_back_what_it_is_granted() -> None:
    grant = Grant(ME, 4, (granted(A), granted(B, 7)), LEASE_MS)
    unused = StreamReport(B, 7, Progress(5), 5, sent=5)
    leaves = BorrowerState.UNSUBSCRIBING
    judged(grant, UpdateProgress(ME, 4, (unused,), True, True), state=leaves)
    judged(grant, RevokeFinished(ME, 4, B, 7), state=leaves)
    for said in ((), (UpdateProgress(ME, 4, (unused,), leaving=True),)):
        with broken("L1"):
            judged(grant, *said, state=leaves)
    judged(grant)


# Clocks


def leading(ends_ms: int) -> Leader:
    leader = Leader(4)
    leader.timers.set(MemberLease(ME), ends_ms)
    return leader


def host() -> Host:
    schedule = Schedule()
    schedule.now_us = 1_000_000
    return Host(schedule, "a", rate=1_000_000, offset_ms=0)


def test_a_lease_must_run_from_when_something_was_sent_that_the_leader_has_heard() -> None:
    home, leader = host(), leading(900 + LEASE_MS)
    borrower = borrower_in(BorrowerState.CONNECTED)
    for sent_ms, late in ((890, False), (900, False), (910, True)):
        borrower.timers.set(Timer.LEASE, sent_ms + LEASE_MS)
        borrower.timers.set(Timer.SUSPEND, sent_ms + LEASE_MS * 6 // 10)
        if late:
            with broken("S4"):
                check_lease(borrower, home, leader, home)
            borrower.suspended = True
        check_lease(borrower, home, leader, home)


def test_a_borrower_must_stop_handing_out_before_its_leader_gives_it_up() -> None:
    home, borrower = host(), borrower_in(BorrowerState.CONNECTED)
    borrower.timers.set(Timer.LEASE, 900 + LEASE_MS)
    borrower.timers.set(Timer.SUSPEND, 900 + LEASE_MS + 10)
    with broken("S4"):
        check_lease(borrower, home, leading(900 + LEASE_MS), home)


@pytest.mark.parametrize(
    ("machine", "timer", "invariant"),
    [
        (borrower_in(BorrowerState.CONNECTED), Timer.LEASE, "S4"),
        (borrower_in(BorrowerState.UNSUBSCRIBING), Timer.UNSUBSCRIBE, "I22"),
    ],
    ids=["a lease", "a leave"],
)
def test_nobody_may_live_without_an_end(machine: Machine, timer: Timer, invariant: str) -> None:
    machine.timers.set(timer, 100)
    check_limits(machine)
    machine.timers.clear(timer)
    with broken(invariant):
        check_limits(machine)


def test_a_borrower_of_sets_is_looked_at_too() -> None:
    machine = LeaseBorrower(ME, b"session", "ann", LEASE_MS)
    check_limits(machine)
    machine.state = BorrowerState.REPLAYING
    with broken("S4"):
        check_limits(machine)


def test_who_lives_must_not_begin_again_and_again() -> None:
    groups = 2
    begun = Incarnations(groups)
    for _ in range(groups * (1 + RESETS_MAX)):
        begun.began("ann")
    begun.began("bob")
    with broken("L4"):
        begun.began("ann")
