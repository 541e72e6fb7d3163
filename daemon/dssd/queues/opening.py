"""Reading what waits in the queues of a lane, once nobody else appends to them.

Invariant: what is told is in order and without holes: every entry below the end that is told was
told, or the log has it no more. A read that fails is tried again until whoever asked goes away.
This module must not know what the entries are for.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

from dss_core.decode import DecodedBatch
from dss_core.ids import StreamId
from dss_core.lane import DEAD, RETRY
from dss_core.rows_layout import Headers
from dssd.loop_yield import LoopTurn
from dssd.machines.delivery.events import EntriesRead, Entry, LaneOpened, OpenLane
from dssd.queues.entries import read_entry
from dssd.queues.lane import Lane, Trouble
from dssd.queues.moving import Parts
from dssd.queues.reading import QueueReading

OPEN_AGAIN_S = 1.0
"""After a read of a queue failed, before it is tried again."""


ENTRIES_TOLD_MAX = 512
"""Entries that a lane being opened is told of at a time: measured 1 to 3 µs each for its window."""


_Raw = tuple[Headers, bytes | None, int]
EntryReading = QueueReading[_Raw, Entry]
"""Reads the entries of a queue as their holder needs them."""


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
        reading = entry_reading(level, stream, lane, parts, trouble)
        async for told in _entries(asked.grant, level, stream, start, reading, parts):
            yield told
    bounds = parts.log.bounds(asked.dead)
    yield LaneOpened(asked.grant, bounds.bytes // max(bounds.end - bounds.start, 1))


async def _entries(
    grant: int, level: int, stream: StreamId, start: int, reading: EntryReading, parts: Parts
) -> AsyncIterator[EntriesRead]:
    """What a queue holds from there on; at least where it ends."""
    at, end = start, parts.log.span(stream)[1]
    turn = LoopTurn()
    while at < end:
        found = await reading.piece(at)
        if found is None:
            await asyncio.sleep(OPEN_AGAIN_S)
            continue
        entries, at = found
        for first in range(0, len(entries), ENTRIES_TOLD_MAX):
            await turn.give_way()
            told = tuple(entries[first : first + ENTRIES_TOLD_MAX])
            yield EntriesRead(grant, level, told, told[-1].offset + 1)
    yield EntriesRead(grant, level, (), at)


def entry_reading(
    level: int, stream: StreamId, lane: Lane, parts: Parts, trouble: Trouble
) -> EntryReading:
    """Reads the entries of a queue as their holder needs them."""

    def made(offset: int, raw: _Raw) -> Entry:
        headers, key, size = raw
        return read_entry(headers, key, lane, offset, size)

    return QueueReading(level, stream, parts, trouble, _rows, made)


def _rows(batch: DecodedBatch, size: int) -> Iterator[tuple[int, _Raw]]:
    for offset, headers, key in zip(batch.offsets, batch.headers, batch.keys, strict=True):
        yield offset, (headers, key, size)
