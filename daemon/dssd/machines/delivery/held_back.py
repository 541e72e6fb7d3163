"""Records that the cursor skips, because each has a time of its own to be sent at.

There are two kinds. A record that a user refused under an older grant rests until the time that the
user chose. And a record may kill its consumers: several clients vanished while it was out, with its
neighbours, and none settled it. Such a record is a *suspect* here. It waits out a backoff that
grows with the clients that vanished and outlives grants, and is then sent *alone*: with no other
suspect in flight. The rest of the stream goes on meanwhile.

Invariants: no record is released before its time, or before the cursor has passed it, so a client's
frontier stays true. Of all suspects that share a turn, one is being sent or out at a time. This
module does not know what else is out.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Self

from dss_core.progress import (
    Progress,
    Range,
    Ranges,
    clipped,
    complement,
    normalised,
    without,
)
from dssd.limits import ISOLATE_AFTER_DOUBTS
from dssd.machines.attempts import Attempts
from dssd.machines.delivery.durable_rests import DurableRests

Waiting = tuple[int, int, int]
"""Due at, start, end."""


class _Line:
    """Ranges of one kind: each waits until the cursor has passed it, and for its time.

    A range ahead of the cursor does not hold up the ranges behind it.
    """

    __slots__ = ("_ahead", "_passed")

    def __init__(self, ranges: Iterable[Waiting]) -> None:
        self._passed: list[Waiting] = []
        """Behind the cursor: a heap by due time."""
        self._ahead = [(start, end, due_ms) for due_ms, start, end in ranges]
        """Ahead of the cursor: a heap by offset."""
        heapify(self._ahead)

    def ranges(self) -> Iterator[Range]:
        """The offsets that wait."""
        yield from ((start, end) for _, start, end in self._passed)
        yield from ((start, end) for start, end, _ in self._ahead)

    def take_all(self) -> list[Waiting]:
        """Nothing waits any more."""
        waiting = [*self._passed, *((due_ms, start, end) for start, end, due_ms in self._ahead)]
        self._passed, self._ahead = [], []
        return waiting

    def due_at_ms(self, offset: int) -> int | None:
        """When an offset is due; None: it does not wait."""
        ahead = ((due_ms, start, end) for start, end, due_ms in self._ahead)
        each = (due_ms for due_ms, start, end in (*self._passed, *ahead) if start <= offset < end)
        return next(each, None)

    def next_ms(self, cursor: int) -> int | None:
        """When the next range that the cursor has passed is due."""
        self._pass(cursor)
        return self._passed[0][0] if self._passed else None

    def take_due(self, cursor: int, now_ms: int) -> Waiting | None:
        """Take a range that is due and behind the cursor."""
        self._pass(cursor)
        if self._passed and self._passed[0][0] <= now_ms:
            return heappop(self._passed)
        return None

    def put_back(self, left: Waiting) -> None:
        """A range behind the cursor waits: the rest of one that was taken, or a new one."""
        heappush(self._passed, left)

    def drop(self, start: int, end: int) -> None:
        """These wait no longer."""
        gone = ((start, end),)
        self._passed = [
            (due_ms, *left)
            for due_ms, low, high in self._passed
            for left in complement(gone, low, high)
        ]
        self._ahead = [
            (*left, due_ms)
            for low, high, due_ms in self._ahead
            for left in complement(gone, low, high)
        ]
        heapify(self._passed)
        heapify(self._ahead)

    def _pass(self, cursor: int) -> None:
        ahead = self._ahead
        while ahead and ahead[0][0] < cursor:
            start, end, due_ms = heappop(ahead)
            heappush(self._passed, (due_ms, start, min(cursor, end)))
            if cursor < end:
                heappush(ahead, (cursor, end, due_ms))


class SuspectTurn:
    """Lets one of the suspects that share it be sent and out at a time."""

    __slots__ = ("freed", "taken")

    def __init__(self) -> None:
        self.taken = False
        self.freed = False
        """A suspect was settled since the last look: the next one may be sent."""

    def free(self) -> None:
        """The suspect is settled, or gone with its grant."""
        self.taken, self.freed = False, True


class HeldBack:
    """The records of one grant that wait for their own time."""

    __slots__ = ("_alone", "_rests", "_suspects", "turn")

    def __init__(self, rests: Iterable[Waiting], suspects: Iterable[Waiting]) -> None:
        self._rests = _Line(rests)
        self._suspects = _Line(suspects)
        self._alone: int | None = None
        """The suspect that is on its way or out."""
        self.turn = SuspectTurn()

    @classmethod
    def of_grant(cls, rests: DurableRests, doubts: Attempts, now_ms: int) -> Self:
        """The records that rest, and the suspects, when the grant begins."""
        suspects = normalised(
            (start, end) for start, end, count in doubts if count >= ISOLATE_AFTER_DOUBTS
        )
        # Suspects without a rest had it under earlier grants: they are next.
        waiting = [(now_ms, low, high) for low, high in without(suspects, rests.ranges())]
        others: list[Waiting] = []
        for start, end, due_ms in rests:
            waiting += ((due_ms, low, high) for low, high in clipped(suspects, start, end))
            others += ((due_ms, low, high) for low, high in complement(suspects, start, end))
        return cls(others, waiting)

    def ranges(self) -> Ranges:
        """The offsets that wait."""
        return normalised((*self._rests.ranges(), *self._suspects.ranges()))

    def take_all(self) -> tuple[list[Waiting], list[Waiting]]:
        """Take all: the records that rest, and the suspects. Another part sends them."""
        return self._rests.take_all(), self._suspects.take_all()

    def put(self, waiting: Waiting, *, is_suspect: bool) -> None:
        """A range behind the cursor waits from now on."""
        (self._suspects if is_suspect else self._rests).put_back(waiting)

    @property
    def alone(self) -> int | None:
        """The suspect that is on its way or out."""
        return self._alone

    def held(self, offset: int) -> tuple[bool, int] | None:
        """Whether an offset that waits is a suspect, and when it is due."""
        for suspect, line in ((False, self._rests), (True, self._suspects)):
            due_ms = line.due_at_ms(offset)
            if due_ms is not None:
                return suspect, due_ms
        return None

    def next_ms(self, cursor: int) -> int | None:
        """When the next range behind the cursor may be released."""
        lines = [self._rests] if self.turn.taken else [self._rests, self._suspects]
        times = [line.next_ms(cursor) for line in lines]
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def release(self, progress: Progress, cursor: int, now_ms: int) -> list[Range]:
        """Take the ranges that may be sent now."""
        released: list[Range] = []
        while (rest := self._rests.take_due(cursor, now_ms)) is not None:
            released.append(rest[1:])
        while not self.turn.taken and (suspect := self._suspects.take_due(cursor, now_ms)):
            due_ms, start, end = suspect
            if start + 1 < end:
                self._suspects.put_back((due_ms, start + 1, end))
            if not progress.is_acked(start):
                self._alone, self.turn.taken = start, True
                released.append((start, start + 1))
        return released

    def drop(self, start: int, end: int) -> None:
        """The records do not come any more."""
        self._rests.drop(start, end)
        self._suspects.drop(start, end)

    def settled(self, start: int, end: int) -> None:
        """The records are acknowledged, refused or gone."""
        if self._alone is not None and start <= self._alone < end:
            self.leave()

    def leave(self) -> None:
        """The suspect that was being sent or out is no longer."""
        if self._alone is not None:
            self._alone = None
            self.turn.free()
