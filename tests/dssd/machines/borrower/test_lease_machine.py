from collections.abc import Iterable

import pytest

from dss_core.ids import StreamId
from dss_core.progress import Progress
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
    SetPaused,
    Started,
    SuspendDelivery,
    Ticked,
    Unsubscribed,
)
from dssd.machines.borrower.lease_machine import step
from dssd.machines.borrower.state import BorrowerState, LeaseBorrower
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
    PingResponse,
    ProgressSaved,
    RenewStreamLease,
    Revoke,
    Revoked,
    RevokeFinished,
    StreamReport,
    Taken,
    TakenState,
    ToBorrower,
    UpdateStreams,
    UpdateStreamStates,
)
from support.played_borrower import (
    LEADER,
    LEASE_MS,
    ME,
    SESSION,
    A,
    B,
    C,
    bare,
    granted,
    kind_of,
    report,
)

S = BorrowerState
STATES = (S.CONNECTING, S.REPLAYING, S.UPDATING, S.UNSUBSCRIBING, S.GONE)


def leased(version: int, *streams: GrantedStream, heard_ms: int = 0) -> LeaseStreams:
    return LeaseStreams(ME, LEADER, version, streams, LEASE_MS, heard_ms)


def updated(
    old: int, new: int, *streams: GrantedStream, taken: Iterable[StreamId] = (), heard_ms: int = 0
) -> UpdateStreams:
    over = tuple(Taken(stream, 2, 10_000) for stream in taken)
    return UpdateStreams(ME, LEADER, old, new, streams, over, heard_ms)


def renewed(
    version: int, heard_ms: int = 0, *, old: int | None = None, accepted: Iterable[StreamId] = ()
) -> RenewStreamLease:
    named = tuple((stream, 2) for stream in accepted)
    return RenewStreamLease(ME, LEADER, version, heard_ms, old, named)


def states(
    version: int,
    *reports: StreamReport,
    old: int | None = None,
    taken: Iterable[TakenState] = (),
    at_ms: int = 10,
    asks: bool = False,
    leaving: bool = False,
) -> UpdateStreamStates:
    taken_over = tuple(taken)
    return UpdateStreamStates(ME, LEADER, at_ms, version, reports, old, taken_over, asks, leaving)


def wanted(
    *held: StreamReport, version: int = 0, at_ms: int = 0, leader: int = LEADER
) -> LeaderWanted:
    return LeaderWanted(ME, leader, SESSION, "ann", held, version, at_ms)


def after(borrower: LeaseBorrower, *inputs: BorrowerInput | ToBorrower) -> list[object]:
    """The effects of the last input; messages bare, timers and standing left out."""
    effects: list[BorrowerEffect] = []
    for each in inputs:
        effects = step(borrower, each if isinstance(each, BorrowerInput) else Received(each, 10))[1]
    return bare(effects)


def state_of(borrower: LeaseBorrower) -> BorrowerState:
    return borrower.state


def borrower_in(state: BorrowerState) -> LeaseBorrower:
    """It holds A and B in version 3; updating, B was taken over by version 4."""
    borrower = LeaseBorrower(ME, SESSION, "ann", LEASE_MS)
    step(borrower, Started(0))
    if state is S.CONNECTING:
        return borrower
    step(borrower, Received(leased(3, granted(A), granted(B)), 0))
    if state is S.UPDATING:
        step(borrower, Received(updated(3, 4, granted(A), taken=[B]), 0))
    if state is S.UNSUBSCRIBING:
        step(borrower, Unsubscribed(0))
    if state is S.GONE:
        step(borrower, Disconnected(0))
    assert borrower.state is state
    return borrower


