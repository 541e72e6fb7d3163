from collections.abc import Iterable

import pytest

from dss_core.progress import Progress
from dssd.machines.borrower.borrow_machine import (
    step,
)
from dssd.machines.borrower.events import (
    BorrowerEffect,
    BorrowerInput,
    Disconnected,
    DropStream,
    Ended,
    InstallStream,
    PauseTaken,
    ProgressDurable,
    Received,
    Recreate,
    Reported,
    ResumeDelivery,
    RevokeStream,
    SendToLeader,
    SendToRegistry,
    SetPaused,
    Standing,
    Started,
    SuspendDelivery,
    Ticked,
    Unsubscribed,
    WakeAt,
)
from dssd.machines.borrower.state import Borrower, BorrowerState
from dssd.machines.messages import (
    Disconnect,
    Grant,
    GrantedStream,
    Invalidate,
    LeaderConnectResponse,
    LeaderWanted,
    LeaseStreams,
    Pause,
    PauseChanged,
    PauseObeyed,
    Ping,
    PingResponse,
    ProgressSaved,
    RenewStreamLease,
    Revoke,
    Revoked,
    RevokeFinished,
    ToBorrower,
    UpdateProgress,
    UpdateStreams,
)
from support.played_borrower import (
    LEADER,
    LEASE_MS,
    ME,
    SESSION,
    A,
    B,
    bare,
    granted,
    kind_of,
    report,
)

S = BorrowerState
STATES = (S.CONNECTING, S.CONNECTED, S.UNSUBSCRIBING, S.GONE)


def grant(*streams: GrantedStream, leader_epoch: int = LEADER) -> Grant:
    return Grant(ME, leader_epoch, streams, LEASE_MS)


def after(borrower: Borrower, *inputs: BorrowerInput) -> list[BorrowerEffect]:
    """The effects of the last input, timers and standing left out."""
    effects: list[BorrowerEffect] = []
    for given_input in inputs:
        effects = step(borrower, given_input)[1]
    return [effect for effect in effects if not isinstance(effect, WakeAt | Standing)]


def sent(effects: Iterable[BorrowerEffect]) -> list[object]:
    return [
        effect.message for effect in effects if isinstance(effect, SendToLeader | SendToRegistry)
    ]


def borrower_in(state: BorrowerState, *streams: GrantedStream) -> Borrower:
    borrower = Borrower(ME, SESSION, "ann", LEASE_MS)
    step(borrower, Started(0))
    if state is S.CONNECTING:
        return borrower
    step(borrower, Received(grant(*streams), 0))
    if state is S.UNSUBSCRIBING:
        step(borrower, Unsubscribed(0))
    if state is S.GONE:
        step(borrower, Disconnected(0))
    assert borrower.state is state
    return borrower


MESSAGES_OF_EACH_KIND: list[ToBorrower] = [
    LeaderConnectResponse(ME, LEADER, LEASE_MS),
    PingResponse(ME, LEADER, 0),
    grant(granted()),
    ProgressSaved(ME, LEADER, A, 2, Progress(10)),
    Revoke(ME, LEADER, A, 2, 10_000),
    Revoked(ME, LEADER, A, 2, Progress(20)),
    Invalidate(ME, LEADER, "gone"),
    LeaseStreams(ME, LEADER, 1, (granted(B),), LEASE_MS, 0),
    UpdateStreams(ME, LEADER, 1, 2, (granted(B),), (), 0),
    RenewStreamLease(ME, LEADER, 2, 0),
    PauseChanged(ME, LEADER, Pause(2, True)),
]
INPUTS_OF_EACH_KIND: list[BorrowerInput] = [
    Started(10),
    *[Received(message, 10) for message in MESSAGES_OF_EACH_KIND],
    Reported((report(floor=12),), 10),
    PauseTaken(0, 10),
    Unsubscribed(10),
    Disconnected(10),
    Ticked(10),
]

WANTED = LeaderWanted(ME, 0, SESSION, "ann")
UPDATE = UpdateProgress(ME, LEADER, (report(),))
LEAVING = UpdateProgress(ME, LEADER, (report(),), leaving=True)
PING = Ping(ME, LEADER, 10)
FINISHED = RevokeFinished(ME, LEADER, A, 2)

