"""Latency histograms: durations counted in buckets.

Invariant: noting a duration costs a search in some fifteen numbers and two additions, and memory is
fixed. One thread notes; any thread may read, and its counts differ by at most one note.
"""

from bisect import bisect_left
from collections.abc import Iterator


class Latencies:
    """Times of one kind; the bounds of the buckets rise, and there is one bucket above them."""

    __slots__ = ("_bounds_s", "_counts", "sum_s")

    def __init__(self, bounds_s: tuple[float, ...]) -> None:
        self._bounds_s = bounds_s
        self._counts = [0] * (len(bounds_s) + 1)
        self.sum_s = 0.0
        """Of all that were noted."""

    def note(self, seconds: float) -> None:
        """Note one duration."""
        self._counts[bisect_left(self._bounds_s, seconds)] += 1
        self.sum_s += seconds

    def up_to(self) -> Iterator[tuple[float | None, int]]:
        """The cumulative count for each bound; None stands for no bound."""
        known = 0
        for bound, count in zip((*self._bounds_s, None), tuple(self._counts), strict=True):
            known += count
            yield bound, known
