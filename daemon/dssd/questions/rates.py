"""Rates and ages from samples of a growing number: how fast it grows, and when it passed a value.

Invariant: pure, bounded in memory, and idle costs nothing: what does not change need not be
noted. Times are those of one clock that never goes back.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from math import exp
from typing import NamedTuple

RATE_SPANS_MS = (60_000, 300_000)
"""The spans over which rates are averaged: one minute, and five."""

END_SAMPLES_MAX = 64
"""How many samples are kept of each stream that grows, denser for the last minutes: a kilobyte."""


class Rates(NamedTuple):
    """Records a second, averaged over a minute and over five."""

    minute: float = 0.0
    five_minutes: float = 0.0

    def plus(self, other: "Rates") -> "Rates":
        """The sum of both."""
        return Rates(self.minute + other.minute, self.five_minutes + other.five_minutes)


NO_RATES = Rates()


class RateMeter:
    """Exponentially weighted averages, like load averages."""

    __slots__ = ("_at_ms", "_averages", "_began_ms")

    def __init__(self, now_ms: int) -> None:
        self._began_ms = self._at_ms = now_ms
        self._averages = NO_RATES

    def add(self, records: int, now_ms: int, since_ms: int = 0) -> None:
        """Add records that came since the last call, or since a later time before which none
        came."""
        if since_ms > self._at_ms:
            self._averages = Rates(*self._faded(since_ms - self._at_ms))
            self._at_ms = since_ms
        passed_ms = now_ms - self._at_ms
        if passed_ms <= 0:
            return
        rate = max(0, records) * 1_000 / passed_ms
        kept = (exp(-passed_ms / span_ms) for span_ms in RATE_SPANS_MS)
        pairs = zip(self._averages, kept, strict=True)
        self._averages = Rates(*(average * k + rate * (1 - k) for average, k in pairs))
        self._at_ms = now_ms

    def rates(self, now_ms: int) -> Rates:
        """As they are now, if nothing came since the last call of `add`."""
        age_ms, idle_ms = now_ms - self._began_ms, now_ms - self._at_ms
        if age_ms <= 0:
            return NO_RATES
        # The time before the meter began does not count as idle.
        return Rates(
            *(
                average / (1 - exp(-age_ms / span_ms))
                for average, span_ms in zip(self._faded(idle_ms), RATE_SPANS_MS, strict=True)
            )
        )

    def _faded(self, idle_ms: int) -> Iterator[float]:
        pairs = zip(self._averages, RATE_SPANS_MS, strict=True)
        return (average * exp(-idle_ms / span_ms) for average, span_ms in pairs)


class Age(NamedTuple):
    """How long ago something happened."""

    ms: int
    at_least: bool
    """It happened before the first sample."""


class EndSamples:
    """Samples of a stream's end over the last hours, denser for newer ones."""

    __slots__ = ("_at_ms", "_ends")

    def __init__(self, end: int, now_ms: int) -> None:
        self._at_ms = array("q", [now_ms])
        self._ends = array("q", [end])

    @property
    def end(self) -> int:
        """The end as it was noted last."""
        return self._ends[-1]

    def note(self, end: int, before_ms: int, now_ms: int) -> None:
        """Note the present end; until the given earlier time the end was the last noted one."""
        if end <= self._ends[-1]:
            return
        if before_ms > self._at_ms[-1]:
            self._append(before_ms, self._ends[-1])
        self._append(now_ms, end)

    def _append(self, at_ms: int, end: int) -> None:
        if len(self._ends) >= END_SAMPLES_MAX:
            half = END_SAMPLES_MAX // 2
            for column in (self._at_ms, self._ends):
                del column[1:half:2]
        self._at_ms.append(at_ms)
        self._ends.append(end)

    def age_of(self, offset: int, looked_ms: int, now_ms: int) -> Age:
        """How long ago the record at an offset below the end came.

        ``looked_ms`` is when the end was looked at last: a look that finds no change is not noted.
        """
        index = bisect_right(self._ends, offset)
        if index == 0:
            return Age(max(0, now_ms - self._at_ms[0]), at_least=True)
        if index == len(self._ends):
            return Age(max(0, now_ms - max(self._at_ms[-1], looked_ms)), at_least=False)
        low, high = self._ends[index - 1], self._ends[index]
        from_ms, to_ms = self._at_ms[index - 1], self._at_ms[index]
        at_ms = from_ms + (to_ms - from_ms) * (offset - low) // (high - low)
        return Age(max(0, now_ms - at_ms), at_least=False)
