"""Records that the cursor passes by, because they come in their own time.

There are two kinds. What a user refused under an older grant rests until the time that was chosen.
And a record that kills its consumer vanishes with it, together with its neighbours: what several
clients vanished with, and nobody answered for, is a *suspect*. From the last of them on it rests
for as long as its doubts say, over all grants, and comes *alone*, with no other suspect; the rest
of the stream goes on around it.

Invariants: nothing is released before its time, or before the cursor has passed it, so a client's
frontier stays true. Of the suspects of a grant, and of all that share its turn, one is on its way
or out at a time. This module does not know what else is out.
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

    One that the cursor has not passed yet is not in the way of those that it has.
    """

    __slots__ = ("_ahead", "_passed")

    def __init__(self, ranges: Iterable[Waiting]) -> None:
        self._passed: list[Waiting] = []
        """The one that is due first is first."""
        self._ahead = [(start, end, due_ms) for due_ms, start, end in ranges]
        """The one that the cursor meets first is first."""
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
        """A range that may come now; it waits no longer."""
        self._pass(cursor)
        if self._passed and self._passed[0][0] <= now_ms:
            return heappop(self._passed)
        return None

    def put_back(self, left: Waiting) -> None:
        """What is left of a range that was taken waits on, or what the cursor has passed too."""
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
    """Of the suspects that share it, one is on its way or out at a time."""

    __slots__ = ("freed", "taken")

    def __init__(self) -> None:
        self.taken = False
        self.freed = False
        """Since somebody looked: the next one may come."""

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
        """What a grant begins with: what rests, and what so many clients vanished with."""
        suspects = normalised(
            (start, end) for start, end, count in doubts if count >= ISOLATE_AFTER_DOUBTS
        )
        # Those without a rest have had it, under the grants before: they are next.
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
        """What rests, and the suspects: others bring them."""
        return self._rests.take_all(), self._suspects.take_all()

    def put(self, waiting: Waiting, *, is_suspect: bool) -> None:
        """This waits from now on, and the cursor has passed it."""
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
        """When something may be released; the cursor must have passed it."""
        lines = [self._rests] if self.turn.taken else [self._rests, self._suspects]
        times = [line.next_ms(cursor) for line in lines]
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def release(self, progress: Progress, cursor: int, now_ms: int) -> list[Range]:
        """What may come now; it waits no longer."""
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
        """Whatever is on its way or out is not any more."""
        if self._alone is not None:
            self._alone = None
            self.turn.free()