MESSAGES_OF_EACH_KIND: list[ToBorrower] = [
    LeaderConnectResponse(ME, LEADER, LEASE_MS),
    PingResponse(ME, LEADER, 0),
    Grant(ME, LEADER, (granted(C),), LEASE_MS),
    ProgressSaved(ME, LEADER, A, 2, Progress(10)),
    Revoke(ME, LEADER, A, 2, 10_000),
    Revoked(ME, LEADER, A, 2, Progress(10)),
    Invalidate(ME, LEADER, "stale"),
    leased(3, granted(A), granted(B)),
    updated(3, 5, granted(A), granted(B)),
    renewed(4),
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

FINISHED = RevokeFinished(ME, LEADER, A, 2)
DURABLE = ProgressDurable(A, 2, Progress(10))
GOODBYE = Disconnect(ME, LEADER, (report(A), report(B)))
TAKEN_B = TakenState(report(B), final=False)


def dropped(reason: str) -> list[object]:
    return [DropStream(A, 2, reason), DropStream(B, 2, reason)]


EXPECTED: dict[tuple[BorrowerState, str], tuple[BorrowerState, list[object]]] = {
    (S.CONNECTING, "Started"): (S.CONNECTING, [wanted(leader=0, at_ms=10)]),
    (S.CONNECTING, "Revoked"): (S.CONNECTING, [FINISHED]),
    (S.CONNECTING, "Invalidate"): (S.GONE, [Recreate("stale")]),
    (S.CONNECTING, "LeaseStreams"): (
        S.REPLAYING,
        [
            InstallStream(granted(A)),
            InstallStream(granted(B)),
            states(3, report(A), report(B), asks=True),
        ],
    ),
    (S.CONNECTING, "Unsubscribed"): (S.GONE, [Disconnect(ME, 0, ()), Ended("unsubscribed")]),
    (S.CONNECTING, "Disconnected"): (S.GONE, [Disconnect(ME, 0, ()), Ended("disconnected")]),
    (S.REPLAYING, "Started"): (S.GONE, [*dropped("inconsistent"), Recreate("inconsistent")]),
    (S.REPLAYING, "ProgressSaved"): (S.REPLAYING, [DURABLE]),
    (S.REPLAYING, "Revoked"): (S.REPLAYING, [DURABLE, DropStream(A, 2, "revoked"), FINISHED]),
    (S.REPLAYING, "Invalidate"): (S.GONE, [*dropped("stale"), Recreate("stale")]),
    (S.REPLAYING, "LeaseStreams"): (
        S.REPLAYING,
        [states(3, report(A), report(B), asks=True)],
    ),
    (S.REPLAYING, "UpdateStreams"): (S.UPDATING, [states(5, old=3, asks=True)]),
    (S.REPLAYING, "RenewStreamLease"): (
        S.GONE,
        [*dropped("version mismatch"), Recreate("version mismatch")],
    ),
    (S.REPLAYING, "Reported"): (S.REPLAYING, [states(3, report(floor=12))]),
    (S.REPLAYING, "Unsubscribed"): (
        S.UNSUBSCRIBING,
        [
            states(3, report(A), report(B), leaving=True),
            RevokeStream(A, 2, 5_000),
            RevokeStream(B, 2, 5_000),
        ],
    ),
    (S.REPLAYING, "Disconnected"): (
        S.GONE,
        [GOODBYE, *dropped("disconnected"), Ended("disconnected")],
    ),
    (S.UPDATING, "Started"): (S.GONE, [*dropped("inconsistent"), Recreate("inconsistent")]),
    (S.UPDATING, "ProgressSaved"): (S.UPDATING, [DURABLE]),
    (S.UPDATING, "Revoked"): (S.UPDATING, [DURABLE, DropStream(A, 2, "revoked"), FINISHED]),
    (S.UPDATING, "Invalidate"): (S.GONE, [*dropped("stale"), Recreate("stale")]),
    (S.UPDATING, "RenewStreamLease"): (S.UPDATING, [states(4, old=3, taken=[TAKEN_B])]),
    (S.UPDATING, "UpdateStreams"): (
        S.GONE,
        [*dropped("version mismatch"), Recreate("version mismatch")],
    ),
    (S.UPDATING, "Reported"): (S.UPDATING, [states(4, report(floor=12), old=3)]),
    (S.UPDATING, "Unsubscribed"): (
        S.UNSUBSCRIBING,
        [states(4, report(A), leaving=True), RevokeStream(A, 2, 5_000)],
    ),
    (S.UPDATING, "Disconnected"): (
        S.GONE,
        [GOODBYE, *dropped("disconnected"), Ended("disconnected")],
    ),
    (S.UNSUBSCRIBING, "ProgressSaved"): (S.UNSUBSCRIBING, [DURABLE]),
    (S.UNSUBSCRIBING, "Revoked"): (
        S.UNSUBSCRIBING,
        [DURABLE, DropStream(A, 2, "revoked"), FINISHED],
    ),
    (S.UNSUBSCRIBING, "Invalidate"): (S.GONE, [*dropped("stale"), Ended("stale")]),
    (S.UNSUBSCRIBING, "Reported"): (
        S.UNSUBSCRIBING,
        [states(3, taken=[TakenState(report(floor=12), final=False)], leaving=True)],
    ),
    (S.UNSUBSCRIBING, "Disconnected"): (
        S.GONE,
        [GOODBYE, *dropped("disconnected"), Ended("disconnected")],
    ),
    (S.GONE, "Revoked"): (S.GONE, [FINISHED]),
    (S.CONNECTING, "PauseChanged"): (S.CONNECTING, [SetPaused(True, 1)]),
    (S.REPLAYING, "PauseChanged"): (S.REPLAYING, [SetPaused(True, 1)]),
    (S.UPDATING, "PauseChanged"): (S.UPDATING, [SetPaused(True, 1)]),
    (S.UNSUBSCRIBING, "PauseChanged"): (S.UNSUBSCRIBING, [PauseObeyed(ME, LEADER, 2)]),
}
"""All other pairs change nothing."""


@pytest.mark.parametrize("given_input", INPUTS_OF_EACH_KIND, ids=kind_of)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.value)
def test_each_state_answers_each_input(state: BorrowerState, given_input: BorrowerInput) -> None:
    borrower = borrower_in(state)
    effects = after(borrower, given_input)
    assert (borrower.state, effects) == EXPECTED.get((state, kind_of(given_input)), (state, []))


