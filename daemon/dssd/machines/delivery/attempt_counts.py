"""How many attempts each unacked record of a stream has had.

An *attempt* is a hand-out of the record to the user, known or in doubt. Below the hand-out frontier
of a stream every unacked record has had one attempt, which needs no entry. Only other counts have
entries, so a stream whose records are sent once keeps none. Invariant: entries are sorted and
disjoint, and neighbours have different counts.
"""

from bisect import bisect_left
from collections.abc import Iterable

from dssd.machines.attempts import Attempts


class AttemptCounts:
    """The attempts of unacked records, where they differ from what the frontier says."""

    __slots__ = ("_entries",)

    def __init__(self, attempts: Attempts = ()) -> None:
        self._entries: list[tuple[int, int, int]] = list(attempts)

    def __bool__(self) -> bool:
        """Whether there is any entry."""
        return bool(self._entries)

    def end(self) -> int:
        """No entry reaches to this offset or above."""
        return self._entries[-1][1] if self._entries else 0

    def entries(self) -> Attempts:
        """As the group protocol carries them."""
        return tuple(self._entries)

    def segments(self, start: int, end: int, frontier: int) -> list[tuple[int, int, int]]:
        """``[start, end)`` cut into stretches of one count, in order, without holes."""
        found: list[tuple[int, int, int]] = []
        at = start
        for low, high, count in self._between(start, end):
            found.extend(_implied(at, max(at, low), frontier))
            found.append((max(low, start), min(high, end), count))
            at = min(high, end)
        found.extend(_implied(at, end, frontier))
        return found

    def charge(self, start: int, end: int, frontier: int) -> None:
        """Count one more attempt of the records in ``[start, end)``."""
        raised = [
            (low, high, count + 1) for low, high, count in self.segments(start, end, frontier)
        ]
        self._replace(start, end, raised)

    def forget(self, start: int, end: int) -> None:
        """Drop what is known of ``[start, end)``: it was acknowledged."""
        if self._entries:
            self._replace(start, end, [])

    def _span(self, start: int, end: int) -> tuple[int, int]:
        entries = self._entries
        first = bisect_left(entries, (start,))
        if first and entries[first - 1][1] > start:
            first -= 1
        return first, max(first, bisect_left(entries, (end,)))

    def _between(self, start: int, end: int) -> list[tuple[int, int, int]]:
        first, last = self._span(start, end)
        return self._entries[first:last]

    def _replace(self, start: int, end: int, new: list[tuple[int, int, int]]) -> None:
        first, last = self._span(start, end)
        old = self._entries[first:last]
        left = [(low, start, count) for low, _, count in old[:1] if low < start]
        right = [(end, high, count) for _, high, count in old[-1:] if high > end]
        first_joined, last_joined = max(0, first - 1), min(last + 1, len(self._entries))
        joined: list[tuple[int, int, int]] = []
        before, after = self._entries[first_joined:first], self._entries[last:last_joined]
        for entry in (*before, *left, *new, *right, *after):
            if joined and joined[-1][1] == entry[0] and joined[-1][2] == entry[2]:
                joined[-1] = (joined[-1][0], entry[1], entry[2])
            else:
                joined.append(entry)
        self._entries[first_joined:last_joined] = joined


def _implied(start: int, end: int, frontier: int) -> Iterable[tuple[int, int, int]]:
    if start < min(end, frontier):
        yield start, min(end, frontier), 1
    if max(start, frontier) < end:
        yield max(start, frontier), end, 0
