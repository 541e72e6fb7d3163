"""When a lag will be gone: the one forecast of lists, pages, filters and the dashboard.

Invariant: pure. Nothing is forecast of a lag that is younger than what its rates are averaged over:
a record or two that are in flight are no backlog.
"""

from collections.abc import Sequence
from math import inf

STANDS_RECORDS_S = 1 / 60
"""Records a second, less than which is standing still: one in that minute."""


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
    """Until a lag is gone; infinite where it grows or stands, None where nobody can say.

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
