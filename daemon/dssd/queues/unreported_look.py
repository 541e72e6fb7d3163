"""The queues of a lane for operators, with the moves that a dead holder did not report.

A holder that died may have moved records without reporting it. Then a record still counts at its
old place, and also in each entry that was made of it since. The next holder finds that out when it
opens the lane (`machines/delivery/unreported`); until then this module does so for each question.
Invariants: nothing is changed; a look is bounded by its budget, and a lane that exceeds it is shown
as last reported. This module must not know groups.
"""

from collections.abc import Sequence
from dataclasses import replace

from dss_core.decode import decode
from dss_core.ids import StreamId
from dss_core.lane import RETRY
from dss_core.progress import Progress, Ranges
from dssd.log.port import Log
from dssd.look_thread import looked
from dssd.machines.delivery.events import Entry
from dssd.machines.delivery.unreported import Unreported, unreported_of
from dssd.machines.queues import Queues
from dssd.queues.entries import brief_of
from dssd.queues.looking import LOOKED_AT_BYTES
from dssd.queues.opening import Piece, in_order

UNREPORTED_BYTES_MAX = 2 << 20
"""Bytes of unreported entries that one question reads: some 5,000 entries, 0.1 s of a thread. A
living holder reports within 50 ms, so there are more only if one died during a move."""


class UnreportedLook:
    """Of one question, for all lanes that it asks about."""

    def __init__(self, log: Log, bytes_max: int = UNREPORTED_BYTES_MAX) -> None:
        self._log = log
        self._bytes_left = bytes_max

    async def taken_in(self, main: Progress, queues: Queues) -> Queues:
        """The queues of a lane with what nobody reported taken in.

        Raises:
            LogUnreadable, FrameCorrupt: a queue cannot be read.
            StreamNotFound: the topic was removed.
        """
        ends = {level: self._log.span(queue.stream)[1] for level, queue in enumerate(queues, RETRY)}
        if all(queue.applied_end >= end for queue, end in zip(queues, ends.values(), strict=True)):
            return queues
        unreported = Unreported(main, queues)
        order = unreported_of(queues, ends)

        async def piece(level: int, at: int) -> Piece:
            entries, next_ = await self._piece(queues[level - 1].stream, at)
            return entries, next_ if next_ > at else ends[level]

        async for level, entries in in_order(order, piece):
            for entry in entries:
                unreported.take(level, entry)
            if self._bytes_left <= 0:
                return queues
        return tuple(
            replace(queue, progress=queue.progress.with_acked(unreported.done(level)))
            for level, queue in enumerate(queues, RETRY)
        )

    async def _piece(self, stream: StreamId, at: int) -> Piece:
        chunk = await self._log.read(stream, at, bytes_max=LOOKED_AT_BYTES)
        self._bytes_left -= len(chunk.frames)
        entries = await looked(sources_in, chunk.frames, chunk.mask) if chunk.frames else []
        return entries, chunk.next


def sources_in(frames: bytes, mask: Ranges) -> Sequence[Entry]:
    """The entries in the frames, with what they were made of."""
    batch = decode(frames, mask, checksums=False)
    found: list[Entry] = []
    for offset, headers in zip(batch.offsets, batch.headers, strict=True):
        said = brief_of(headers)
        source = said.source_level, said.source_offset
        found.append(Entry(offset, 0, said.attempt, *source, 0, is_rehomed=said.is_rehomed))
    return found
