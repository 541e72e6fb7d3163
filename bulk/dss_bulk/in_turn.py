"""Works on one chunk after the other, while earlier ones are committed.

The daemon checks and copies a chunk while its driver reads the next one: each uses a core of its
own. Invariant: one chunk is worked on at a time, the lowest that is not done. So a driver needs the
memory of one chunk, and no later chunk takes the disk space that an earlier one waits for. After
`stop` no chunk is begun.
"""

import asyncio

from dss_bulk.work import ChunkDone, Work
from dss_client.job_values import JobChunk


class InTurn:
    """The work of one kind of job, one chunk at a time."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._open: set[int] = set()
        """Chunks that were asked for and are not done."""
        self._changed = asyncio.Event()
        self._stops = False

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Do the work of a chunk after that of earlier ones.

        Raises:
            DssError: it cannot be done; later chunks wait until it was asked for again.
        """
        self._open.add(chunk.number)
        while not self._stops and min(self._open) != chunk.number:
            self._changed.clear()
            await self._changed.wait()
        if self._stops:
            return ChunkDone()  # nobody commits it
        done = await self._work.chunk(chunk, last=last)
        self._open.remove(chunk.number)
        self._changed.set()
        return done

    def stop(self) -> None:
        """Begin no other chunk; end work elsewhere."""
        self._stops = True
        self._changed.set()
        self._work.stop()

    def discard(self) -> None:
        """Remove files outside of the staging directory."""
        self._work.discard()
