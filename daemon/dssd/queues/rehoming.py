"""Re-homing: what waits in the queues of a lane goes to the queues of its children.

::

    take over the lane ─► take in what nobody reported ─► look what a crash left in the children
        ─► append the rest to the children, each entry where its key goes ─► all of it is durable

Nobody holds the lane, which is never lent again, and nobody its children, so an entry that is found
in one of them with its source here stays, and is passed by. What operations asked of the holder of
the lane is done on the way: what comes back goes to retry queues, what is given up to the dead
letters, what is passed over nowhere, and what is brought forward is due.

Invariants: an entry of the lane that lives has one in a child, or is passed over, before its own
place counts as done; whatever goes wrong, all begins anew after a rest, and doubles nothing; what
is gathered is bounded, for all lanes of the daemon together. This module must not know leaders, nor
how keys are routed.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from dss_core.decode import DecodedBatch, Row
from dss_core.errors import DssError, GrantNotHeld, StreamNotFound
from dss_core.ids import StreamId
from dss_core.lane import DEAD, MAIN, RETRY, LaneEntry
from dss_core.progress import Progress, covers, total
from dss_core.routing import key_hash
from dss_core.rows_layout import Headers
from dssd.limits import ISOLATE_AFTER_DOUBTS
from dssd.log.port import Append, Appended
from dssd.loop_yield import LoopTurn
from dssd.machines.delivery.attempt_counts import AttemptCounts
from dssd.machines.delivery.causes import DIED, GIVEN_UP, REDRIVEN
from dssd.machines.delivery.errands import is_meant
from dssd.machines.delivery.events import MovePiece
from dssd.machines.delivery.unreported import Unreported
from dssd.machines.fate import Fate
from dssd.machines.queues import BURY, SKIP, Queues, QueueState
from dssd.queues.entries import FRAME_ENTRIES_MAX, Maker, NewEntry, brief_of, frames_of, lane_of
from dssd.queues.lane import Lane, Trouble
from dssd.queues.moving import MOVE_GATHERED_BYTES, Parts
from dssd.queues.opening import entry_reading
from dssd.queues.reading import QueueReading

GATHERED_ENTRIES_MAX = 8 * FRAME_ENTRIES_MAX
"""Entries that are gathered before they are appended: so many small ones take some milliseconds of
making frames, in turns, and share one sync."""


AGAIN_S = 1.0
AGAIN_S_MAX = 30.0
"""After something went wrong, before all is looked at anew; twice as long each time."""


class Child(NamedTuple):
    """A lane that gets entries."""

    queues: tuple[StreamId, StreamId]
    applied_ends: tuple[int, int]
    """What was re-homed lies above, as far as it has not been lent since."""


@dataclass(frozen=True, slots=True)
class Rehoming:
    """What is re-homed, and to where."""

    lane: Lane
    progress: Progress
    """Of the stream."""
    queues: Queues
    children: tuple[Child, ...]
    child_of: Callable[[int], int]
    """Which of them a key goes to, by its hash."""
    max_deliver: int


class _TryAgain(Exception):
    """Something could not be read or appended now."""


async def rehome(asked: Rehoming, parts: Parts, trouble: Trouble) -> Queues | None:
    """Do it, however long it takes; the queues as they are then, or None: a later one took over.

    Raises:
        StreamNotFound: a queue was removed.
    """
    rest_s = AGAIN_S
    retry = asked.lane.levels[RETRY]
    while await parts.writers.take_over(retry, asked.lane.grant_epoch):
        try:
            return await _Attempt(asked, parts, trouble).run()
        except GrantNotHeld:
            return None
        except _TryAgain:
            await asyncio.sleep(rest_s)
            rest_s = min(2 * rest_s, AGAIN_S_MAX)
    return None


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
        self._making = _Making(asked, maker)
        self._skipped = 0
        self._gathered: list[tuple[int, NewEntry]] = []
        self._gathered_bytes = 0
        self._turn = LoopTurn()

    async def run(self) -> Queues:
        """Once."""
        if all(self._floor(level) >= end for level, end in self._ends.items()):
            return self._done({})
        async with self._parts.writers.rehoming:
            for level in (RETRY, DEAD):
                await self._take_in(level)
            found = await self._found()
            passed = {level: await self._move(level, found[level]) for level in (RETRY, DEAD)}
            await self._append()
        return self._done(passed)

    def _floor(self, level: int) -> int:
        return self._asked.queues[level - 1].progress.floor

    async def _take_in(self, level: int) -> None:
        """What nobody reported of the lane's own queues."""
        at = max(self._asked.queues[level - 1].applied_end, self._floor(level))
        stream = self._asked.lane.levels[level]
        reading = entry_reading(level, stream, self._asked.lane, self._parts, self._trouble)
        while at < self._ends[level]:
            found = await reading.piece(at)
            if found is None:
                raise _TryAgain
            entries, at = found
            for entry in entries:
                await self._turn.give_way()
                self._unreported.take(level, entry)

    async def _found(self) -> dict[int, "_Offsets"]:
        """What is in the children already, by where it was in this lane."""
        found = {level: _Offsets(self._floor(level), self._ends[level]) for level in (RETRY, DEAD)}
        for child in self._asked.children:
            for stream, start in zip(child.queues, child.applied_ends, strict=True):
                await self._find(stream, start, found)
        return found

    async def _find(self, stream: StreamId, start: int, found: dict[int, "_Offsets"]) -> None:
        lane, end = self._asked.lane, self._parts.log.span(stream)[1]
        here = lane.ordinal, lane.levels[MAIN].partition
        reading = QueueReading(RETRY, stream, self._parts, self._trouble, _headers, _said)
        at = start
        while at < end:
            piece = await reading.piece(at)
            if piece is None:
                raise _TryAgain
            entries, at = piece
            for entry in entries:
                await self._turn.give_way()
                if (entry.source_ordinal, entry.source_partition) == here:
                    found[entry.source_level].add(entry.source_offset)

    async def _move(self, level: int, found: "_Offsets") -> int:
        """Append what lives; how many records the group passed over."""
        stream, at = self._asked.lane.levels[level], self._floor(level)
        making = self._making.of(level)
        reading = QueueReading(level, stream, self._parts, self._trouble, _rows, making)
        done = self._unreported.done(level)
        while at < self._ends[level]:
            piece = await reading.piece(at, done)
            if piece is None:
                raise _TryAgain
            made, at = piece
            for each in made:
                await self._turn.give_way()
                if each is None:
                    self._skipped += 1
                elif not found.has(each[1].lane.source_offset):
                    await self._gather(*each)
        return total(tuple(reading.passed))

    async def _gather(self, child: int, entry: NewEntry) -> None:
        self._gathered.append((child, entry))
        self._gathered_bytes += entry.size
        full = len(self._gathered) >= GATHERED_ENTRIES_MAX
        if full or self._gathered_bytes >= MOVE_GATHERED_BYTES:
            await self._append()

    async def _append(self) -> None:
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        by_queue: dict[StreamId, list[NewEntry]] = {}
        for child, entry in gathered:
            stream = self._asked.children[child].queues[entry.piece.to - 1]
            by_queue.setdefault(stream, []).append(entry)
        appends: list[Append] = []
        for stream, entries in by_queue.items():
            for frame, _ in frames_of(entries, stream.partition):
                await self._turn.give_way()
                # The epoch of a topic is the id of the storage topic that its records go to.
                appends.append(Append(stream, frame, stream.storage_topic_id))
        if not appends:
            return
        lane = self._asked.lane
        # Under the parent's epoch: whoever re-homes it next waits for these before it looks.
        results = await self._parts.writers.append(lane.levels[RETRY], lane.grant_epoch, appends)
        for result in results:
            if not isinstance(result, Appended):
                raise _reason(result)

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


