"""The link to the leader: the lease runs from what the leader heard, under either protocol."""

import pytest

from dssd.machines.borrower import leader_link
from dssd.machines.borrower.events import ResumeDelivery, SendToRegistry
from dssd.machines.borrower.leader_link import FIND_LEADER_MS
from dssd.machines.borrower.state import (
    Borrower,
    BorrowerState,
    Effects,
    Holder,
    LeaseBorrower,
    Timer,
)
from support.played_borrower import LEASE_MS, ME, SESSION


@pytest.fixture(
    params=[(Borrower, BorrowerState.CONNECTED), (LeaseBorrower, BorrowerState.UPDATING)],
    ids=["borrow", "lease"],
)
def holder(request: pytest.FixtureRequest) -> Holder:
    """It is served."""
    kind: type[Borrower | LeaseBorrower]
    kind, served = request.param
    borrower = kind(ME, SESSION, "ann", LEASE_MS)
    borrower.state = served
    return borrower


def test_a_lease_that_was_extended_never_ends_sooner(holder: Holder) -> None:
    for from_ms in (500, 300):
        leader_link.extend_lease(holder, from_ms)
        assert holder.timers.at_ms(Timer.LEASE) == 500 + LEASE_MS
        assert holder.timers.at_ms(Timer.SUSPEND) == 500 + holder.suspend_after_ms()


def test_a_borrower_that_is_leaving_is_not_suspended(holder: Holder) -> None:
    holder.state = BorrowerState.UNSUBSCRIBING
    leader_link.extend_lease(holder, 500)
    assert holder.timers.at_ms(Timer.SUSPEND) is None


def test_what_was_sent_in_the_future_was_not_heard(holder: Holder) -> None:
    leader_link.note_heard(holder, 501, 500, [])
    assert holder.timers.at_ms(Timer.LEASE) is None


@pytest.mark.parametrize(("silent_ms", "resumes"), [(0, 1), (-1, 1), (1, 0)])
def test_delivery_goes_on_once_something_recent_was_heard(
    holder: Holder, silent_ms: int, resumes: int
) -> None:
    holder.suspended = True
    effects: Effects = []
    now_ms = 1_000 + holder.suspend_after_ms() + silent_ms
    leader_link.note_heard(holder, 1_001, now_ms, effects)
    assert effects == [ResumeDelivery()] * resumes
    assert holder.suspended is not bool(resumes)


def test_the_leader_is_looked_for_until_it_is_found(holder: Holder) -> None:
    effects: Effects = []
    leader_link.look_for_leader(holder, 100, effects)
    assert effects == [SendToRegistry(holder.leader_wanted(100))]
    assert holder.timers.at_ms(Timer.FIND) == 100 + FIND_LEADER_MS