# Versions


def test_an_update_from_the_present_version_installs_and_takes_over() -> None:
    borrower = borrower_in(S.REPLAYING)
    effects = after(borrower, updated(3, 7, granted(A), granted(C), taken=[B]))
    assert effects == [
        InstallStream(granted(C)),
        RevokeStream(B, 2, 10_000),
        states(7, report(C), old=3, taken=[TAKEN_B], asks=True),
    ]
    assert (borrower.state, borrower.version) == (S.UPDATING, 7)


def test_a_further_update_may_come_while_a_stream_is_still_taken_over() -> None:
    borrower = borrower_in(S.UPDATING)
    effects = after(borrower, updated(4, 5, granted(A), granted(C), taken=[B]))
    assert effects == [
        InstallStream(granted(C)),
        states(5, report(C), old=4, taken=[TAKEN_B], asks=True),
    ]


@pytest.mark.parametrize("state", [S.REPLAYING, S.UPDATING])
def test_an_update_from_another_version_returns_to_connecting_without_a_goodbye(
    state: BorrowerState,
) -> None:
    borrower = borrower_in(state)
    effects = after(borrower, updated(8, 9, granted(A), granted(B)))
    assert effects == [*dropped("version mismatch"), Recreate("version mismatch")]


def test_a_set_of_an_older_version_came_late_and_is_ignored() -> None:
    borrower = borrower_in(S.UPDATING)
    for late in (leased(3, granted(A), granted(B)), updated(2, 3, granted(B)), renewed(3)):
        assert after(borrower, late) == []
    assert borrower.state is S.UPDATING


def test_a_repeated_update_is_answered_with_all_that_is_held() -> None:
    borrower = borrower_in(S.UPDATING)
    effects = after(borrower, updated(3, 4, granted(A), taken=[B]))
    assert effects == [states(4, report(A), old=3, taken=[TAKEN_B], asks=True)]


def test_a_stream_that_is_neither_in_the_set_nor_taken_over_is_over() -> None:
    borrower = borrower_in(S.REPLAYING)
    effects = after(borrower, updated(3, 4, granted(A)))
    assert effects == [DropStream(B, 2, "not in the set"), states(4, old=3, asks=True)]


def test_what_is_taken_over_but_not_held_is_said_to_be_dropped() -> None:
    borrower = borrower_in(S.REPLAYING)
    effects = after(borrower, updated(3, 4, granted(A), granted(B), taken=[C]))
    assert RevokeFinished(ME, LEADER, C, 2) in effects
    late = after(borrower, updated(4, 5, granted(A), granted(B), granted(C)))
    assert RevokeFinished(ME, LEADER, C, 2) in late
    assert C not in borrower.streams


# Taken-over streams


def test_results_of_a_taken_over_stream_are_reported_until_it_is_accepted() -> None:
    borrower = borrower_in(S.UPDATING)
    assert after(borrower, Reported((report(B, floor=12),), 20)) == [
        states(4, old=3, taken=[TakenState(report(B, floor=12), final=False)], at_ms=20)
    ]
    final = TakenState(report(B, floor=15, sent=15), final=True)
    flagged = states(4, old=3, taken=[final], at_ms=30)
    assert after(borrower, Reported((report(B, floor=15),), 30, final=True)) == [flagged]
    step(borrower, Received(ProgressSaved(ME, LEADER, B, 2, Progress(15)), 40))
    again = [effect for effect in after(borrower, Ticked(280)) if effect == states(
        4, old=3, taken=[final], at_ms=280
    )]  # fmt: skip
    assert len(again) == 1
    assert after(borrower, renewed(4, old=3, accepted=[B])) == [
        ProgressDurable(B, 2, Progress(15)),
        DropStream(B, 2, "revoked"),
    ]
    assert state_of(borrower) is S.UPDATING
    assert after(borrower, renewed(4)) == []
    assert state_of(borrower) is S.REPLAYING


def test_a_renewal_that_accepts_the_last_one_ends_the_update() -> None:
    borrower = borrower_in(S.UPDATING)
    step(borrower, Reported((report(B, floor=15),), 30, final=True))
    after(borrower, renewed(4, accepted=[B]))
    assert borrower.state is S.REPLAYING


