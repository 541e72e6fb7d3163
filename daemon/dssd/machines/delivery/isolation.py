"""Suspects that come alone: records that several clients vanished with, and nobody answered for.

A record that kills its consumer vanishes with it, together with its neighbours. After
`ISOLATE_AFTER_DOUBTS` such ends it rests for as long as its attempts say, and comes then with no
other of its kind; the rest of the stream goes on around it. Invariant: at most one of them is on
its way or out at a time. This module does not know what else is out.
"""

from collections.abc import Iterable
from heapq import heapify, heappop

from dss_core.progress import Progress, Range, Ranges, normalised


class Isolation:
    """The suspects of one grant that come one at a time."""

    __slots__ = ("_released", "_waiting")

    def __init__(self, waiting: Iterable[tuple[int, int, int]]) -> None:
        self._waiting = list(waiting)
        """(due at, start, end), a heap."""
        heapify(self._waiting)
        self._released: int | None = None

    def ranges(self) -> Ranges:
        """The offsets that wait."""
        return normalised((start, end) for _, start, end in self._waiting)

    def next_ms(self) -> int | None:
        """When the next one may come."""
        return self._waiting[0][0] if self._waiting and self._released is None else None

    def release(self, progress: Progress, now_ms: int) -> Range | None:
        """The one that may come now, if its time has come and no other is out."""
        while self._released is None and self._waiting and self._waiting[0][0] <= now_ms:
            due_ms, start, end = heappop(self._waiting)
            if start + 1 < end:
                # The same time, and a greater offset: the heap stays as it was otherwise.
                self._waiting.append((due_ms, start + 1, end))
                heapify(self._waiting)
            if not progress.is_acked(start):
                self._released = start
                return start, start + 1
        return None

    def settled(self, start: int, end: int) -> None:
        """The records are acknowledged, refused or given up."""
        if self._released is not None and start <= self._released < end:
            self._released = None
