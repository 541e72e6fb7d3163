"""Records that the cursor passes by, because they come in their own time.

There are two kinds. What a user refused under an older grant rests until the time that was chosen.
And a record that kills its consumer vanishes with it, together with its neighbours: what several
clients vanished with, and nobody answered for, is a *suspect*. It rests for as long as its attempts
say and comes *alone*, with no other suspect; the rest of the stream goes on around it.

Invariants: nothing is released before its time, or before the cursor has passed it, so a client's
frontier stays true. Of the suspects, one is on its way or out at a time. This module does not know
what else is out.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Self

from dss_core.progress import Progress, Range, Ranges, complement, normalised
from dssd.limits import ISOLATE_AFTER_DOUBTS
from dssd.machines.attempts import Attempts
from dssd.machines.delivery.durable_rests import DurableRests
from dssd.machines.delivery.retry import backoff_ms

Waiting = tuple[int, int, int]
"""Due at, start, end."""


class HeldBack:
    """The records of one grant that wait for their own time."""

    __slots__ = ("_alone", "_rests", "_suspects")

    def __init__(self, rests: Iterable[Waiting], suspects: Iterable[Waiting]) -> None:
        self._rests = list(rests)
        self._suspects = list(suspects)
        heapify(self._rests)
        heapify(self._suspects)
        self._alone: int | None = None
        """The suspect that is on its way or out."""

    @classmethod
    def of_grant(cls, rests: DurableRests, doubts: Attempts, now_ms: int) -> Self:
        """What a grant begins with: what rests, and what so many clients vanished with."""
        # A suspect that rests comes after its rest, and only once.
        resting = rests.ranges()
        return cls(
            ((due_ms, start, end) for start, end, due_ms in rests),
            (
                (now_ms + backoff_ms(count), low, high)
                for start, end, count in doubts
                if count >= ISOLATE_AFTER_DOUBTS
                for low, high in complement(resting, start, end)
            ),
        )

    def ranges(self) -> Ranges:
        """The offsets that wait."""
        return normalised((start, end) for _, start, end in (*self._rests, *self._suspects))

    @property
    def alone(self) -> int | None:
        """The suspect that is on its way or out."""
        return self._alone

    def held(self, offset: int) -> tuple[bool, int] | None:
        """Whether an offset that waits is a suspect, and when it is due."""
        for suspect, waiting in ((False, self._rests), (True, self._suspects)):
            for due_ms, start, end in waiting:
                if start <= offset < end:
                    return suspect, due_ms
        return None

    def next_ms(self, cursor: int) -> int | None:
        """When something may be released; the cursor must have passed it."""
        heads = [self._rests] if self._alone is not None else [self._rests, self._suspects]
        times = [heap[0][0] for heap in heads if heap and heap[0][1] < cursor]
        return min(times, default=None)

    def release(self, progress: Progress, cursor: int, now_ms: int) -> list[Range]:
        """What may come now; it waits no longer."""
        released: list[Range] = []
        while _is_due(self._rests, cursor, now_ms):
            due_ms, start, end = heappop(self._rests)
            if cursor < end:
                heappush(self._rests, (due_ms, cursor, end))
            released.append((start, min(cursor, end)))
        while self._alone is None and _is_due(self._suspects, cursor, now_ms):
            due_ms, start, end = heappop(self._suspects)
            if start + 1 < end:
                heappush(self._suspects, (due_ms, start + 1, end))
            if not progress.is_acked(start):
                self._alone = start
                released.append((start, start + 1))
        return released

    def settled(self, start: int, end: int) -> None:
        """The records are acknowledged, refused or gone."""
        if self._alone is not None and start <= self._alone < end:
            self._alone = None


def _is_due(heap: list[Waiting], cursor: int, now_ms: int) -> bool:
    return bool(heap) and heap[0][0] <= now_ms and heap[0][1] < cursor
