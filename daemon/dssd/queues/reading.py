"""Reads a queue from an offset on, piece by piece, for the only one that appends to it.

Invariant: records come in order and without holes. Each wanted record below the returned end was
returned, unless the log no longer has it, or it is damaged and the group passes over it. This
module must not know what records of a queue are read for.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from dss_core.decode import DecodedBatch
from dss_core.errors import FrameCorrupt, LogUnreadable
from dss_core.ids import StreamId
from dss_core.progress import Range, Ranges, clipped, normalised, without
from dssd.log.port import Chunk
from dssd.loop_yield import LoopTurn
from dssd.queues.lane import Trouble
from dssd.queues.moving import Parts
from dssd.queues.slices import decoded_slices

QUEUE_READ_BYTES = 256 << 10
"""How much of a queue is read at a time."""


Raw = TypeVar("Raw")
Made = TypeVar("Made")


class QueueReading(Generic[Raw, Made]):
    """The reading of one queue. ``rows`` gives the needed fields of each record of a batch, its
    offset first; ``made`` makes a value of them, or raises `FrameCorrupt` if it is no entry."""

    def __init__(
        self,
        level: int,
        stream: StreamId,
        parts: Parts,
        trouble: Trouble,
        rows: Callable[[DecodedBatch, int], Iterator[tuple[int, Raw]]],
        made: Callable[[int, Raw], Made],
    ) -> None:
        self._level = level
        self._stream = stream
        self._parts = parts
        self._trouble = trouble
        self._rows = rows
        self._made = made
        self._turn = LoopTurn()
        self.passed: list[Range] = []
        """How many records the group passed over."""

    async def piece(self, at: int, done: Ranges = ()) -> tuple[list[Made], int] | None:
        """Some records that are not done, and where to read on; None: try again later.

        Raises:
            StreamNotFound: the queue was removed.
        """
        async with self._parts.writers.room:
            return await self._read(at, done)

    async def _read(self, at: int, done: Ranges) -> tuple[list[Made], int] | None:
        try:
            chunk = await self._parts.log.read(self._stream, at, bytes_max=QUEUE_READ_BYTES)
        except LogUnreadable as error:
            self._trouble.unreadable(self._level, error)
            return None
        self._trouble.readable(self._level)
        wanted = without(((at, chunk.next),), done) if at < chunk.next else ()
        made, broken = await self._decoded(chunk, wanted)
        damaged = normalised((*chunk.damaged, *broken))
        damaged = normalised(each for span in damaged for each in clipped(wanted, *span))
        if damaged and not await self._trouble.damaged(self._level, damaged):
            return None
        self.passed += damaged
        return None if chunk.next <= at else (made, chunk.next)

    async def _decoded(self, chunk: Chunk, wanted: Ranges) -> tuple[list[Made], list[Range]]:
        """The values that are made of records, and the offsets of records that are no entries."""
        made: list[Made] = []
        broken: list[Range] = []
        for batch, bytes_ in decoded_slices(chunk.frames, wanted):
            await self._turn.give_way()
            for offset, raw in self._rows(batch, bytes_ // max(1, len(batch))):
                await self._turn.give_way()
                try:
                    made.append(self._made(offset, raw))
                except FrameCorrupt:
                    broken.append((offset, offset + 1))
        return made, broken
