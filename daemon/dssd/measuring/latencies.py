"""How long something took, counted in buckets, so that it can be told later.

Invariant: to note costs a search in some fifteen numbers and two additions, and nothing else that
grows. One thread notes; any may read, and sees a count that is at most one note behind another.
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
        """It took so long once more."""
        self._counts[bisect_left(self._bounds_s, seconds)] += 1
        self.sum_s += seconds

    def up_to(self) -> Iterator[tuple[float | None, int]]:
        """How many took no longer than each bound; None stands for no bound."""
        known = 0
        for bound, count in zip((*self._bounds_s, None), tuple(self._counts), strict=True):
            known += count
            yield bound, known
