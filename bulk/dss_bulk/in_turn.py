"""Work on one chunk after the other, while those before are committed.

The daemon checks and copies a chunk while its driver reads the next one: each has a core of its
own. Invariant: one chunk is worked on at a time, in the order in which they were asked for, so a
driver needs the memory of one. Once it was told to stop it begins no other.
"""

import asyncio

from dss_bulk.work import ChunkDone, Work
from dss_client.job_values import JobChunk


class InTurn:
    """The work of one kind of job, whose chunks take turns."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._turn = asyncio.Lock()
        self._stops = False

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Do the work of a chunk behind that of those before.

        Raises:
            DssError: it cannot be done.
        """
        async with self._turn:
            if self._stops:
                return ChunkDone()  # nobody commits it
            return await self._work.chunk(chunk, last=last)

    def stop(self) -> None:
        """Begin no other chunk; end what runs elsewhere."""
        self._stops = True
        self._work.stop()

    def discard(self) -> None:
        """Remove what is outside of the staging directory."""
        self._work.discard()
