"""Re-homing: the entries in the queues of a lane are moved to the queues of its children.

::

    take over the lane ─► take in what nobody reported ─► look what a crash left in the children
        ─► append the rest to the children, each entry where its key goes ─► all of it is durable

Nobody holds the lane, which is never lent again, nor any of its children. So an entry in a child
whose source is in this lane was moved by an earlier attempt, and is not moved again.

Invariants: before the place of a live entry counts as done, there is an entry for it in a child, or
it is passed over; after any failure all begins anew after a pause, and nothing is doubled; gathered
entries are bounded, for all lanes of the daemon together. This module must not know leaders, nor
how keys are routed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from dss_core.ids import StreamId
from dss_core.lane import DEAD, MAIN, RETRY
from dss_core.progress import Progress, total
from dss_core.routing import key_hash
from dssd.loop_yield import LoopTurn
from dssd.machines.delivery.unreported import Unreported, unreported_of
from dssd.machines.fate import Fate
from dssd.machines.queues import Queues, QueueState
from dssd.queues.entries import Maker, NewEntry
from dssd.queues.gathering import Gathering, TryAgain, until_done
from dssd.queues.lane import Lane, Trouble
from dssd.queues.moving import Parts
from dssd.queues.opening import Piece, entry_reading, in_order
from dssd.queues.reading import QueueReading
from dssd.queues.rehomed_entries import Making, Offsets, Record, headers, rows, said


class Child(NamedTuple):
    """A lane that gets entries."""

    queues: tuple[StreamId, StreamId]
    applied_ends: tuple[int, int]
    """Re-homed entries lie above this, unless the child was lent since."""
    progress: tuple[Progress, Progress] = (Progress(0), Progress(0))
    """Done entries there are leftovers of a re-homing that began anew."""


@dataclass(frozen=True, slots=True)
class Rehoming:
    """A request to re-home a lane."""

    lane: Lane
    progress: Progress
    """Of the stream."""
    queues: Queues
    children: tuple[Child, ...]
    child_of: Callable[[int], int]
    """The child that a key goes to, by its hash."""
    max_deliver: int


async def rehome(asked: Rehoming, parts: Parts, trouble: Trouble) -> Queues | None:
    """Re-home the lane, however long it takes; returns its queues after that.

    None: a later leader took over.

    Raises:
        StreamNotFound: a queue was removed.
    """
    lane = asked.lane.levels[RETRY], asked.lane.grant_epoch
    return await until_done(parts, lane, lambda: _Attempt(asked, parts, trouble).run())


class _Attempt:
    def __init__(self, asked: Rehoming, parts: Parts, trouble: Trouble) -> None:
        self._asked = asked
        self._parts = parts
        self._trouble = trouble
        lane, log = asked.lane, parts.log
        self._ends = {level: log.span(lane.levels[level])[1] for level in (RETRY, DEAD)}
        self._unreported = Unreported(asked.progress, asked.queues)
        hurried = asked.queues[RETRY - 1].hurried.ranges
        maker = Maker(lane, parts.clock.wall_ms(), rehomes=True, hurried=hurried)
        self._making = Making(maker, asked.queues, asked.max_deliver)
        # Under the parent's epoch: the next attempt waits for these appends before it looks.
        queues = [child.queues for child in asked.children]
        self._gathering = Gathering(queues, parts, (lane.levels[RETRY], lane.grant_epoch))
        self._skipped = 0
        self._turn = LoopTurn()

    async def run(self) -> Queues:
        """Once."""
        if all(self._floor(level) >= end for level, end in self._ends.items()):
            return self._done({})
        async with self._parts.writers.rehoming:
            await self._take_in()
            found = await self._found()
            passed = {level: await self._move(level, found[level]) for level in (RETRY, DEAD)}
            await self._gathering.append()
        return self._done(passed)

    def _floor(self, level: int) -> int:
        return self._asked.queues[level - 1].progress.floor

    async def _take_in(self) -> None:
        """Apply the unreported entries of the lane's own queues."""
        lane, parts, trouble = self._asked.lane, self._parts, self._trouble
        readings = {
            level: entry_reading(level, lane.levels[level], lane, parts, trouble)
            for level in self._ends
        }

        async def piece(level: int, at: int) -> Piece:
            found = await readings[level].piece(at)
            if found is None:
                raise TryAgain
            return found

        order = unreported_of(self._asked.queues, self._ends)
        async for level, entries in in_order(order, piece):
            for entry in entries:
                await self._turn.give_way()
                self._unreported.take(level, entry)

    async def _found(self) -> dict[int, "Offsets"]:
        """The entries that are in the children already, by their places in this lane."""
        found = {level: Offsets(self._floor(level), self._ends[level]) for level in (RETRY, DEAD)}
        for child in self._asked.children:
            of_levels = zip(child.queues, child.applied_ends, child.progress, strict=True)
            for stream, start, done in of_levels:
                await self._find(stream, start, done, found)
        return found

    async def _find(
        self, stream: StreamId, start: int, done: Progress, found: dict[int, "Offsets"]
    ) -> None:
        below = ((0, done.floor),) if done.floor else ()
        lane, end = self._asked.lane, self._parts.log.span(stream)[1]
        here = lane.ordinal, lane.levels[MAIN].partition
        reading = QueueReading(RETRY, stream, self._parts, self._trouble, headers, said)
        at = start
        while at < end:
            piece = await reading.piece(at, (*below, *done.ranges))
            if piece is None:
                raise TryAgain
            entries, at = piece
            for entry in entries:
                await self._turn.give_way()
                if (entry.source_ordinal, entry.source_partition) == here:
                    found[entry.source_level].add(entry.source_offset)

    async def _move(self, level: int, found: "Offsets") -> int:
        """Append live entries; returns how many records the group passed over."""
        stream, at = self._asked.lane.levels[level], self._floor(level)
        making = self._made(level)
        reading = QueueReading(level, stream, self._parts, self._trouble, rows, making)
        done = self._unreported.done(level)
        while at < self._ends[level]:
            piece = await reading.piece(at, done)
            if piece is None:
                raise TryAgain
            made, at = piece
            for each in made:
                await self._turn.give_way()
                if each is None:
                    self._skipped += 1
                elif not found.has(each[1].lane.source_offset):
                    await self._gathering.add(*each)
        return total(tuple(reading.passed))

    def _made(self, level: int) -> Callable[[int, Record], tuple[int, NewEntry] | None]:
        """For a record of a queue: the child that gets it, and the entry; None: it is skipped."""

        def made(offset: int, record: Record) -> tuple[int, NewEntry] | None:
            entry = self._making.made(level, record)
            return None if entry is None else (self._child(record[0][2], offset), entry)

        return made

    def _child(self, key: bytes | None, offset: int) -> int:
        if key is None:
            return offset % len(self._asked.children)
        return self._asked.child_of(key_hash(key))

    def _done(self, passed: dict[int, int]) -> Queues:
        retry, dead = (
            _emptied(
                self._asked.queues[level - 1],
                self._ends[level],
                self._unreported.acked[level],
                passed.get(level, 0),
                self._skipped if level == RETRY else 0,
            )
            for level in (RETRY, DEAD)
        )
        return retry.end_errand(), dead


def _emptied(queue: QueueState, end: int, acked: int, passed: int, skipped: int) -> QueueState:
    """A queue in which nothing is left, with the counts of what became of its entries."""
    before = queue.progress.acked_count()
    retried = end - before - acked - passed - skipped
    counts = queue.fate.counts.plus("acked", acked).plus("damaged", passed)
    counts = counts.plus("moved", skipped).plus("retried", retried)
    return replace(
        queue,
        progress=Progress(end),
        applied_end=end,
        attempts=(),
        fate=Fate(damaged=queue.fate.damaged, counts=counts),
        begun=0,
        ended=0,
    )
