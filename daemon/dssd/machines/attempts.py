"""Counts of unacknowledged records, as entries (start, end, count).

An *attempt* is a hand-out of a record to the user that is known or in doubt; a *failure* is an
attempt that surely failed because of this record. Reports of one stream may come late or doubled,
and a count never goes down; so two reports are merged by taking the higher count of each record.
Due times of resting records are kept and merged in the same way: the later time wins. Invariant:
entries are sorted and disjoint, have a count of at least 1, and cover no acknowledged offset.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from dss_core.progress import Progress, Ranges, complement, without

Entry = tuple[int, int, int]
Attempts = tuple[Entry, ...]
"""Of unacked records: (start, end, count), sorted, disjoint, count at least 1."""


class Due(NamedTuple):
    """When a record that rests is sent again. The later one is greater."""

    at_ms: int
    """By the wall clock as it was when the record was refused."""
    delay_ms: int
    """The delay that was asked for: it never rests for longer, however the clock is set."""


Rests = tuple[tuple[int, int, Due], ...]
"""Of unacked records that rest: (start, end, due), sorted, disjoint."""

Count = TypeVar("Count", int, Due)
CountOf = tuple[int, int, Count]


def merged_attempts(
    mine: tuple[CountOf[Count], ...], other: tuple[CountOf[Count], ...], progress: Progress
) -> tuple[CountOf[Count], ...]:
    """The higher count of each record that the progress leaves unacknowledged."""
    if mine is other or mine == other or not (mine and other):
        return unacked_attempts(mine or other, progress)
    return unacked_attempts(_joined(mine, other), progress)


def _joined(
    mine: tuple[CountOf[Count], ...], other: tuple[CountOf[Count], ...]
) -> Iterator[CountOf[Count]]:
    """Equal entries, as most are, take one step each: both sides may have thousands."""
    of_mine, of_other = iter(mine), iter(other)
    left, right = next(of_mine, None), next(of_other, None)
    while left is not None and right is not None:
        if left == right:
            yield left
            left, right = next(of_mine, None), next(of_other, None)
        elif left[0] != right[0]:
            first, second = (left, right) if left[0] < right[0] else (right, left)
            end = min(first[1], second[0])
            yield first[0], end, first[2]
            rest = (end, first[1], first[2]) if end < first[1] else None
            if first is left:
                left = rest or next(of_mine, None)
            else:
                right = rest or next(of_other, None)
        else:
            start, end = left[0], min(left[1], right[1])
            yield start, end, max(left[2], right[2])
            left = (end, left[1], left[2]) if end < left[1] else next(of_mine, None)
            right = (end, right[1], right[2]) if end < right[1] else next(of_other, None)
    if left is not None:
        yield left
    if right is not None:
        yield right
    yield from of_mine
    yield from of_other


def unacked_attempts(
    entries: Iterable[CountOf[Count]], progress: Progress
) -> tuple[CountOf[Count], ...]:
    """The entries without what is acknowledged; neighbours of one count are joined."""
    kept: list[CountOf[Count]] = []
    floor, ranges = progress.floor, progress.ranges
    at = 0
    for start, end, count in entries:
        low = start if start > floor else floor
        if low >= end:
            continue
        while at < len(ranges) and ranges[at][1] <= low:
            at += 1
        if at == len(ranges) or ranges[at][0] >= end:
            _keep(kept, low, end, count)
            continue
        for open_from, open_to in complement(ranges, low, end):
            _keep(kept, open_from, open_to, count)
    return tuple(kept)


def _keep(kept: list[CountOf[Count]], start: int, end: int, count: Count) -> None:
    if kept and kept[-1][1] == start and kept[-1][2] == count:
        kept[-1] = (kept[-1][0], end, count)
    else:
        kept.append((start, end, count))


def without_rests(rests: Rests, ranges: Ranges) -> Rests:
    """The rests of all but these offsets."""
    return tuple(
        (low, high, due)
        for start, end, due in rests
        for low, high in without(((start, end),), ranges)
    )
