"""Rests that outlive a grant: which, until when, and what clocks may do to them."""

from dss_core.progress import Progress
from dssd.machines.attempts import Due
from dssd.machines.delivery.durable_rests import DURABLE_REST_MS_MIN, DurableRests

AHEAD_MS = 1_000_000
DAY_MS = 24 * 3_600_000


def due(at_ms: int, delay_ms: int) -> Due:
    """By the wall clock."""
    return Due(AHEAD_MS + at_ms, delay_ms)


def test_a_short_delay_is_not_worth_a_row() -> None:
    rests = DurableRests((), AHEAD_MS, 0)
    rests.rest(1, 2, 10, DURABLE_REST_MS_MIN - 1)
    rests.rest(3, 4, 10, DURABLE_REST_MS_MIN)
    assert rests.told(Progress(0)) == ((3, 4, due(10 + DURABLE_REST_MS_MIN, DURABLE_REST_MS_MIN)),)


def test_it_is_told_in_order_until_its_time_or_its_ack_has_come() -> None:
    rests = DurableRests((), AHEAD_MS, 0)
    rests.rest(8, 10, 0, 5_000)
    rests.rest(2, 4, 0, 9_000)
    assert rests.told(Progress(3)) == (
        (3, 4, due(9_000, 9_000)),
        (8, 10, due(5_000, 5_000)),
    )
    rests.wake(5_000)
    assert rests.told(Progress(0)) == ((2, 4, due(9_000, 9_000)),)


def test_what_was_granted_rests_on_by_the_wall_clock() -> None:
    granted = ((1, 2, due(700, 3_000)), (3, 4, due(500, 3_000)))
    rests = DurableRests(granted, AHEAD_MS, 500)
    assert [*rests] == [(1, 2, 700)]
    assert rests.ranges() == ((1, 2),)


def test_a_wall_clock_that_was_set_back_holds_nothing_longer_than_was_asked_for() -> None:
    refused = DurableRests((), AHEAD_MS, 0)
    refused.rest(1, 2, 0, 3_000)
    told = refused.told(Progress(0))
    after = DurableRests(told, AHEAD_MS - DAY_MS, 7)
    assert [*after] == [(1, 2, 7 + 3_000)]
    [(_, _, again)] = after.told(Progress(0))
    assert again == Due(AHEAD_MS - DAY_MS + 7 + 3_000, 3_000)


def test_a_wall_clock_that_was_set_forward_ends_a_rest() -> None:
    rests = DurableRests(((1, 2, due(3_000, 3_000)),), AHEAD_MS + DAY_MS, 7)
    assert [*rests] == []
