"""When a lag is gone, and when nobody can say."""

from math import inf

import pytest

from dss_core.forecast import FORECAST_AFTER_MS, drained_in_ms

OLD_MS = FORECAST_AFTER_MS
LEVEL = (10.0, 10.0)


@pytest.mark.parametrize(
    ("lag", "drain_ms", "age_ms", "arrivals", "acks", "told"),
    [
        (0, 0, None, LEVEL, LEVEL, 0),
        (1, None, OLD_MS - 1, (10.1, 10.1), LEVEL, None),
        (1, 16_000, OLD_MS - 1, LEVEL, LEVEL, None),
        (9, 16_000, OLD_MS, LEVEL, (10.5, 10), 16_000),
        (9, None, None, (11, 11), LEVEL, None),
        (9, None, OLD_MS, (11, 11), LEVEL, inf),
        (9, None, OLD_MS, (11, 9), LEVEL, None),
        (9, None, OLD_MS, LEVEL, LEVEL, None),
        (9, None, OLD_MS, (0, 0), (0, 0), inf),
        (9, None, OLD_MS, (0, 5), (0.01, 9), inf),
    ],
    ids=[
        "there is none",
        "one record in flight, by chance more came",
        "one record in flight, by chance more was done",
        "it shrinks",
        "nobody knows how old it is",
        "it grows",
        "it grew only just now",
        "it stays as it is",
        "nobody does anything",
        "nobody does anything any more",
    ],
)
def test_a_lag_is_forecast_where_its_minute_says_something(
    lag: int,
    drain_ms: int | None,
    age_ms: int | None,
    arrivals: tuple[float, float],
    acks: tuple[float, float],
    told: float | None,
) -> None:
    assert drained_in_ms(lag, drain_ms, age_ms, arrivals, acks) == told
