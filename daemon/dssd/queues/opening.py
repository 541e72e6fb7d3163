"""Reading what waits in the queues of a lane, once nobody else appends to them.

Invariant: what is told is in order and without holes: every entry below the end that is told was
told, or the log has it no more. A read that fails is tried again until whoever asked goes away.
This module must not know what the entries are for.
"""

import asyncio
from collections.abc import AsyncIterator

from dss_core.errors import FrameCorrupt, LogUnreadable
from dss_core.ids import StreamId
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Range, normalised
from dssd.log.port import Chunk
from dssd.loop_yield import LoopTurn
from dssd.machines.delivery.events import EntriesRead, Entry, LaneOpened, OpenLane
from dssd.queues.entries import read_entry
from dssd.queues.lane import Lane, Trouble
from dssd.queues.moving import Parts
from dssd.queues.slices import decoded_slices

OPEN_AGAIN_S = 1.0
"""After a read of a queue failed, before it is tried again."""


ENTRIES_TOLD_MAX = 512
"""Entries that a lane being opened is told of at a time: measured 1 to 3 µs each for its window."""


QUEUE_READ_BYTES = 256 << 10
"""What is read at a time of a queue that is opened."""


async def open_lane(
    asked: OpenLane, lane: Lane, parts: Parts, trouble: Trouble
) -> AsyncIterator[EntriesRead | LaneOpened]:
    """Take the lane over, then tell what its queues hold; nothing where a later holder did.

    Raises:
        StreamNotFound: the queues were removed.
    """
    if not await parts.writers.take_over(asked.retry, asked.grant_epoch):
        return
    queues = (RETRY, asked.retry, asked.retry_from), (DEAD, asked.dead, asked.dead_from)
    for level, stream, start in queues:
        reading = _Reading(asked.grant, level, stream, lane, parts, trouble)
        async for told in reading.entries(start):
            yield told
    bounds = parts.log.bounds(asked.dead)
    yield LaneOpened(asked.grant, bounds.bytes // max(bounds.end - bounds.start, 1))


class _Reading:
    """Of one queue."""

    def __init__(
        self,
        grant: int,
        level: int,
        stream: StreamId,
        lane: Lane,
        parts: Parts,
        trouble: Trouble,
    ) -> None:
        self._lane = lane
        self._grant = grant
        self._level = level
        self._stream = stream
        self._parts = parts
        self._trouble = trouble
        self._turn = LoopTurn()

    async def entries(self, start: int) -> AsyncIterator[EntriesRead]:
        """What it holds from there on; at least where it ends."""
        at, end = start, self._parts.log.span(self._stream)[1]
        while at < end:
            async with self._parts.writers.room:
                found = await self._read(at)
            if found is None:
                await asyncio.sleep(OPEN_AGAIN_S)
                continue
            entries, at = found
            for first in range(0, len(entries), ENTRIES_TOLD_MAX):
                await self._turn.give_way()
                told = tuple(entries[first : first + ENTRIES_TOLD_MAX])
                yield EntriesRead(self._grant, self._level, told, told[-1].offset + 1)
        yield EntriesRead(self._grant, self._level, (), at)

    async def _read(self, at: int) -> tuple[list[Entry], int] | None:
        """Some entries, and where to read on; None: try again."""
        try:
            chunk = await self._parts.log.read(self._stream, at, bytes_max=QUEUE_READ_BYTES)
        except LogUnreadable as error:
            self._trouble.unreadable(self._level, error)
            return None
        self._trouble.readable(self._level)
        entries, broken = await self._decoded(chunk, at)
        damaged = normalised((*chunk.damaged, *broken))
        if damaged and not await self._trouble.damaged(self._level, damaged):
            return None
        return None if chunk.next <= at else (entries, chunk.next)

    async def _decoded(self, chunk: Chunk, at: int) -> tuple[list[Entry], list[Range]]:
        """The entries, and the offsets of what is none."""
        entries: list[Entry] = []
        broken: list[Range] = []
        for batch, bytes_ in decoded_slices(chunk.frames, ((at, chunk.next),)):
            await self._turn.give_way()
            size = bytes_ // max(1, len(batch))
            rows = zip(batch.offsets, batch.headers, batch.keys, strict=True)
            for offset, headers, key in rows:
                await self._turn.give_way()
                try:
                    entries.append(read_entry(headers, key, self._lane, offset, size))
                except FrameCorrupt:
                    broken.append((offset, offset + 1))
        return entries, broken
