"""When cron expressions fire: cron's own rules, and clocks that are moved."""

from datetime import datetime
from itertools import islice, pairwise

import pytest
from hypothesis import given, strategies

from dss_core.errors import IllegalCron, IllegalTimeZone
from dssd.schedules.cron import fire_times

BERLIN = "Europe/Berlin"
SPRING, AUTUMN = "2026-03-28T12:00:00+01:00", "2026-10-24T12:00:00+02:00"
"""The day before the clocks are moved."""


def fired(cron: str, zone: str, after: str, count: int) -> list[str]:
    times = fire_times(cron, zone)
    following = times.following(int(datetime.fromisoformat(after).timestamp() * 1_000))
    return [times.local(at_ms) for at_ms in islice(following, count)]


@pytest.mark.parametrize(
    ("cron", "after", "times"),
    [
        # The hour from 2 to 3 is left out: what is due in it runs once, when the clock is moved.
        ("30 2 * * *", SPRING, ["29T03:00:00+02:00", "30T02:30:00+02:00"]),
        ("*/20 2 * * *", SPRING, ["29T03:00:00+02:00", "30T02:00:00+02:00"]),
        # Intervals are as long as ever.
        ("30 * * * *", "2026-03-29T00:00:00+01:00", ["29T00:30:00+01:00", "29T01:30:00+01:00"]),
        ("30 * * * *", "2026-03-29T01:40:00+01:00", ["29T03:30:00+02:00", "29T04:30:00+02:00"]),
        ("0 */2 * * *", "2026-03-29T00:30:00+01:00", ["29T04:00:00+02:00", "29T06:00:00+02:00"]),
    ],
)
def test_in_spring_what_the_clock_leaves_out_runs_once_and_intervals_go_on(
    cron: str, after: str, times: list[str]
) -> None:
    assert [time[8:] for time in fired(cron, BERLIN, after, 2)] == times


@pytest.mark.parametrize(
    ("cron", "after", "times"),
    [
        # The hour from 2 to 3 comes twice: what is due in it runs the first time.
        ("30 2 * * *", AUTUMN, ["25T02:30:00+02:00", "26T02:30:00+01:00"]),
        ("0,30 2 * * *", AUTUMN, ["25T02:00:00+02:00", "25T02:30:00+02:00", "26T02:00:00+01:00"]),
        # Intervals are as long as ever.
        (
            "*/30 * * * *",
            "2026-10-25T02:20:00+02:00",
            ["25T02:30:00+02:00", "25T02:00:00+01:00", "25T02:30:00+01:00", "25T03:00:00+01:00"],
        ),
        ("0 3 * * *", AUTUMN, ["25T03:00:00+01:00", "26T03:00:00+01:00"]),
    ],
)
def test_in_autumn_what_the_clock_shows_twice_runs_once_and_intervals_go_on(
    cron: str, after: str, times: list[str]
) -> None:
    assert [time[8:] for time in fired(cron, BERLIN, after, len(times))] == times


def test_a_clock_that_is_moved_by_half_an_hour_loses_nothing() -> None:
    every = fired("* * * * *", "Australia/Lord_Howe", "2026-04-05T01:20:00+11:00", 70)
    instants = [datetime.fromisoformat(each).timestamp() for each in every]
    assert {later - sooner for sooner, later in pairwise(instants)} == {60}


@pytest.mark.parametrize(
    ("cron", "days"),
    [
        ("0 0 * * 0", ["29", "06"]),
        ("0 0 * * 7", ["29", "06"]),
        ("0 0 * * sun", ["29", "06"]),
        ("0 0 * * 1", ["23", "30"]),
        ("0 0 * * 5-7", ["27", "28", "29", "04"]),
        ("0 0 * * sat-mon", ["23", "28", "29", "30"]),
        ("0 0 * * */3", ["25", "28", "29", "02"]),
        ("0 0 * * 1-5/2", ["23", "25", "27", "30"]),
        ("0 0 1 * *", ["01", "01"]),
        # Where both days are restricted, either is enough.
        ("0 0 25 * mon", ["23", "25", "30", "07"]),
        ("@weekly", ["29", "06"]),
        ("0 0 29 FEB *", ["29", "29"]),
    ],
)
def test_days_are_those_of_cron(cron: str, days: list[str]) -> None:
    found = fired(cron, "UTC", "2026-11-22T12:00:00+00:00", len(days))
    assert [time[8:10] for time in found] == days


@pytest.mark.parametrize(
    ("cron", "why"),
    [
        ("", "0 fields"),
        ("5", "1 field, not 5"),
        ("@reboot", "a schedule runs by the clock: @yearly, .*, @hourly"),
        ("@every 5m", "it is none of these: @yearly"),
        ("* * * *", "4 fields"),
        ("0 0 30 2 *", "no such day"),
        ("60 * * * *", "60"),
        ("* 24 * * *", "24"),
        ("* * * * 8", "'8'"),
        ("* * * * *-3", "day of the week"),
        ("* * * * mon/2", "a step needs a range"),
        ("*/0 * * * *", "0"),
        ("é * * * *", "no field"),
        ("a b c d e", "'e'"),
        ("1 " * 200, "too long"),
    ],
)
def test_what_is_no_expression_is_refused(cron: str, why: str) -> None:
    with pytest.raises(IllegalCron, match=why):
        fire_times(cron, "UTC")


@pytest.mark.parametrize("zone", ["Mars/Phobos", "", "../etc/passwd", "Europe", "x" * 300, "\0"])
def test_a_time_zone_that_there_is_not_is_refused(zone: str) -> None:
    with pytest.raises(IllegalTimeZone):
        fire_times("* * * * *", zone)


@given(
    strategies.sampled_from(
        [
            "* * * * *",
            "*/7 1-3 * * *",
            "0,15,30,45 1,2,4 * * *",
            "30 2 * * *",
            "0 12 1 * mon",
            "5 0 29 2 *",
        ]
    ),
    strategies.sampled_from(["UTC", BERLIN, "Australia/Lord_Howe", "Asia/Kathmandu"]),
    strategies.sampled_from(["2026-03-26", "2026-10-23", "2026-04-03", "2028-02-27"]),
    strategies.integers(0, 5 * 24 * 3_600_000),
    strategies.integers(0, 4 * 24 * 3_600_000),
)
def test_due_times_are_counted_as_if_each_was_looked_at(
    cron: str, zone: str, day: str, after_ms: int, for_ms: int
) -> None:
    after_ms += int(datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp() * 1_000)
    times = fire_times(cron, zone)
    every = times.between(after_ms, after_ms + for_ms, 10**6)
    assert times.count(after_ms, after_ms + for_ms) == len(every)
