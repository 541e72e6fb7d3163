"""Forecasts when a lag will be gone, for lists, pages, filters and the dashboard.

Invariant: pure. There is no forecast for a lag younger than the averaging time of its rates: a
record or two in flight are no backlog.
"""

from collections.abc import Sequence
from math import inf

STANDS_RECORDS_S = 1 / 60
"""Rates below this count as zero: one record in that minute."""


FORECAST_AFTER_MS = 60_000
"""How old the oldest record of a lag is before anything is forecast: the minute that the rates of
the forecast are averaged over."""


def drained_in_ms(
    lag: int,
    drain_ms: float | None,
    age_ms: float | None,
    arrivals: Sequence[float],
    acks: Sequence[float],
) -> float | None:
    """Time until a lag is gone; infinite if it does not shrink, None: unknown.

    Rates are records a second over a minute and over five; `drain_ms` is how long it takes as the
    last minute went, None where it did not shrink, and `age_ms` how old its oldest record is.
    """
    if not lag:
        return 0
    if age_ms is None or age_ms < FORECAST_AFTER_MS:
        return None
    if drain_ms is not None:
        return drain_ms
    growth = (came - done for came, done in zip(arrivals, acks, strict=True))
    stands = acks[0] < STANDS_RECORDS_S
    return inf if stands or all(more >= STANDS_RECORDS_S for more in growth) else None
