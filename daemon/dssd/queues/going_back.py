"""Going back: what waits in later lanes, and comes before the end of a stream that is read again,
goes to the queues of that stream.

::

    take over the stream's queues ─► look what a crash left there
        ─► of each later lane: take it over ─► take in what nobody reported of what goes back
        ─► append that to the stream's queues ─► all of it is durable

Nobody holds the stream nor one of those lanes, so an entry that is found in its queues with its
source there stays, and is passed by. What stays is not touched, neither is what nobody reported of
it: who is lent its lane takes that in. What a re-homing left there that did not come to its end
goes nowhere, for what it was made of lives.

Invariants: an entry that goes back and lives has one in the stream's queues, or is passed over,
before its own place counts as done; whatever goes wrong, all begins anew after a rest, and doubles
nothing. This module must not know leaders, nor how keys are routed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from dss_core.errors import GrantNotHeld
from dss_core.ids import StreamId
from dss_core.lane import DEAD, MAIN, RETRY
from dss_core.progress import Progress, Range, normalised, total
from dss_core.routing import key_hash
from dss_core.rows_layout import Headers
from dssd.loop_yield import LoopTurn
from dssd.machines.delivery.events import Entry
from dssd.machines.delivery.unreported import Unreported
from dssd.machines.queues import Queues, QueueState
from dssd.queues.entries import Maker, NewEntry, brief_of, read_entry
from dssd.queues.gathering import Gathering, TryAgain, until_done
from dssd.queues.lane import Lane, Trouble
from dssd.queues.moving import Parts
from dssd.queues.reading import QueueReading
from dssd.queues.rehomed_entries import Making, Offsets, Record, headers, rows, said

LEVELS = RETRY, DEAD


class LaterLane(NamedTuple):
    """A lane that may hold something of the stream."""

    lane: Lane
    progress: Progress
    """Of its stream."""
    queues: Queues
    trouble: Trouble


@dataclass(frozen=True)
class GoingBack:
    """What goes back, and to where."""

    lane: Lane
    """Of the stream that is read again."""
    queues: Queues
    later: tuple[LaterLane, ...]
    is_ours: Callable[[int], bool]
    """Whether a key is of the stream, by its hash."""
    max_deliver: int
    trouble: Trouble

    @cached_property
    def lanes(self) -> dict[tuple[int, int], Queues]:
        """The queues of all of these, by ordinal and partition."""
        lanes = [(self.lane, self.queues), *((each.lane, each.queues) for each in self.later)]
        return {(lane.ordinal, lane.levels[MAIN].partition): queues for lane, queues in lanes}


Gone = dict[StreamId, Queues]
"""Of the lanes that something went from: their queues as they are then."""


async def go_back(asked: GoingBack, parts: Parts) -> Gone | None:
    """Do it, however long it takes; None: a later leader took over.

    Raises:
        StreamNotFound: a queue was removed.
    """
    lane = asked.lane.levels[RETRY], asked.lane.grant_epoch
    return await until_done(parts, lane, lambda: _Attempt(asked, parts).run())


class _Attempt:
    def __init__(self, asked: GoingBack, parts: Parts) -> None:
        self._asked = asked
        self._parts = parts
        lane = asked.lane
        # Under the stream's epoch: whoever does this next waits for these before it looks.
        as_of = lane.levels[RETRY], lane.grant_epoch
        self._gathering = Gathering([(lane.levels[RETRY], lane.levels[DEAD])], parts, as_of)

    async def run(self) -> Gone:
        """Once."""
        leaving: list[_Leaving] = []
        for later in self._asked.later:
            retry, epoch = later.lane.levels[RETRY], later.lane.grant_epoch
            if not await self._parts.writers.take_over(retry, epoch):
                raise GrantNotHeld(grant=epoch)
            each = _Leaving(self._asked, later, self._parts, self._gathering)
            leaving += [each] if each.may_hold_some() else []
        async with self._parts.writers.rehoming:
            if leaving:
                await self._find({each.place: each.found for each in leaving})
            for each in leaving:
                await each.move()
            await self._gathering.append()
        return {each.stream: queues for each in leaving if (queues := each.queues())}

    async def _find(self, found: dict[tuple[int, int], dict[int, Offsets]]) -> None:
        """What is in the stream's queues already, by where it was in the later lanes."""
        for level in LEVELS:
            stream = self._asked.lane.levels[level]
            trouble = self._asked.trouble
            reading = QueueReading(level, stream, self._parts, trouble, headers, said)
            queue, end = self._asked.queues[level - 1], self._parts.log.span(stream)[1]
            at = max(queue.progress.floor, queue.applied_end)
            while at < end:
                piece = await reading.piece(at)
                if piece is None:
                    raise TryAgain
                entries, at = piece
                for entry in entries:
                    if entry.source_ordinal is not None:
                        place = found.get((entry.source_ordinal, entry.source_partition))
                        if place is not None:
                            place[entry.source_level].add(entry.source_offset)


_Made = tuple[int, NewEntry | None, bool] | None
"""The offset of what goes, as what it goes on, and whether it was left over; None: it stays."""