def test_each_renewal_that_is_asked_for_names_all_that_is_taken_over() -> None:
    borrower = borrower_in(S.UPDATING)
    beat = states(4, old=3, taken=[TAKEN_B], at_ms=1_500, asks=True)
    assert beat in after(borrower, Ticked(1_500))


# Leaders and leases


def test_a_newer_leader_is_shown_what_is_held_and_its_version() -> None:
    borrower = borrower_in(S.UPDATING)
    effects = after(borrower, LeaderConnectResponse(ME, LEADER + 1, LEASE_MS))
    shown = wanted(report(A), report(B), version=4, at_ms=10, leader=LEADER + 1)
    assert effects == [shown]
    assert after(borrower, Invalidate(ME, LEADER, "of the leader before")) == []


def test_the_lease_runs_from_the_send_time_that_the_leader_has_heard() -> None:
    borrower = borrower_in(S.REPLAYING)
    step(borrower, Received(renewed(3, heard_ms=1_000), 3_000))
    assert SuspendDelivery() not in after(borrower, Ticked(4_599))
    effects = after(borrower, Ticked(4_600))
    assert effects[-2:] == [
        SuspendDelivery(),
        wanted(report(A), report(B), version=3, at_ms=4_600),
    ]
    assert after(borrower, Received(renewed(3, heard_ms=4_600), 4_700)) == [ResumeDelivery()]


def test_an_update_renews_the_lease_too() -> None:
    borrower = borrower_in(S.REPLAYING)
    message = updated(3, 4, granted(A), granted(B), heard_ms=3_000)
    step(borrower, Received(message, 3_100))
    assert SuspendDelivery() not in after(borrower, Ticked(6_500))


def test_without_a_renewal_it_returns_to_connecting_at_the_end_of_the_lease() -> None:
    borrower = borrower_in(S.UPDATING)
    step(borrower, Ticked(3_600))
    effects = after(borrower, Ticked(6_000))
    assert effects[-3:] == [*dropped("lease ended"), Recreate("lease ended")]


def test_a_first_set_whose_lease_is_over_is_not_taken() -> None:
    borrower = borrower_in(S.CONNECTING)
    assert after(borrower, Received(leased(3, granted(A)), 6_000)) == []
    effects = after(borrower, Received(leased(3, granted(A), heard_ms=6_000), 6_010))
    assert effects[0] == InstallStream(granted(A))


def test_a_first_set_that_comes_late_is_not_delivered_before_a_renewal() -> None:
    borrower = borrower_in(S.CONNECTING)
    effects = after(borrower, Received(leased(3, granted(A)), 4_000))
    assert effects[0] == SuspendDelivery()
    assert after(borrower, Received(renewed(3, heard_ms=4_000), 4_010)) == [ResumeDelivery()]


# The end


def test_unsubscribing_gives_every_stream_back_and_then_says_goodbye() -> None:
    borrower = borrower_in(S.UNSUBSCRIBING)
    first = Reported((report(A, floor=20),), 10, final=True)
    back = TakenState(report(A, floor=20, sent=20), final=True)
    assert after(borrower, first) == [states(3, taken=[back], leaving=True)]
    effects = after(borrower, Reported((report(B, floor=21),), 20, final=True))
    last = (report(A, floor=20, sent=20), report(B, floor=21, sent=21))
    assert Disconnect(ME, LEADER, last) in effects
    assert effects[-1] == Ended("unsubscribed")


@pytest.mark.parametrize(
    "set_message", [updated(3, 4, granted(A), granted(C), taken=[B]), leased(3, granted(C))]
)
def test_while_unsubscribing_no_set_is_taken_and_what_is_new_in_it_is_given_back(
    set_message: ToBorrower,
) -> None:
    borrower = borrower_in(S.UNSUBSCRIBING)
    unused = TakenState(report(C, sent=10), final=True)
    assert after(borrower, set_message) == [states(3, taken=[unused], leaving=True)]
    assert (borrower.version, set(borrower.streams)) == (3, {A, B})


def test_while_unsubscribing_streams_that_are_taken_over_but_not_held_are_answered() -> None:
    borrower = borrower_in(S.UNSUBSCRIBING)
    assert after(borrower, updated(3, 4, granted(A), taken=[B, C])) == [
        RevokeFinished(ME, LEADER, C, 2)
    ]


def test_unsubscribing_ends_when_the_leader_has_accepted_everything() -> None:
    borrower = borrower_in(S.UNSUBSCRIBING)
    effects = after(borrower, renewed(3, accepted=[A, B]))
    assert effects[-2:] == [Disconnect(ME, LEADER, ()), Ended("unsubscribed")]