EXPECTED: dict[tuple[BorrowerState, str], tuple[BorrowerState, list[object]]] = {
    (S.CONNECTING, "Started"): (S.CONNECTING, [WANTED]),
    (S.CONNECTING, "LeaderConnectResponse"): (S.CONNECTED, [PING]),
    (S.CONNECTING, "Grant"): (S.CONNECTED, [PING, InstallStream(granted()), UPDATE]),
    (S.CONNECTING, "Revoke"): (S.CONNECTING, [FINISHED]),
    (S.CONNECTING, "Revoked"): (S.CONNECTING, [FINISHED]),
    (S.CONNECTING, "Invalidate"): (S.GONE, [Recreate("gone")]),
    (S.CONNECTING, "PauseChanged"): (S.CONNECTING, [SetPaused(True, 1)]),
    (S.CONNECTING, "Unsubscribed"): (S.GONE, [Disconnect(ME, 0, ()), Ended("unsubscribed")]),
    (S.CONNECTING, "Disconnected"): (S.GONE, [Disconnect(ME, 0, ()), Ended("disconnected")]),
    (S.CONNECTED, "Started"): (
        S.GONE,
        [
            Disconnect(ME, LEADER, (report(),), silent_ms=0),
            DropStream(A, 2, "inconsistent"),
            Recreate("inconsistent"),
        ],
    ),
    (S.CONNECTED, "Grant"): (S.CONNECTED, [UPDATE]),
    (S.CONNECTED, "ProgressSaved"): (S.CONNECTED, [ProgressDurable(A, 2, Progress(10))]),
    (S.CONNECTED, "Revoke"): (S.CONNECTED, [RevokeStream(A, 2, 10_000)]),
    (S.CONNECTED, "Revoked"): (
        S.CONNECTED,
        [ProgressDurable(A, 2, Progress(20)), DropStream(A, 2, "revoked"), FINISHED],
    ),
    (S.CONNECTED, "Invalidate"): (S.GONE, [DropStream(A, 2, "gone"), Recreate("gone")]),
    (S.CONNECTED, "Reported"): (
        S.CONNECTED,
        [UpdateProgress(ME, LEADER, (report(floor=12),))],
    ),
    (S.CONNECTED, "PauseChanged"): (S.CONNECTED, [SetPaused(True, 1)]),
    (S.CONNECTED, "Unsubscribed"): (S.UNSUBSCRIBING, [LEAVING, RevokeStream(A, 2, 5_000)]),
    (S.CONNECTED, "Disconnected"): (
        S.GONE,
        [
            Disconnect(ME, LEADER, (report(),)),
            DropStream(A, 2, "disconnected"),
            Ended("disconnected"),
        ],
    ),
    (S.UNSUBSCRIBING, "Grant"): (S.UNSUBSCRIBING, [LEAVING]),
    (S.UNSUBSCRIBING, "ProgressSaved"): (
        S.UNSUBSCRIBING,
        [ProgressDurable(A, 2, Progress(10))],
    ),
    (S.UNSUBSCRIBING, "Revoked"): (
        S.GONE,
        [
            ProgressDurable(A, 2, Progress(20)),
            DropStream(A, 2, "revoked"),
            FINISHED,
            Disconnect(ME, LEADER, ()),
            Ended("unsubscribed"),
        ],
    ),
    (S.UNSUBSCRIBING, "Invalidate"): (S.GONE, [DropStream(A, 2, "gone"), Ended("gone")]),
    (S.UNSUBSCRIBING, "Reported"): (
        S.UNSUBSCRIBING,
        [UpdateProgress(ME, LEADER, (report(floor=12),), leaving=True)],
    ),
    (S.UNSUBSCRIBING, "PauseChanged"): (S.UNSUBSCRIBING, [PauseObeyed(ME, LEADER, 2)]),
    (S.UNSUBSCRIBING, "Disconnected"): (
        S.GONE,
        [
            Disconnect(ME, LEADER, (report(),)),
            DropStream(A, 2, "disconnected"),
            Ended("disconnected"),
        ],
    ),
    (S.GONE, "Revoked"): (S.GONE, [FINISHED]),
}
"""All other pairs change nothing."""


