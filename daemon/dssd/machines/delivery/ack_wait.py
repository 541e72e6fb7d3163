"""Ack waits: when a record that was handed out and not settled is sent again.

Invariant: the waits of a stream are disjoint ranges of offsets, in order. This module does not know
what was acknowledged above the ack floor: an expired range may be settled already.
"""

from bisect import bisect_left, bisect_right

from dss_core.progress import Range
from dssd.machines.start_point import OFFSET_MAX

ACK_WAIT_GRAIN_MS = 50
"""Hand-outs this near to each other share one ack wait, or a busy stream would keep thousands."""


ACK_WAIT_GRAINS = 256
"""A long ack wait is kept coarser, so that its entries stay this few."""


class AckWaits:
    """Deadlines of what was handed out, by offset: disjoint ranges, in order."""

    __slots__ = ("_grain_ms", "_next_ms", "_wait_ms", "_waits")

    def __init__(self, wait_ms: int) -> None:
        self._wait_ms = wait_ms
        self._grain_ms = max(ACK_WAIT_GRAIN_MS, wait_ms // ACK_WAIT_GRAINS)
        # (start, end, deadline, first handed out at)
        self._waits: list[tuple[int, int, int, int]] = []
        self._next_ms: int | None = None
        """No deadline is earlier, except those within one grain of the last look."""

    @property
    def wait_ms(self) -> int:
        """How long each lasts."""
        return self._wait_ms

    def handed_out(self, start: int, end: int, now_ms: int) -> None:
        """The wait of the range begins now."""
        waits = self._waits
        deadline_ms = now_ms + self._wait_ms
        if not waits:
            self._next_ms = deadline_ms
        elif waits[-1][1] == start:
            low, _, _, since_ms = waits[-1]
            if now_ms - since_ms < self._grain_ms:
                waits[-1] = (low, end, deadline_ms, since_ms)
                return
        elif start < waits[-1][1]:
            first, last, left, right = self._around(start, end)
            waits[first:last] = [*left, (start, end, deadline_ms, now_ms), *right]
            return
        waits.append((start, end, deadline_ms, now_ms))

    def next_ms(self) -> int | None:
        """When to ask what has expired."""
        return self._next_ms

    def at(self, offset: int) -> tuple[int, int] | None:
        """When the wait of an offset began, and when it ends."""
        index = bisect_right(self._waits, offset, key=lambda wait: wait[1])
        if index == len(self._waits) or self._waits[index][0] > offset:
            return None
        _, _, deadline_ms, since_ms = self._waits[index]
        return since_ms, deadline_ms

    def settled_below(self, floor: int) -> None:
        """Forget waits that lie below the ack floor."""
        waits = self._waits
        settled = 0
        while settled < len(waits) and waits[settled][1] <= floor:
            settled += 1
        if settled:
            del waits[:settled]
            if not waits:
                self._next_ms = None

    def expired(self, now_ms: int, most: int = OFFSET_MAX) -> list[Range]:
        """Take the ranges whose wait ran out, in order, at most so many offsets in one call."""
        if self._next_ms is None or now_ms < self._next_ms:
            return []
        over: list[Range] = []
        left: list[tuple[int, int, int, int]] = []
        for wait in self._waits:
            start, end, deadline_ms, since_ms = wait
            cut = start if deadline_ms > now_ms else min(end, start + most)
            if start < cut:
                over.append((start, cut))
                most -= cut - start
            if cut < end:
                left.append((cut, end, deadline_ms, since_ms))
        self._waits = left
        # A look costs time for each wait, so there is at most one look in a grain.
        soonest_ms = min((wait[2] for wait in self._waits), default=None)
        self._next_ms = None if soonest_ms is None else max(soonest_ms, now_ms + self._grain_ms)
        return over

    def last(self, wait_ms: int) -> None:
        """Change the ack wait; each wait counts from when it began."""
        later_ms = wait_ms - self._wait_ms
        self._wait_ms = wait_ms
        self._grain_ms = max(ACK_WAIT_GRAIN_MS, wait_ms // ACK_WAIT_GRAINS)
        self._waits = [
            (start, end, deadline_ms + later_ms, since_ms)
            for start, end, deadline_ms, since_ms in self._waits
        ]
        self._next_ms = min((wait[2] for wait in self._waits), default=None)

    def clear(self) -> None:
        """Forget all waits."""
        self._waits.clear()
        self._next_ms = None

    def _around(
        self, start: int, end: int
    ) -> tuple[int, int, list[tuple[int, int, int, int]], list[tuple[int, int, int, int]]]:
        """The indices of the waits that overlap the range, and their remainders on both sides."""
        waits = self._waits
        first = bisect_right(waits, start, key=lambda wait: wait[1])
        last = max(first, bisect_left(waits, end, key=lambda wait: wait[0]))
        met = waits[first:last]
        left = [(low, start, at, since) for low, _, at, since in met[:1] if low < start]
        right = [(end, high, at, since) for _, high, at, since in met[-1:] if high > end]
        return first, last, left, right