def _reason(failed: BaseException) -> BaseException:
    """What is tried again, and what is not."""
    if isinstance(failed, GrantNotHeld | StreamNotFound) or not isinstance(failed, DssError):
        return failed
    return _TryAgain()


def _emptied(queue: QueueState, end: int, acked: int, passed: int, skipped: int) -> QueueState:
    """A queue in which nothing is left, and how it came to that."""
    before = queue.progress.floor + queue.progress.acked_above_floor()
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


class _Making:
    """Makes the entries of children."""

    def __init__(self, asked: Rehoming, maker: Maker) -> None:
        retry, dead = asked.queues
        self._asked = asked
        self._maker = maker
        self._failures = AttemptCounts(retry.fate.failures)
        self._doubts = AttemptCounts(retry.fate.doubts)
        self._redrive = dead.redrive
        self._errand = retry.errand
        self._redriven_keys: set[bytes] = set()

    def of(self, level: int) -> Callable[[int, tuple[Row, int]], tuple[int, NewEntry] | None]:
        """Which child gets a record of a queue, and as what; None: it is passed over."""

        def made(offset: int, raw: tuple[Row, int]) -> tuple[int, NewEntry] | None:
            row, append_time_us = raw
            piece = self._of_dead(row) if level == DEAD else self._of_retry(row)
            if piece is None:
                return None
            return self._child(row[2], offset), self._maker.made(row, append_time_us, piece)

        return made

    def _child(self, key: bytes | None, offset: int) -> int:
        if key is None:
            return offset % len(self._asked.children)
        return self._asked.child_of(key_hash(key))

    def _of_dead(self, row: Row) -> MovePiece:
        place = DEAD, row[0], row[0] + 1
        if not self._comes_back(row):
            return MovePiece(*place, DEAD, 0, 0, "", is_copied=True)
        due_ms, operation = self._maker.now_ms, self._redrive.operation
        return MovePiece(*place, RETRY, 0, due_ms, REDRIVEN, operation=operation)

    def _comes_back(self, row: Row) -> bool:
        """Whether a redrive brings it back; one of whole keys also what died behind these since,
        as `RedrivenKeys` does where the lane is lent."""
        offset, key, redrive = row[0], row[2], self._redrive
        if covers(redrive.ranges, offset):
            if redrive.whole_keys and key:
                self._redriven_keys.add(key)
            return True
        follows = key in self._redriven_keys and offset >= redrive.ranges[-1][1]
        return follows and not lane_of(row[4]).attempt

    def _of_retry(self, row: Row) -> MovePiece | None:
        offset = row[0]
        place = RETRY, offset, offset + 1
        failures, doubts = _at(self._failures, offset), _at(self._doubts, offset)
        is_plain = not failures and doubts < ISOLATE_AFTER_DOUBTS
        if is_plain and not self._errand.ranges:
            return MovePiece(*place, RETRY, 0, 0, "", is_copied=True)
        before = lane_of(row[4])
        attempt, errand = before.attempt + failures, self._errand
        if errand.what in (SKIP, BURY) and is_meant(errand, offset, before):
            if errand.what == SKIP:
                return None
            return MovePiece(*place, DEAD, attempt, 0, GIVEN_UP, operation=errand.operation)
        if is_plain:
            return MovePiece(*place, RETRY, 0, 0, "", is_copied=True)
        # Nothing but its entries goes with a record, so what clients died of says so in its entry.
        if failures and attempt >= self._asked.max_deliver:
            return MovePiece(*place, DEAD, attempt, 0, DIED)
        return MovePiece(*place, RETRY, attempt, before.due_ms, DIED)


