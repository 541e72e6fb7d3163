"""How many dead letters come back, and when."""

from collections import Counter

import pytest

from dss_core.ids import StreamId
from dssd.limits import MOVE_RECORDS_MAX
from dssd.machines.delivery.redrive_pace import REDRIVE_MS_MAX, REDRIVE_RECORDS, RedrivePace
from dssd.machines.queues import Redrive


def brought(pace: RedrivePace, upto_ms: int, *, late_ms: int = 0) -> list[tuple[int, int]]:
    """When, and how many, until then; each wake is so late."""
    found: list[tuple[int, int]] = []
    while pace.at_ms is not None and pace.at_ms + late_ms <= upto_ms:
        now_ms = pace.at_ms + late_ms
        found.append((now_ms, pace.take(now_ms)))
    return found


def begun(records: int, over_ms: int, *, lane: int = 0, at_ms: int = 0) -> RedrivePace:
    pace = RedrivePace(Redrive(7, ((10, 10 + records),), over_ms), StreamId(0, lane), 0)
    pace.begin(at_ms)
    return pace


@pytest.mark.parametrize("rate", [1, 3, 83, 1_000, 7_000])
@pytest.mark.parametrize("late_ms", [0, 7])
def test_over_a_while_as_many_come_back_as_the_rate_says(rate: int, late_ms: int) -> None:
    pace = begun(100_000, 100_000_000 // rate)
    seconds = 40
    counts = [count for _, count in brought(pace, seconds * 1_000, late_ms=late_ms)]
    usual = max(min(REDRIVE_RECORDS, rate), 1)
    assert rate * (seconds - 1) * 0.97 <= sum(counts) <= rate * seconds + 2 * usual
    assert max(counts) <= max(2 * usual, rate * 2 * 57 // 1_000)


def test_lanes_with_one_each_do_not_bring_them_back_all_at_once() -> None:
    lanes, rate = 500, 10
    over_ms = lanes * 1_000 // rate
    times = [begun(1, over_ms, lane=each, at_ms=12_345).at_ms or 0 for each in range(lanes)]
    of_second = Counter(at_ms // 1_000 for at_ms in times)
    assert max(times) - 12_345 < over_ms
    assert max(of_second.values()) <= 2 * rate


@pytest.mark.parametrize("stays_ms", [300, 700, 2_500])
def test_a_lane_whose_holders_leave_all_the_time_keeps_its_rate(stays_ms: int) -> None:
    redrive = Redrive(7, ((0, 1_000),), 1_000_000)
    total = 0
    for lent_ms in range(0, 100_000, stays_ms):
        pace = RedrivePace(redrive, StreamId(3, 8), 77)
        pace.begin(lent_ms)
        total += sum(count for _, count in brought(pace, lent_ms + stays_ms - 1))
    assert 90 <= total <= 101


def test_the_first_come_at_once_and_a_few_all_together() -> None:
    assert begun(6, 6).take(0) >= 6
    assert begun(6, 6_000).take(0) == 1


def test_a_slow_one_brings_one_at_a_time_each_at_its_time() -> None:
    assert brought(begun(4, 40_000), 30_000) == [(at, 1) for at in (0, 10_000, 20_000, 30_000)]


def test_after_a_stall_little_is_caught_up() -> None:
    pace = begun(1_000_000, 1_000_000)
    pace.take(0)
    pace.later(0)
    assert pace.take(600_000) <= 2 * REDRIVE_RECORDS
    assert begun(1_000_000, 1).take(0) == MOVE_RECORDS_MAX


def test_many_slow_lanes_wake_no_more_often_than_they_need() -> None:
    pace = begun(1_000, 12_000)
    assert [at for at, _ in brought(pace, 3_000)] == [0, 1_000, 2_000, 3_000]
    assert pace.at_ms == 3_000 + REDRIVE_MS_MAX


def test_a_row_of_before_rates_brings_a_thousand_a_second() -> None:
    assert sum(count for _, count in brought(begun(100_000, 0), 9_999)) == 10_000


def test_nothing_comes_back_before_it_begins_and_after_it_ended() -> None:
    pace = RedrivePace(Redrive(), StreamId(1, 0), 0)
    assert pace.at_ms is None
    pace.begin(5)
    pace.end()
    assert pace.at_ms is None
