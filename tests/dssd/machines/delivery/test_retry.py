"""Records that come again: the back-off, and ranges that rest."""

import pytest

from dssd.machines.delivery.retry import Resting, backoff_ms


@pytest.mark.parametrize(
    ("attempts", "rest_ms"), [(0, 1_000), (1, 1_000), (2, 2_000), (6, 32_000), (7, 60_000)]
)
def test_the_back_off_doubles_up_to_a_minute(attempts: int, rest_ms: int) -> None:
    assert backoff_ms(attempts) == rest_ms


def test_what_rests_comes_due_in_order_of_offsets() -> None:
    resting = Resting()
    resting.rest(5, 6, 20)
    resting.rest(1, 2, 20)
    resting.rest(9, 10, 10)
    assert resting.next_ms() == 10
    assert not resting.wake(9)
    assert resting.wake(20)
    order = []
    while (due := resting.due()) is not None:
        order.append(due)
        resting.sent(due[1])
    assert order == [(1, 2), (5, 6), (9, 10)]
    assert len(resting) == 0


def test_a_range_that_was_sent_in_part_stays_due() -> None:
    resting = Resting()
    resting.rest(0, 9, 0)
    resting.wake(0)
    resting.sent(4)
    assert resting.due() == (4, 9)
