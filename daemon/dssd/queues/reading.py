"""Reading a queue from an offset on, piece by piece, by whoever appends to it alone.

Invariant: what is told is in order and without holes: every wanted record below the end that is
told was told, or the log has it no more, and the group passes over what is damaged. This module
must not know what records of a queue are read for.
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
"""What is read at a time of a queue."""


Raw = TypeVar("Raw")
Made = TypeVar("Made")


class QueueReading(Generic[Raw, Made]):
    """Of one queue. ``rows`` gives what of a batch is needed, its offset first, with the bytes of a
    record; ``made`` makes something of one, or raises `FrameCorrupt` where it is no entry."""

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
        """What the group passed over."""

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
        """What is made of records, and the offsets of those that are no entries."""
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
