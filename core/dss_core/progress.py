"""Sets of offsets, and how far a stream was consumed.

Progress is an *ack floor*, the first offset that is not acknowledged, and the acknowledged
ranges above it::

    offset   0 1 2 3 4 5 6 7 8 9
    acked    # # # # . # # . . .      floor 4, ranges ((5, 7),)

A range is half-open ``(start, end)``; ranges are sorted, disjoint, and never touch each other or
the floor. Progress only grows: `Progress.merged` is a least upper bound, so late, doubled and
reordered reports are harmless.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

RANGES_JOINED_SINGLY_PART = 8
"""New acked ranges that are at most this part of the known ones are put in their places one by one:
it costs some eight times as much each as to sort all of them anew (measured)."""


Range = tuple[int, int]
Ranges = tuple[Range, ...]


def normalised(ranges: Iterable[Range]) -> Ranges:
    """Sort the ranges, drop empty ones, join those that overlap or touch."""
    joined: list[Range] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)


def runs_of(offsets: Sequence[int]) -> Ranges:
    """Ascending offsets as ranges."""
    if offsets and offsets[-1] - offsets[0] == len(offsets) - 1:
        return ((offsets[0], offsets[-1] + 1),)
    found: list[Range] = []
    start = end = -1
    for at in offsets:
        if at != end:
            if start >= 0:
                found.append((start, end))
            start = at
        end = at + 1
    if start >= 0:
        found.append((start, end))
    return tuple(found)


def complement(ranges: Ranges, start: int, end: int) -> Ranges:
    """The parts of ``[start, end)`` that no range covers. The ranges must be normalised."""
    gaps: list[Range] = []
    at = start
    for index in range(_first_above(ranges, start), len(ranges)):
        low, high = ranges[index]
        if low >= end:
            break
        if low > at:
            gaps.append((at, low))
        at = high
    if at < end:
        gaps.append((at, end))
    return tuple(gaps)


def clipped(ranges: Ranges, start: int, end: int) -> Ranges:
    """The parts of the ranges that lie in ``[start, end)``. The ranges must be normalised."""
    if start >= end:
        return ()
    first, last = _first_above(ranges, start), bisect_left(ranges, (end,))
    if first >= last:
        return ()
    inside = ranges[first:last]
    (low, head_end), (tail_start, high) = inside[0], inside[-1]
    if low >= start and high <= end:
        return inside
    if last - first == 1:
        return ((max(low, start), min(high, end)),)
    return ((max(low, start), head_end), *inside[1:-1], (tail_start, min(high, end)))


def without(ranges: Ranges, gone: Ranges) -> Ranges:
    """The parts of the ranges that others do not cover. Both must be normalised."""
    if not gone or not ranges:
        return ranges
    left: list[Range] = []
    at, last = 0, len(gone)
    for start, end in ranges:
        # Of thousands of ranges others may cover few: those between are not looked up.
        if (at < last and gone[at][1] <= start) or (at and gone[at - 1][1] > start):
            at = _first_above(gone, start)
        if at == last or gone[at][0] >= end:
            left.append((start, end))
        else:
            left.extend(complement(gone, start, end))
    return tuple(left)


def _first_above(ranges: Ranges, offset: int) -> int:
    """The index of the first range that ends above the offset."""
    index = bisect_left(ranges, (offset,))
    return index - 1 if index and ranges[index - 1][1] > offset else index


def _join(known: list[Range], start: int, end: int) -> None:
    """Put a range in its place among normalised ones, as one with those that it meets."""
    first, last = bisect_left(known, (start,)), bisect_left(known, (end + 1,))
    if first and known[first - 1][1] >= start:
        first -= 1
    if first < last:
        start, end = min(start, known[first][0]), max(end, known[last - 1][1])
    known[first:last] = [(start, end)]


def covers(ranges: Ranges, offset: int) -> bool:
    """Whether a range holds the offset."""
    return any(low <= offset < high for low, high in ranges)


def total(ranges: Ranges) -> int:
    """How many offsets the ranges hold."""
    return sum(high - low for low, high in ranges)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one stream was consumed."""

    floor: int
    """The first offset that is not acknowledged."""
    ranges: Ranges = ()
    """Acknowledged ranges above the floor, normalised, none touching it."""

    def merged(self, other: "Progress") -> "Progress":
        """What both together have acknowledged."""
        # Most reports say nothing new, or all that is known and more.
        if other.floor <= self.floor and not other.ranges:
            return self
        if self.floor <= other.floor and not self.ranges:
            return other
        return self.with_acked(((0, other.floor), *other.ranges))

    def with_acked(self, ranges: Iterable[Range]) -> "Progress":
        """This progress with further ranges acknowledged."""
        new = normalised(ranges)
        if not new:
            return self
        if len(new) * RANGES_JOINED_SINGLY_PART > len(self.ranges):
            known = list(normalised((*self.ranges, *new)))
        else:
            known = list(self.ranges)
            for start, end in new:
                _join(known, start, end)
        below = bisect_left(known, (self.floor + 1,))
        floor = max(self.floor, known[below - 1][1]) if below else self.floor
        return Progress(floor, tuple(known[below:]))

    def without(self, gone: Ranges) -> "Progress":
        """This progress with offsets that are no longer acknowledged; ``gone`` is normalised."""
        left = without((*(((0, self.floor),) if self.floor else ()), *self.ranges), gone)
        return Progress(0).with_acked(left)

    def unacked(self, end: int) -> Ranges:
        """The ranges below ``end`` that are not acknowledged."""
        return complement(self.ranges, self.floor, end)

    def is_acked(self, offset: int) -> bool:
        """Whether the offset is acknowledged."""
        return self.first_unacked(offset) > offset

    def first_unacked(self, offset: int) -> int:
        """The first offset from this one on that is not acknowledged."""
        index = _first_above(self.ranges, offset)
        if index < len(self.ranges) and self.ranges[index][0] <= offset:
            return self.ranges[index][1]
        return max(offset, self.floor)

    def acked_in(self, start: int, end: int) -> int:
        """How many offsets in ``[start, end)`` are acknowledged."""
        below = max(0, min(end, self.floor) - start)
        if end <= self.floor or not self.ranges:
            return below
        first = bisect_right(self.ranges, start, key=_end)
        last = bisect_left(self.ranges, end, key=_start)
        inside = self.ranges[first:last]
        return below + sum(min(high, end) - max(low, start) for low, high in inside)

    def is_acked_all(self, start: int, end: int) -> bool:
        """Whether every offset in ``[start, end)`` is acknowledged."""
        return self.first_unacked(start) >= end

    def acked_count(self) -> int:
        """How many offsets are acknowledged, all below the floor among them."""
        return self.floor + total(self.ranges)

    def acked_above_floor(self) -> int:
        """How many offsets above the floor are acknowledged."""
        return total(self.ranges)


def _start(each: Range) -> int:
    return each[0]


def _end(each: Range) -> int:
    return each[1]
