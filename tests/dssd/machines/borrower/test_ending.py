"""How a borrower ends, under whichever protocol it holds what it has."""

import pytest

from dss_core.errors import GroupDestroyed
from dss_core.progress import Progress
from dssd.limits import UNSUBSCRIBE_MS
from dssd.machines.borrower import ending, grants
from dssd.machines.borrower.events import (
    Disconnected,
    DropStream,
    Ended,
    ProgressDurable,
    Received,
    Recreate,
    Reported,
    Unsubscribed,
)
from dssd.machines.borrower.state import (
    Borrower,
    BorrowerState,
    Effects,
    Holder,
    LeaseBorrower,
    Timer,
)
from dssd.machines.messages import Disconnect, Invalidate, PingResponse, Revoked, RevokeFinished
from support.played_borrower import LEASE_MS, ME, SESSION, A, B, bare, granted, report


@pytest.fixture(params=[Borrower, LeaseBorrower])
def holder(request: pytest.FixtureRequest) -> Holder:
    """It holds A and B under epoch 2."""
    kind: type[Borrower | LeaseBorrower] = request.param
    borrower = kind(ME, SESSION, "ann", LEASE_MS)
    for stream in (A, B):
        grants.install(borrower, granted(stream), [])
    return borrower


def dropped(reason: str) -> list[object]:
    return [DropStream(A, 2, reason), DropStream(B, 2, reason)]


def test_a_borrower_that_has_ended_holds_nothing_and_waits_for_nothing(holder: Holder) -> None:
    holder.timers.set(Timer.LEASE, 100)
    effects: Effects = []
    ending.end(holder, Recreate("inconsistent"), effects)
    assert effects == [*dropped("inconsistent"), Recreate("inconsistent")]
    assert holder.state is BorrowerState.GONE
    assert (holder.streams, holder.timers.next_ms()) == ({}, None)


@pytest.mark.parametrize(
    ("given", "reason", "silent_ms"),
    [
        (Unsubscribed(0), "unsubscribed", None),
        (Disconnected(0), "disconnected", None),
        (Disconnected(0, silent_ms=40), "disconnected", 40),
    ],
)
def test_a_borrower_that_leaves_first_says_how_everything_stands_and_whether_its_client_is_silent(
    holder: Holder, given: Unsubscribed | Disconnected, reason: str, silent_ms: int | None
) -> None:
    effects: Effects = []
    ending.leave(holder, given, effects)
    goodbye = Disconnect(ME, 0, (report(A), report(B)), silent_ms)
    assert bare(effects) == [goodbye, *dropped(reason), Ended(reason)]


def test_a_borrower_that_is_leaving_ends_with_the_last_final_report(holder: Holder) -> None:
    ending.begin_leaving(holder, 0)
    effects: Effects = []
    for stream in (A, B):
        assert effects == []
        grants.take_report(holder, report(stream), Reported((), 0, final=True))
        ending.leave_when_finished(holder, effects)
    assert effects[-1] == Ended("unsubscribed")


def test_a_borrower_that_is_leaving_waits_for_final_reports_and_its_lease(
    holder: Holder,
) -> None:
    for timer in (Timer.FIND, Timer.SUSPEND, Timer.LEASE):
        holder.timers.set(timer, 100)
    ending.begin_leaving(holder, 1_000)
    waits = {timer: holder.timers.at_ms(timer) for timer in Timer}
    assert {timer: at_ms for timer, at_ms in waits.items() if at_ms is not None} == {
        Timer.LEASE: 100,
        Timer.UNSUBSCRIBE: 1_000 + UNSUBSCRIBE_MS,
    }


@pytest.mark.parametrize(
    ("reason", "last"),
    [
        ("stale", Recreate("stale")),
        (GroupDestroyed.code, Ended(GroupDestroyed.code, GroupDestroyed.code)),
    ],
    ids=["anew", "for good"],
)
def test_an_invalid_borrower_comes_back_unless_the_reason_is_a_condition(
    holder: Holder, reason: str, last: Recreate | Ended
) -> None:
    effects: Effects = []
    ending.invalidate(holder, Invalidate(ME, 0, reason), 0, effects)
    assert effects == [*dropped(reason), last]


def test_an_invalid_borrower_that_is_leaving_does_not_come_back(holder: Holder) -> None:
    ending.begin_leaving(holder, 0)
    effects: Effects = []
    ending.invalidate_last(holder, Invalidate(ME, 0, "stale"), 0, effects)
    assert effects == [*dropped("stale"), Ended("stale")]


def test_an_invalid_stream_costs_no_other(holder: Holder) -> None:
    effects: Effects = []
    ending.invalidate(holder, Invalidate(ME, 0, "fenced", A, 2), 0, effects)
    assert effects == [DropStream(A, 2, "fenced")]
    assert set(holder.streams) == {B}


def test_an_older_grant_of_a_stream_that_is_invalid_costs_nothing(holder: Holder) -> None:
    effects: Effects = []
    ending.invalidate(holder, Invalidate(ME, 0, "fenced", A, 1), 0, effects)
    assert effects == []


def test_the_last_stream_that_is_taken_back_ends_a_borrower_that_is_leaving(holder: Holder) -> None:
    ending.begin_leaving(holder, 0)
    grants.drop(holder, B, "revoked", [])
    effects: Effects = []
    ending.revoked_last(holder, Revoked(ME, 0, A, 2, Progress(20)), 0, effects)
    assert bare(effects) == [
        ProgressDurable(A, 2, Progress(20)),
        DropStream(A, 2, "revoked"),
        RevokeFinished(ME, 0, A, 2),
        Disconnect(ME, 0, ()),
        Ended("unsubscribed"),
    ]


def test_a_borrower_that_is_gone_answers_revoked_and_nothing_else(
    holder: Holder,
) -> None:
    ending.end(holder, Ended("unsubscribed"), [])
    effects: Effects = []
    for message in (
        PingResponse(ME, 0, 0),
        Invalidate(ME, 0, "stale"),
        Revoked(b"other", 0, A, 2, Progress(20)),
    ):
        ending.receive_gone(holder, Received(message, 0), effects)
    assert effects == []
    ending.receive_gone(holder, Received(Revoked(ME, 0, A, 7, Progress(20)), 0), effects)
    assert bare(effects) == [RevokeFinished(ME, 0, A, 7)]
