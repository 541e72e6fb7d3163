"""Going back: entries of later lanes that come before the end of a stream that is read again are
moved to the queues of that stream.

::

    take over the stream's queues ─► look what a crash left there
        ─► of each later lane: take it over ─► take in what nobody reported of what goes back
        ─► append that to the stream's queues ─► all of it is durable

Nobody holds the stream nor any of those lanes. So an entry in the stream's queues whose source is
in a later lane was moved by an earlier attempt, and is not moved again. Entries that stay are not
touched; unreported ones among them are applied by the next holder of their lane. Entries of an
unfinished re-homing are not moved: their sources are still live.

Invariants: before the place of a live entry counts as done, there is an entry for it in the
stream's queues, or it is passed over; after any failure all begins anew after a pause, and nothing
is doubled. This module must not know leaders, nor how keys are routed.
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
from dssd.machines.delivery.unreported import Unreported, unreported_of
from dssd.machines.queues import Queues, QueueState
from dssd.queues.entries import Maker, NewEntry, brief_of, read_entry
from dssd.queues.gathering import Gathering, TryAgain, until_done
from dssd.queues.lane import Lane, Trouble
from dssd.queues.moving import Parts
from dssd.queues.opening import Piece, in_order
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
    """A request to move entries back to a stream."""

    lane: Lane
    """The lane of the stream that is read again."""
    queues: Queues
    later: tuple[LaterLane, ...]
    is_ours: Callable[[int], bool]
    """Whether the hash is of a key of the stream."""
    max_deliver: int
    trouble: Trouble

    @cached_property
    def lanes(self) -> dict[tuple[int, int], Queues]:
        """The queues of all these lanes, by ordinal and partition."""
        lanes = [(self.lane, self.queues), *((each.lane, each.queues) for each in self.later)]
        return {(lane.ordinal, lane.levels[MAIN].partition): queues for lane, queues in lanes}


Gone = dict[StreamId, Queues]
"""The lanes that lost entries, with their queues after that."""


async def go_back(asked: GoingBack, parts: Parts) -> Gone | None:
    """Move the entries, however long it takes; None: a later leader took over.

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
        # Under the stream's epoch: the next attempt waits for these appends before it looks.
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
        """The entries that are in the stream's queues already, by their places in later lanes."""
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
"""The offset of an entry that goes back, its new entry (None: it is passed over), and whether it is
left over from an unfinished re-homing; None: the entry stays."""


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
        """Whether its queues may hold entries."""
        return any(self._floor(level) < end for level, end in self._ends.items())

    async def move(self) -> None:
        """Let go what has to."""
        await self._take_in()
        for level in LEVELS:
            await self._move(level)

    async def _take_in(self) -> None:
        """Apply the unreported entries among those that go back."""
        lane, parts, trouble = self._later.lane, self._parts, self._later.trouble

        def made(offset: int, record: Record) -> Entry | None:
            _, _, key, _, named, _ = record[0]
            return read_entry(named, key, lane, offset, 0) if self._is_meant(key, named) else None

        readings = {
            level: QueueReading(level, lane.levels[level], parts, trouble, rows, made)
            for level in LEVELS
        }

        async def piece(level: int, at: int) -> Piece:
            found = await readings[level].piece(at)
            if found is None:
                raise TryAgain
            return [entry for entry in found[0] if entry is not None], found[1]

        order = unreported_of(self._later.queues, self._ends)
        async for level, entries in in_order(order, piece):
            for entry in entries:
                await self._turn.give_way()
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
        """Whether it is of an unfinished re-homing: its source is still live."""
        said = brief_of(named)
        if said.source_ordinal is None:
            return False
        source = self._asked.lanes.get((said.source_ordinal, said.source_partition))
        if source is None:
            return False
        return not source[said.source_level - 1].progress.is_acked(said.source_offset)

    def _is_meant(self, key: bytes | None, named: Headers) -> bool:
        """Whether the record is of a key of the stream, and not behind all records of the stream.
        Without a key: whether it is a record of the stream."""
        ours, said = self._asked.lane, brief_of(named)
        if key is not None:
            return said.origin_ordinal <= ours.ordinal and self._asked.is_ours(key_hash(key))
        origin = said.origin_ordinal, said.origin_partition
        return origin == (ours.ordinal, ours.levels[MAIN].partition)

    def queues(self) -> Queues:
        """The queues without the moved entries; empty if none was moved."""
        before = self._later.queues
        after = tuple(self._left(level) for level in LEVELS)
        return after if after != before else ()

    def _left(self, level: int) -> QueueState:
        before = self._later.queues[level - 1]
        progress = before.progress.with_acked(normalised(self._gone[level]))
        acked, passed = self._unreported.acked[level], self._passed[level]
        skipped = self._skipped if level == RETRY else 0
        gone = progress.acked_count() - before.progress.acked_count()
        counts = before.fate.counts.plus("acked", acked).plus("damaged", passed)
        counts = counts.plus("moved", skipped).plus("retried", gone - acked - passed - skipped)
        return replace(before, progress=progress, fate=replace(before.fate, counts=counts))