class _Leaving:
    """One lane that entries leave."""

    def __init__(
        self, asked: GoingBack, later: LaterLane, parts: Parts, gathering: Gathering
    ) -> None:
        self._asked = asked
        self._later = later
        self._parts = parts
        self._gathering = gathering
        lane, retry = later.lane, later.queues[RETRY - 1]
        self.stream = lane.levels[MAIN]
        self.place = lane.ordinal, self.stream.partition
        self._ends = {level: parts.log.span(lane.levels[level])[1] for level in LEVELS}
        self.found = {level: Offsets(self._floor(level), self._ends[level]) for level in LEVELS}
        self._unreported = Unreported(later.progress, later.queues)
        maker = Maker(lane, parts.clock.wall_ms(), rehomes=True, hurried=retry.hurried.ranges)
        self._making = Making(maker, later.queues, asked.max_deliver)
        self._gone: dict[int, list[Range]] = {level: [] for level in LEVELS}
        self._passed = dict.fromkeys(LEVELS, 0)
        self._skipped = 0
        self._turn = LoopTurn()

    def _floor(self, level: int) -> int:
        return self._later.queues[level - 1].progress.floor

    def may_hold_some(self) -> bool:
        """Whether anything is in its queues."""
        return any(self._floor(level) < end for level, end in self._ends.items())

    async def move(self) -> None:
        """Let go what has to."""
        for level in LEVELS:
            await self._take_in(level)
        for level in LEVELS:
            await self._move(level)

    async def _take_in(self, level: int) -> None:
        """Of what goes back, what nobody reported."""
        lane = self._later.lane
        trouble = self._later.trouble

        def made(offset: int, record: Record) -> Entry | None:
            _, _, key, _, named, _ = record[0]
            return read_entry(named, key, lane, offset, 0) if self._is_meant(key, named) else None

        reading = QueueReading(level, lane.levels[level], self._parts, trouble, rows, made)
        at = max(self._later.queues[level - 1].applied_end, self._floor(level))
        while at < self._ends[level]:
            piece = await reading.piece(at)
            if piece is None:
                raise TryAgain
            entries, at = piece
            for entry in entries:
                await self._turn.give_way()
                if entry is not None:
                    self._unreported.take(level, entry)

    async def _move(self, level: int) -> None:
        stream, at = self._later.lane.levels[level], self._floor(level)
        done, found = self._unreported.done(level), self.found[level]
        trouble, made = self._later.trouble, self._made(level)
        reading = QueueReading(level, stream, self._parts, trouble, rows, made)
        while at < self._ends[level]:
            piece = await reading.piece(at, done)
            if piece is None:
                raise TryAgain
            leaving, at = piece
            for each in leaving:
                await self._turn.give_way()
                if each is None:
                    continue
                offset, entry, is_left_over = each
                self._gone[level].append((offset, offset + 1))
                if entry is None:
                    self._skipped += not is_left_over
                elif not found.has(offset):
                    await self._gathering.add(0, entry)
        self._passed[level] = total(tuple(reading.passed))
        self._gone[level] += [*done, *reading.passed]

    def _made(self, level: int) -> Callable[[int, Record], "_Made"]:
        """What becomes of a record of a queue."""

        def made(offset: int, record: Record) -> _Made:
            _, _, key, _, named, _ = record[0]
            if not self._is_meant(key, named):
                return None
            if self._is_left_over(named):
                return offset, None, True
            return offset, self._making.made(level, record), False

        return made

    def _is_left_over(self, named: Headers) -> bool:
        """Whether it was re-homed, and that was not done to its end: what it was made of lives."""
        said = brief_of(named)
        if said.source_ordinal is None:
            return False
        source = self._asked.lanes.get((said.source_ordinal, said.source_partition))
        if source is None:
            return False
        return not source[said.source_level - 1].progress.is_acked(said.source_offset)

    def _is_meant(self, key: bytes | None, named: Headers) -> bool:
        """Whether it is of a key of the stream, and not behind all records of that; without a key,
        whether it is a record of the stream."""
        ours, said = self._asked.lane, brief_of(named)
        if key is not None:
            return said.origin_ordinal <= ours.ordinal and self._asked.is_ours(key_hash(key))
        origin = said.origin_ordinal, said.origin_partition
        return origin == (ours.ordinal, ours.levels[MAIN].partition)

    def queues(self) -> Queues:
        """Without what went; none, where that is nothing."""
        before = self._later.queues
        after = tuple(self._left(level) for level in LEVELS)
        return after if after != before else ()

    def _left(self, level: int) -> QueueState:
        before = self._later.queues[level - 1]
        progress = before.progress.with_acked(normalised(self._gone[level]))
        acked, passed = self._unreported.acked[level], self._passed[level]
        skipped = self._skipped if level == RETRY else 0
        gone = _covered(progress) - _covered(before.progress)
        counts = before.fate.counts.plus("acked", acked).plus("damaged", passed)
        counts = counts.plus("moved", skipped).plus("retried", gone - acked - passed - skipped)
        return replace(before, progress=progress, fate=replace(before.fate, counts=counts))


def _covered(progress: Progress) -> int:
    return progress.floor + progress.acked_above_floor()
