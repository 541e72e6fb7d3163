"""Records to send again: how long they rest, and which are due.

Due ranges are taken in the order of offsets, in rounds, so that records which are refused over and
over, or cannot be read, do not hold up the others. Invariants: a range rests or is due, never both;
due ranges are disjoint and in order. This module does not know why a record is sent again.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from operator import itemgetter

from dss_core.progress import Range, Ranges, clipped, normalised
from dssd.limits import REDELIVERY_MS, REDELIVERY_MS_MAX


def backoff_ms(attempts: int) -> int:
    """How long a record rests after this number of attempts."""
    doublings = min(max(attempts - 1, 0), 16)
    return min(REDELIVERY_MS << doublings, REDELIVERY_MS_MAX)


Rest = tuple[int, int, int]
"""Start, end, and until when."""

_end_of = itemgetter(1)


class RestingCount:
    """How many ranges of several streams rest or are due."""

    __slots__ = ("ranges",)

    def __init__(self) -> None:
        self.ranges = 0


class Resting:
    """Ranges of one stream to send again: some rest until their time, some are due now."""

    __slots__ = ("_all", "_at", "_due", "_resting")

    def __init__(self, of_all: RestingCount) -> None:
        self._resting: list[tuple[int, int, int]] = []
        self._due: Ranges = ()
        self._at = 0
        """The offset that the present round has reached."""
        self._all = of_all

    def __len__(self) -> int:
        """How many ranges there are."""
        return len(self._resting) + len(self._due)

    def rest(self, start: int, end: int, until_ms: int) -> None:
        """The range rests until the time, and is then due."""
        heappush(self._resting, (until_ms, start, end))
        self._all.ranges += 1

    def put_off(self, ranges: Sequence[Rest]) -> list[Rest]:
        """Give the resting parts of these ranges new times; returns these parts.

        The ranges are disjoint and in order. Due ranges stay due: they may be sent already.
        """
        kept: list[tuple[int, int, int]] = []
        moved: list[Rest] = []
        for until_ms, start, end in self._resting:
            for low, high, later_ms in ranges[bisect_right(ranges, start, key=_end_of) :]:
                if low >= end:
                    break
                if start < low:
                    kept.append((until_ms, start, low))
                moved.append((max(low, start), min(high, end), later_ms))
                start = moved[-1][1]
            if start < end:
                kept.append((until_ms, start, end))
        if moved:
            kept += ((until_ms, start, end) for start, end, until_ms in moved)
            self._all.ranges += len(kept) - len(self._resting)
            self._resting = kept
            heapify(kept)
        return moved

    def next_ms(self) -> int | None:
        """When the next range becomes due."""
        return self._resting[0][0] if self._resting else None

    def until(self, offset: int) -> int | None:
        """Until when an offset rests, if it does."""
        found = (at_ms for at_ms, start, end in self._resting if start <= offset < end)
        return next(found, None)

    def wake(self, now_ms: int) -> bool:
        """Make due what has rested long enough; whether there was any."""
        awake: list[Range] = []
        while self._resting and self._resting[0][0] <= now_ms:
            _, start, end = heappop(self._resting)
            awake.append((start, end))
        if awake:
            self._all.ranges -= len(awake)
            self._set_due(normalised((*self._due, *awake)))
        return bool(awake)

    def due(self) -> Range | None:
        """The range that goes next."""
        due = self._due
        if not due:
            return None
        index = bisect_left(due, (self._at,))
        if index and due[index - 1][1] > self._at:
            index -= 1
        return due[index] if index < len(due) else due[0]

    @property
    def due_ranges(self) -> int:
        """How many ranges are due."""
        return len(self._due)

    def due_in(self, start: int, end: int) -> Ranges:
        """What of ``[start, end)`` is due."""
        return clipped(self._due, start, end)

    def took(self, start: int, end: int, left: Ranges = ()) -> None:
        """Of ``[start, end)`` only what is left is still due; if nothing is, the round goes on."""
        due = self._due
        before, after = clipped(due, 0, start), clipped(due, end, due[-1][1]) if due else ()
        self._set_due((*before, *left, *after))
        if not left:
            self._at = end

    def pass_by(self) -> None:
        """The next range cannot be read now: it stays due, and the round goes on."""
        due = self.due()
        if due is not None:
            self._at = due[1]

    def clear(self) -> None:
        """Forget all ranges."""
        self._all.ranges -= len(self)
        self._resting.clear()
        self._due = ()

    def _set_due(self, due: Ranges) -> None:
        self._all.ranges += len(due) - len(self._due)
        self._due = due
