"""The grammar of times."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.errors import IllegalSpan, IllegalTime
from dss_core.times import Moment, parse_span_ms, parse_time, text_of_span, text_of_us

NOW_US = 1_795_000_000_000_000


@pytest.mark.parametrize(
    ("text", "ago_s"),
    [("-15m", 900), ("-1h30m", 5_400), ("-2d", 172_800), ("-1w", 604_800), ("-500ms", 0.5)],
)
def test_a_duration_counts_back_from_now(text: str, ago_s: float) -> None:
    assert parse_time(text, now_us=NOW_US) == NOW_US - int(ago_s * 1_000_000)


def test_a_duration_with_a_plus_counts_on_from_now() -> None:
    assert parse_time("+1h30m", now_us=NOW_US) == NOW_US + 5_400_000_000


@pytest.mark.parametrize(
    ("text", "time_us"),
    [
        ("2026-11-20", 1_795_132_800_000_000),
        ("2026-11-20T08:00:00Z", 1_795_161_600_000_000),
        ("2026-11-20t08:00:00.25z", 1_795_161_600_250_000),
        ("2026-11-20 10:00:00+02:00", 1_795_161_600_000_000),
        ("@1795000000", 1_795_000_000_000_000),
        ("@1795000000.000001", 1_795_000_000_000_001),
        ("@0", 0),
    ],
)
def test_dates_and_numbers_are_points_in_utc(text: str, time_us: int) -> None:
    assert parse_time(text, now_us=NOW_US) == time_us


def test_now_and_earliest_are_markers() -> None:
    assert parse_time("now", now_us=NOW_US) is Moment.NOW
    assert parse_time("earliest", now_us=NOW_US) is Moment.EARLIEST


@pytest.mark.parametrize(
    "text",
    [
        "",
        "15m",
        "-15",
        "-15y",
        "--15m",
        "+-15m",
        "+",
        "+999999999999w",
        "-15 m",
        "1795000000",
        "@",
        "@-5",
        "@1e9",
        "@99999999999999",
        "2026-13-01",
        "2026-02-30",
        "20261120",
        "2026-11-20T08:00:00",
        "2026-11-20T08:00Z",
        "2026-11-20T25:00:00Z",
        "2026-W47",
        "1969-12-31",
        "-999999999999w",
        "Now",
        "yesterday",
        "٢٠٢٦-11-20",
        "-15m\n",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(IllegalTime):
        parse_time(text, now_us=NOW_US)


@given(st.datetimes(min_value=datetime(1970, 1, 1)))  # noqa: DTZ001 - made aware below
def test_every_rfc3339_time_since_1970_is_read_exactly(moment: datetime) -> None:
    aware = moment.replace(tzinfo=UTC)
    wanted = round((aware - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    found = parse_time(aware.isoformat(), now_us=NOW_US)
    assert isinstance(found, int)
    assert abs(found // 1_000_000 - wanted) <= 1
    assert found % 1_000_000 == aware.microsecond


@given(st.text(max_size=30))
def test_any_text_gives_a_time_or_the_condition(text: str) -> None:
    with suppress(IllegalTime):
        parse_time(text, now_us=NOW_US)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0s"),
        (999, "999ms"),
        (48_000, "48s"),
        (842_000, "14m02s"),
        (11_400_000, "3h10m"),
        (93_600_000, "1d02h"),
        (41 * 86_400_000, "41d"),
    ],
)
def test_a_duration_has_its_two_largest_units(ms: int, text: str) -> None:
    assert text_of_span(ms) == text


@pytest.mark.parametrize(
    ("text", "ms"), [("500ms", 500), ("30s", 30_000), ("1h30m", 5_400_000), ("7d", 604_800_000)]
)
def test_a_span_has_units(text: str, ms: int) -> None:
    assert parse_span_ms(text) == ms


@pytest.mark.parametrize("text", ["", "7", "7x", "-7d", "7 d", "d", "1d2", "\u0667d"])
def test_a_span_without_units_is_refused(text: str) -> None:
    with pytest.raises(IllegalSpan):
        parse_span_ms(text)


@given(st.integers(0, (1 << 63) - 1))
def test_a_time_that_is_printed_is_read_back_exactly(time_us: int) -> None:
    assert parse_time(text_of_us(time_us), now_us=NOW_US) == time_us
