"""Records that come again: the back-off, and ranges that rest."""

import pytest

from dssd.machines.delivery.retry import Resting, RestingCount, backoff_ms


@pytest.mark.parametrize(
    ("attempts", "rest_ms"), [(0, 1_000), (1, 1_000), (2, 2_000), (6, 32_000), (7, 60_000)]
)
def test_the_back_off_doubles_up_to_a_minute(attempts: int, rest_ms: int) -> None:
    assert backoff_ms(attempts) == rest_ms


def resting(*ranges: tuple[int, int, int]) -> Resting:
    made = Resting(RestingCount())
    for start, end, until_ms in ranges:
        made.rest(start, end, until_ms)
    return made


def test_what_rests_comes_due_at_its_time() -> None:
    some = resting((5, 6, 20), (1, 2, 20), (9, 10, 10))
    assert some.next_ms() == 10
    assert not some.wake(9)
    assert some.due() is None
    assert some.wake(10)
    assert some.due_in(0, 100) == ((9, 10),)
    assert some.wake(20)
    assert some.due_in(0, 100) == ((1, 2), (5, 6), (9, 10))
    assert some.due_in(2, 6) == ((5, 6),)


def test_a_range_that_cannot_be_read_stays_due_behind_the_others() -> None:
    some = resting((1, 2, 1), (5, 6, 1))
    some.wake(1)
    some.pass_by()
    assert some.due() == (5, 6)
    some.pass_by()
    assert some.due() == (1, 2)
    assert some.due_ranges == 2


def test_due_ranges_that_touch_are_one() -> None:
    some = resting((4, 6, 1), (2, 4, 2), (7, 8, 3))
    some.wake(3)
    assert some.due_in(0, 100) == ((2, 6), (7, 8))
    assert len(some) == some.due_ranges == 2


def test_what_is_due_is_gone_through_round_and_round() -> None:
    some = resting((1, 2, 0), (5, 6, 0), (9, 10, 0))
    some.wake(0)
    order = []
    for _ in range(3):
        due = some.due()
        assert due is not None
        order.append(due)
        some.took(due[0], due[1])
        some.rest(1, 2, 0)
        some.wake(0)
    assert order == [(1, 2), (5, 6), (9, 10)], "though the first is refused again each time"
    assert some.due() == (1, 2)


def test_of_what_went_in_part_the_rest_stays_due() -> None:
    some = resting((0, 9, 0), (20, 30, 0))
    some.wake(0)
    some.took(2, 25, ((4, 5),))
    assert some.due_in(0, 100) == ((0, 2), (4, 5), (25, 30))
    assert some.due() == (0, 2), "the round goes on where something is left"


def test_what_rests_may_be_put_off_in_part_and_what_is_due_may_not() -> None:
    count = RestingCount()
    some = Resting(count)
    for start, end, until_ms in ((0, 2, 5), (4, 10, 20), (12, 14, 30)):
        some.rest(start, end, until_ms)
    some.wake(5)
    assert some.put_off([(0, 5, 90), (6, 7, 80), (9, 20, 70)]) == [
        (4, 5, 90), (6, 7, 80), (9, 10, 70), (12, 14, 70)
    ]  # fmt: skip
    assert len(some) == count.ranges == 7
    some.wake(69)
    assert some.due_in(0, 100) == ((0, 2), (5, 6), (7, 9))
    some.wake(70)
    assert some.due_in(9, 100) == ((9, 10), (12, 14))
    assert some.next_ms() == 80
    assert some.put_off([(0, 4, 99)]) == []


def test_the_count_of_several_streams_is_the_sum_of_what_they_have() -> None:
    count = RestingCount()
    one, other = Resting(count), Resting(count)
    one.rest(0, 2, 1)
    one.rest(2, 4, 1)
    other.rest(0, 2, 1)
    assert count.ranges == 3
    one.wake(1)
    assert count.ranges == len(one) + len(other) == 2
    one.took(0, 3)
    assert count.ranges == 2
    one.took(0, 9)
    other.clear()
    assert count.ranges == 0
