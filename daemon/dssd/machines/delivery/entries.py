"""The entries of a retry queue that wait for their time, and how often each failed.

Invariants: an entry becomes due once, at its time, in the order of times; `attempts` has each entry
from then until it is settled. At most `ENTRIES_DUE_MAX` are due at once: the queue may hold a
million, and each delivery goes through all that are due. An entry that was settled before its time
stays in the heap until then, and is skipped. While an entry is being copied it does not become due,
or it would be sent from both places. This module does not know what becomes of due entries.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from dss_core.progress import Progress, Ranges, covers, normalised, total
from dssd.machines.delivery.events import Entry, MovePiece

ENTRIES_DUE_MAX = 4_096
"""How many entries of a retry queue are due at once; others wait though their time has come."""


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
        """Entries that are being copied, and whose time has come."""
        self.wall_ahead_ms = wall_ahead_ms
        self.attempts: dict[int, int] = {}
        """By offset: failures so far of entries that are due, out, or being moved."""
        self.records = 0
        self.bytes = 0
        """The size of all entries that are not settled."""

    def add(self, entries: Sequence[Entry]) -> None:
        """Add entries, each due at its time."""
        self.count(entries)
        for each in entries:
            self.wait(each.offset, each.due_ms, each.attempt)

    def wait(self, offset: int, due_at_ms: int, attempt: int) -> None:
        """A counted entry becomes due at this time of the wall clock."""
        due_ms = max(due_at_ms - self.wall_ahead_ms, 0)
        packed = (due_ms << _OFFSET_BITS | offset) << _ATTEMPT_BITS | min(attempt, _ATTEMPT_MAX)
        heappush(self._waiting, packed)

    def ask(self, entries: Sequence[Entry]) -> None:
        """Add entries whose time another part watches."""
        self.count(entries)
        self.attempts.update((each.offset, each.attempt) for each in entries)

    def count(self, entries: Sequence[Entry]) -> None:
        """Count entries whose due time `wait` names later."""
        self.records += len(entries)
        self.bytes += sum([each.size for each in entries])

    def forget(self, ranges: Ranges) -> None:
        """The entries are settled, or lost."""
        for start, end in ranges:
            for offset in range(start, end):
                self.attempts.pop(offset, None)
        left = max(self.records - total(ranges), 0)
        # Sizes are not kept by entry: each counts as the average.
        self.bytes = self.bytes * left // max(self.records, 1)
        self.records = left

    def moving(self, pieces: Sequence[MovePiece]) -> None:
        """These pieces are being moved now; entries put off for earlier copies wait again."""
        copied = (piece for piece in pieces if piece.is_copied)
        self._copied = normalised((piece.start, piece.end) for piece in copied)
        for packed in self._put_off:
            heappush(self._waiting, packed)
        self._put_off.clear()

    def next_ms(self) -> int | None:
        """When the next entry is due; None while as many are due as may be."""
        if not self._waiting or len(self.attempts) >= ENTRIES_DUE_MAX:
            return None
        return self._waiting[0] >> (_OFFSET_BITS + _ATTEMPT_BITS)

    def take_due(self, progress: Progress, now_ms: int) -> Ranges:
        """Take the unsettled entries whose time has come."""
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
        """``[start, end)`` by number of failures: those of the entry plus those of ``counted``."""
        found: list[tuple[int, int, int]] = []
        for low, high, count in counted(start, end):
            for offset in range(low, high):
                failures = count + self.attempts.get(offset, 0)
                if found and found[-1][1] == offset and found[-1][2] == failures:
                    found[-1] = (found[-1][0], offset + 1, failures)
                else:
                    found.append((offset, offset + 1, failures))
        return found
