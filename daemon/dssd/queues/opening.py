"""Reading what waits in the queues of a lane, once nobody else appends to them.

Invariant: entries are reported in order and without holes: each entry below the reported end was
reported, or the log no longer has it; and no entry comes before the one that it was made of
(`entry_order`). A failed read is tried again until the caller goes away. This module must not know
what the entries are for.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

from dss_core.decode import DecodedBatch
from dss_core.ids import StreamId
from dss_core.lane import DEAD, RETRY
from dss_core.rows_layout import Headers
from dssd.loop_yield import LoopTurn
from dssd.machines.delivery.entry_order import EntryOrder, ToldEntries
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
    starts = {RETRY: (asked.retry, asked.retry_from), DEAD: (asked.dead, asked.dead_from)}
    readings = {
        level: entry_reading(level, stream, lane, parts, trouble)
        for level, (stream, _) in starts.items()
    }

    async def piece(level: int, at: int) -> Piece:
        while True:
            found = await readings[level].piece(at)
            if found is not None:
                return found
            await asyncio.sleep(OPEN_AGAIN_S)

    spans = [(at, parts.log.span(stream)[1]) for stream, at in starts.values()]
    order = EntryOrder(spans[0], spans[1], asked.dead_known)
    turn = LoopTurn()
    async for level, entries in in_order(order, piece):
        for first in range(0, len(entries), ENTRIES_TOLD_MAX):
            await turn.give_way()
            told = tuple(entries[first : first + ENTRIES_TOLD_MAX])
            yield EntriesRead(asked.grant, level, told, told[-1].offset + 1)
    for level in (RETRY, DEAD):
        yield EntriesRead(asked.grant, level, (), order.read_to(level))
    bounds = parts.log.bounds(asked.dead)
    yield LaneOpened(asked.grant, bounds.bytes // max(bounds.end - bounds.start, 1))


Piece = tuple[Sequence[Entry], int]
"""Some entries of a queue, and where to read on."""


async def in_order(
    order: EntryOrder, piece: Callable[[int, int], Awaitable[Piece]]
) -> AsyncIterator[ToldEntries]:
    """The entries of both queues, as ``piece`` reads them of a level from an offset on."""
    while (wanted := order.to_read()) is not None:
        level, at = wanted
        for told in order.take(level, *await piece(level, at)):
            yield told


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
