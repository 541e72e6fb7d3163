"""The entries of a retry queue that wait for their time, and how often each failed.

Invariants: an entry is asked for once, at its time, in the order of times; `attempts` knows those
that were, until they are settled. At most `ENTRIES_DUE_MAX` are due at once: the queue may hold a
million, and what is due is gone through again with each delivery. An entry that was settled before
its time stays here until then, and is passed by; one of which a copy is on its way does not come
before that is answered, or it would come from both places. This module does not know what becomes
of them.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from dss_core.progress import Progress, Ranges, covers, normalised, total
from dssd.machines.delivery.events import Entry, MovePiece

ENTRIES_DUE_MAX = 4_096
"""So many entries of a retry queue are asked for at once; the others wait though it is time."""


_ATTEMPT_BITS = 12
_ATTEMPT_MAX = (1 << _ATTEMPT_BITS) - 1
_OFFSET_BITS = 48
"""An entry is one number: when it is due, its offset, how often it failed."""


class WaitingEntries:
    """The entries of one retry queue."""

    __slots__ = (
        "_copied", "_put_off", "_waiting", "attempts", "bytes", "records", "wall_ahead_ms",
    )  # fmt: skip

    def __init__(self, wall_ahead_ms: int) -> None:
        self._waiting: list[int] = []
        self._copied: Ranges = ()
        self._put_off: list[int] = []
        """Of these copies are on their way, and their time has come."""
        self.wall_ahead_ms = wall_ahead_ms
        self.attempts: dict[int, int] = {}
        """By offset: of those that are due, out, or on their way to a queue."""
        self.records = 0
        self.bytes = 0
        """Of all that are not settled."""

    def add(self, entries: Sequence[Entry]) -> None:
        """More, each due at its time."""
        self.count(entries)
        for each in entries:
            self.wait(each.offset, each.due_ms, each.attempt)

    def wait(self, offset: int, due_at_ms: int, attempt: int) -> None:
        """One that is counted is due at its time, by the wall clock."""
        due_ms = max(due_at_ms - self.wall_ahead_ms, 0)
        packed = (due_ms << _OFFSET_BITS | offset) << _ATTEMPT_BITS | min(attempt, _ATTEMPT_MAX)
        heappush(self._waiting, packed)

    def ask(self, entries: Sequence[Entry]) -> None:
        """More, which others bring at their time."""
        self.count(entries)
        self.attempts.update((each.offset, each.attempt) for each in entries)

    def count(self, entries: Sequence[Entry]) -> None:
        """More, of which it is said later when they are due."""
        self.records += len(entries)
        self.bytes += sum([each.size for each in entries])

    def forget(self, ranges: Ranges) -> None:
        """They are settled, or lost."""
        for start, end in ranges:
            for offset in range(start, end):
                self.attempts.pop(offset, None)
        left = max(self.records - total(ranges), 0)
        # Sizes are not kept by entry: each counts as the average.
        self.bytes = self.bytes * left // max(self.records, 1)
        self.records = left

    def moving(self, pieces: Sequence[MovePiece]) -> None:
        """This alone is on its way: what was put off for copies before comes now."""
        copied = (piece for piece in pieces if piece.is_copied)
        self._copied = normalised((piece.start, piece.end) for piece in copied)
        for packed in self._put_off:
            heappush(self._waiting, packed)
        self._put_off.clear()

    def next_ms(self) -> int | None:
        """When the next one is due; None while enough are."""
        if not self._waiting or len(self.attempts) >= ENTRIES_DUE_MAX:
            return None
        return self._waiting[0] >> (_OFFSET_BITS + _ATTEMPT_BITS)

    def take_due(self, progress: Progress, now_ms: int) -> Ranges:
        """Those whose time has come, as far as they are not settled; they wait no longer."""
        due: list[tuple[int, int]] = []
        while (at_ms := self.next_ms()) is not None and at_ms <= now_ms:
            packed = heappop(self._waiting)
            offset = packed >> _ATTEMPT_BITS & (1 << _OFFSET_BITS) - 1
            if covers(self._copied, offset):
                self._put_off.append(packed)
            elif not progress.is_acked(offset):
                self.attempts[offset] = packed & _ATTEMPT_MAX
                due.append((offset, offset + 1))
        return normalised(due)

    def failures(
        self, start: int, end: int, counted: Callable[[int, int], list[tuple[int, int, int]]]
    ) -> list[tuple[int, int, int]]:
        """``[start, end)`` by how often it failed: before, and as ``counted`` here."""
        found: list[tuple[int, int, int]] = []
        for low, high, count in counted(start, end):
            for offset in range(low, high):
                failures = count + self.attempts.get(offset, 0)
                if found and found[-1][1] == offset and found[-1][2] == failures:
                    found[-1] = (found[-1][0], offset + 1, failures)
                else:
                    found.append((offset, offset + 1, failures))
        return found