@pytest.mark.parametrize("given_input", INPUTS_OF_EACH_KIND, ids=kind_of)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.value)
def test_each_state_answers_each_input(state: BorrowerState, given_input: BorrowerInput) -> None:
    borrower = borrower_in(state, granted())
    effects = bare(after(borrower, given_input))
    assert (borrower.state, effects) == EXPECTED.get((state, kind_of(given_input)), (state, []))


def test_a_message_of_an_older_leader_is_ignored() -> None:
    borrower = borrower_in(S.CONNECTED, granted())
    stale = Invalidate(ME, LEADER - 1, "stale")
    assert after(borrower, Received(stale, 10)) == []
    assert borrower.state is S.CONNECTED


def test_a_newer_leader_is_shown_what_is_held() -> None:
    borrower = borrower_in(S.CONNECTED, granted())
    effects = after(borrower, Received(LeaderConnectResponse(ME, LEADER + 1, LEASE_MS), 10))
    wanted = LeaderWanted(ME, LEADER + 1, SESSION, "ann", (report(),))
    assert sent(effects) == [wanted, Ping(ME, LEADER + 1, 10)]


def test_a_message_for_another_incarnation_is_ignored() -> None:
    borrower = borrower_in(S.CONNECTED, granted())
    assert after(borrower, Received(Invalidate(b"other", LEADER, "x"), 10)) == []


def test_what_is_saved_only_in_part_is_sent_again() -> None:
    borrower = borrower_in(S.CONNECTED, granted())
    step(borrower, Reported((report(floor=20),), 0))
    step(borrower, Received(ProgressSaved(ME, LEADER, A, 2, Progress(15)), 100))
    assert UpdateProgress(ME, LEADER, (report(floor=20),)) in sent(after(borrower, Ticked(250)))


def test_a_final_report_bounds_what_was_sent_and_is_repeated_until_revoked() -> None:
    borrower = borrower_in(S.CONNECTED, granted())
    step(borrower, Received(Revoke(ME, LEADER, A, 2, 10_000), 0))
    final = UpdateProgress(ME, LEADER, (report(floor=20, sent=20),), final=True)
    reported = Reported((report(floor=20),), 0, final=True)
    assert sent(after(borrower, reported)) == [final]
    step(borrower, Received(ProgressSaved(ME, LEADER, A, 2, Progress(20)), 10))
    assert final in sent(after(borrower, Ticked(250)))
    assert sent(after(borrower, Received(Revoke(ME, LEADER, A, 2, 9_000), 260))) == [final]
    step(borrower, Received(Revoked(ME, LEADER, A, 2, Progress(20)), 300))
    assert final not in sent(after(borrower, Ticked(2_000)))


def test_revoked_makes_durable_what_it_says_and_not_what_was_reported_last() -> None:
    borrower = borrower_in(S.CONNECTED, granted())
    step(borrower, Received(Revoke(ME, LEADER, A, 2, 800), 0))
    step(borrower, Reported((report(floor=20),), 0, final=True))
    effects = after(borrower, Received(Revoked(ME, LEADER, A, 2, Progress(15)), 900))
    assert ProgressDurable(A, 2, Progress(15)) in effects
    assert DropStream(A, 2, "revoked") in effects


def test_reports_never_take_anything_back() -> None:
    borrower = borrower_in(S.CONNECTED, granted())
    step(borrower, Reported((report(floor=30, sent=35),), 0))
    step(borrower, Reported((report(floor=20, sent=32),), 1))
    held = borrower.streams[A].report
    assert (held.progress, held.frontier, held.sent) == (Progress(30), 30, 35)


def test_a_silent_leader_suspends_delivery_and_is_looked_for() -> None:
    borrower = borrower_in(S.CONNECTED, granted())
    assert SuspendDelivery() not in after(borrower, Ticked(3_599))
    effects = after(borrower, Ticked(3_600))
    assert effects[0] == SuspendDelivery()
    assert LeaderWanted(ME, LEADER, SESSION, "ann", (report(),)) in sent(effects)


