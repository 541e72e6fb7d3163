"""What is counted of unacknowledged records, as entries (start, end, count).

An *attempt* is a hand-out of a record to the user that is known or in doubt; a *failure* is an
attempt that surely failed because of this record. Reports of one stream may come late or doubled,
and a count never goes down; so two reports are merged by taking the higher count of each record.
Invariant: entries are sorted and disjoint, have a count of at least 1, and cover no acknowledged
offset.
"""

from collections.abc import Iterable
from itertools import pairwise

from dss_core.progress import Progress, complement

Attempts = tuple[tuple[int, int, int], ...]
"""Of unacked records: (start, end, count), sorted, disjoint, count at least 1."""


def merged_attempts(mine: Attempts, other: Attempts, progress: Progress) -> Attempts:
    """The higher count of each record that the progress leaves unacknowledged."""
    if mine is other or mine == other or not (mine or other):
        return unacked_attempts(mine, progress)
    edges = sorted({edge for start, end, _ in (*mine, *other) for edge in (start, end)})
    entries: list[tuple[int, int, int]] = []
    at_mine, at_other = _Cursor(mine), _Cursor(other)
    for start, end in pairwise(edges):
        count = max(at_mine.count_at(start), at_other.count_at(start))
        if count:
            entries.append((start, end, count))
    return unacked_attempts(entries, progress)


def unacked_attempts(entries: Iterable[tuple[int, int, int]], progress: Progress) -> Attempts:
    """The entries without what is acknowledged; neighbours of one count are joined."""
    kept: list[tuple[int, int, int]] = []
    for start, end, count in entries:
        open_from = max(start, progress.floor)
        for low, high in complement(progress.ranges, open_from, end) if open_from < end else ():
            if kept and kept[-1][1] == low and kept[-1][2] == count:
                kept[-1] = (kept[-1][0], high, count)
            else:
                kept.append((low, high, count))
    return tuple(kept)


class _Cursor:
    """Reads counts at rising offsets."""

    __slots__ = ("_at", "_entries")

    def __init__(self, entries: Attempts) -> None:
        self._entries = entries
        self._at = 0

    def count_at(self, offset: int) -> int:
        while self._at < len(self._entries) and self._entries[self._at][1] <= offset:
            self._at += 1
        if self._at == len(self._entries) or self._entries[self._at][0] > offset:
            return 0
        return self._entries[self._at][2]