def _at(counts: AttemptCounts, offset: int) -> int:
    return counts.segments(offset, offset + 1, 0)[0][2] if counts else 0


class _Offsets:
    """A set of offsets of a queue, at a bit each."""

    def __init__(self, start: int, end: int) -> None:
        self._start = start
        self._bits = bytearray((max(end - start, 0) + 7) // 8)

    def add(self, offset: int) -> None:
        """One that is outside is done long since."""
        at = offset - self._start
        if 0 <= at < 8 * len(self._bits):
            self._bits[at >> 3] |= 1 << (at & 7)

    def has(self, offset: int) -> bool:
        """Whether it is in the set."""
        at = offset - self._start
        return bool(self._bits[at >> 3] >> (at & 7) & 1)


def _rows(batch: DecodedBatch, _: int) -> Iterator[tuple[int, tuple[Row, int]]]:
    rows = chain.from_iterable(batch.rows())
    for row, append_time_us in zip(rows, batch.append_times_us, strict=True):
        yield row[0], (row, append_time_us)


def _headers(batch: DecodedBatch, _: int) -> Iterator[tuple[int, Headers]]:
    yield from zip(batch.offsets, batch.headers, strict=True)


def _said(_: int, headers: Headers) -> LaneEntry:
    return brief_of(headers)
