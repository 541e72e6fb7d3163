"""Which due times have come, however long nobody looked."""

import pytest

from dss_core.changes import CreateSchedule
from dssd.machines.schedule import Due
from dssd.schedules.definitions import made, times_of
from dssd.schedules.due_times import DUE_LISTED_MAX, come, delay_ms
from dssd.store.schedule_rows import ScheduleRow
from support.played_schedules import HOUR_MS, MINUTE_MS, SUNDAY_NOON_MS

YEAR_MS = 365 * 24 * HOUR_MS


def row(cron: str, jitter_ms: int = 0) -> ScheduleRow:
    return made(CreateSchedule("s", "work", cron, jitter_ms=jitter_ms), 7, SUNDAY_NOON_MS)


def found(cron: str, up_to_ms: int, jitter_ms: int = 0) -> tuple[tuple[Due, ...], int]:
    schedule = row(cron, jitter_ms)
    return come(schedule, times_of(schedule), SUNDAY_NOON_MS, up_to_ms)


def test_a_due_time_has_come_in_its_very_millisecond() -> None:
    assert found("0 * * * *", SUNDAY_NOON_MS + HOUR_MS - 1) == ((), 0)
    assert found("0 * * * *", SUNDAY_NOON_MS + HOUR_MS)[0] == (Due(SUNDAY_NOON_MS + HOUR_MS),)


@pytest.mark.parametrize(
    ("cron", "back_ms"),
    [
        ("* * * * *", 0),
        ("0 3 * * *", 9 * HOUR_MS),
        ("* 3 * * *", 8 * HOUR_MS + MINUTE_MS),
        ("* * 1 11 *", 20 * 24 * HOUR_MS + 12 * HOUR_MS + MINUTE_MS),
    ],
)
def test_of_many_the_latest_is_found(cron: str, back_ms: int) -> None:
    now_ms = SUNDAY_NOON_MS + 3 * YEAR_MS
    due, earlier = found(cron, now_ms)
    assert len(due) <= DUE_LISTED_MAX
    assert due[-1].at_ms <= now_ms
    times = times_of(row(cron))
    following = times.next_ms(due[-1].at_ms)
    assert following is not None
    assert following > now_ms
    before = times.between(SUNDAY_NOON_MS, due[0].at_ms - 1, 2 * 10**6 if cron[0] == "0" else 0)
    assert earlier == len(before) or cron[0] != "0"
    if back_ms < 24 * HOUR_MS:
        assert due[-1].at_ms == now_ms - back_ms


def test_a_delay_is_the_same_each_time_and_another_for_each_due_time() -> None:
    schedule = row("*/5 * * * *", jitter_ms=4 * MINUTE_MS)
    at = [SUNDAY_NOON_MS + 5 * each * MINUTE_MS for each in range(50)]
    delays = [delay_ms(schedule, each) for each in at]
    assert delays == [delay_ms(schedule, each) for each in at]
    assert all(0 <= delay < 4 * MINUTE_MS for delay in delays)
    assert len(set(delays)) > 40


def test_a_due_time_whose_delay_is_not_over_has_not_come() -> None:
    schedule = row("0 * * * *", jitter_ms=HOUR_MS // 2)
    first_ms = SUNDAY_NOON_MS + HOUR_MS
    delay = delay_ms(schedule, first_ms)
    assert delay > 0
    times = times_of(schedule)
    assert come(schedule, times, SUNDAY_NOON_MS, first_ms + delay - 1) == ((), 0)
    assert come(schedule, times, SUNDAY_NOON_MS, first_ms + delay)[0] == (Due(first_ms, delay),)
