"""Rests that outlive a grant: which, until when, and what clocks may do to them."""

from dss_core.progress import Progress
from dssd.limits import DURABLE_REST_MS_MIN, NAK_DELAY_MS_MAX
from dssd.machines.delivery.durable_rests import DurableRests

AHEAD_MS = 1_000_000


def test_a_short_delay_is_not_worth_a_row() -> None:
    rests = DurableRests((), AHEAD_MS, 0)
    rests.rest(1, 2, 10, DURABLE_REST_MS_MIN - 1)
    rests.rest(3, 4, 10, DURABLE_REST_MS_MIN)
    assert rests.told(Progress(0)) == ((3, 4, AHEAD_MS + 10 + DURABLE_REST_MS_MIN),)


def test_it_is_told_in_order_until_its_time_or_its_ack_has_come() -> None:
    rests = DurableRests((), AHEAD_MS, 0)
    rests.rest(8, 10, 0, 5_000)
    rests.rest(2, 4, 0, 9_000)
    assert rests.told(Progress(3)) == ((3, 4, AHEAD_MS + 9_000), (8, 10, AHEAD_MS + 5_000))
    rests.wake(5_000)
    assert rests.told(Progress(0)) == ((2, 4, AHEAD_MS + 9_000),)


def test_what_was_granted_rests_on_by_the_wall_clock() -> None:
    granted = ((1, 2, AHEAD_MS + 700), (3, 4, AHEAD_MS + 500))
    rests = DurableRests(granted, AHEAD_MS, 500)
    assert [*rests] == [(1, 2, 700)]
    assert rests.ranges() == ((1, 2),)


def test_a_wall_clock_that_was_set_back_holds_nothing_longer_than_anybody_may_ask() -> None:
    rests = DurableRests(((1, 2, AHEAD_MS + 10 * NAK_DELAY_MS_MAX),), AHEAD_MS, 7)
    assert [*rests] == [(1, 2, 7 + NAK_DELAY_MS_MAX)]