def test_an_answered_ping_resumes_delivery_and_counts_from_when_it_was_sent() -> None:
    borrower = borrower_in(S.CONNECTED, granted())
    step(borrower, Ticked(3_600))
    late = after(borrower, Received(PingResponse(ME, LEADER, 0), 3_700))
    assert ResumeDelivery() not in late
    effects = after(borrower, Received(PingResponse(ME, LEADER, 3_000), 3_800))
    assert effects == [ResumeDelivery()]
    assert SuspendDelivery() in after(borrower, Ticked(6_600))


def test_at_the_end_of_the_lease_everything_is_dropped_and_a_new_one_is_made() -> None:
    borrower = borrower_in(S.CONNECTED, granted())
    step(borrower, Ticked(3_600))
    effects = after(borrower, Ticked(6_000))
    assert effects[-2:] == [DropStream(A, 2, "lease ended"), Recreate("lease ended")]


def test_a_leader_that_answers_late_must_answer_a_ping_before_delivery() -> None:
    borrower = borrower_in(S.CONNECTING)
    for now_ms in range(1_000, 9_000, 1_000):
        step(borrower, Ticked(now_ms))
    effects = after(borrower, Received(LeaderConnectResponse(ME, LEADER, LEASE_MS), 9_000))
    assert effects[0] == SuspendDelivery()
    assert after(borrower, Received(PingResponse(ME, LEADER, 9_000), 9_010)) == [ResumeDelivery()]


def test_unsubscribing_waits_for_the_final_report_of_every_stream() -> None:
    borrower = borrower_in(S.CONNECTED, granted(A), granted(B))
    assert after(borrower, Unsubscribed(0)) == [
        SendToLeader(UpdateProgress(ME, LEADER, (report(A), report(B)), leaving=True)),
        RevokeStream(A, 2, 5_000),
        RevokeStream(B, 2, 5_000),
    ]
    step(borrower, Reported((report(A, floor=20),), 10, final=True))
    effects = after(borrower, Reported((report(B, floor=21),), 20, final=True))
    assert borrower.state is S.GONE
    goodbye = sent(effects)[-1]
    assert goodbye == Disconnect(
        ME, LEADER, (report(A, floor=20, sent=20), report(B, floor=21, sent=21))
    )
    assert effects[-1] == Ended("unsubscribed")


def test_while_unsubscribing_a_grant_is_given_back_unused_each_time_it_comes() -> None:
    borrower = borrower_in(S.UNSUBSCRIBING, granted(A))
    unused = UpdateProgress(ME, LEADER, (report(B, 3, sent=10),), final=True, leaving=True)
    for now_ms in (10, 260):
        effects = after(borrower, Received(grant(granted(B, 3)), now_ms))
        assert effects == [SendToLeader(unused)]
    assert B not in borrower.streams
    effects = after(borrower, Received(Revoked(ME, LEADER, B, 3, Progress(10)), 300))
    assert effects == [SendToLeader(RevokeFinished(ME, LEADER, B, 3))]
    assert borrower.state is S.UNSUBSCRIBING


def test_while_unsubscribing_a_newer_grant_is_given_back_and_the_held_one_reported() -> None:
    borrower = borrower_in(S.UNSUBSCRIBING, granted(A))
    assert sent(after(borrower, Received(grant(granted(A, 3)), 10))) == [
        UpdateProgress(ME, LEADER, (report(A, 3, sent=10),), final=True, leaving=True)
    ]
    assert borrower.streams[A].report == report(A)


def test_while_unsubscribing_the_revoke_of_a_stream_that_is_not_held_is_answered() -> None:
    borrower = borrower_in(S.UNSUBSCRIBING, granted(A))
    effects = after(borrower, Received(Revoke(ME, LEADER, B, 3, 10_000), 10))
    assert effects == [SendToLeader(RevokeFinished(ME, LEADER, B, 3))]


def test_unsubscribing_without_streams_ends_at_once() -> None:
    borrower = borrower_in(S.CONNECTED)
    assert after(borrower, Unsubscribed(0)) == [
        SendToLeader(Disconnect(ME, LEADER, ())),
        Ended("unsubscribed"),
    ]
