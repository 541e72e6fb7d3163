"""Work on one chunk after the other, while those before are committed.

The daemon checks and copies a chunk while its driver reads the next one: each has a core of its
own. Invariant: one chunk is worked on at a time, the lowest that is not done, so a driver needs the
memory of one; and none that comes later takes the room on the disk that an earlier one waits for.
Once it was told to stop it begins no other.
"""

import asyncio

from dss_bulk.work import ChunkDone, Work
from dss_client.job_values import JobChunk


class InTurn:
    """The work of one kind of job, whose chunks take turns."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._open: set[int] = set()
        """The chunks that were asked for and are not done."""
        self._changed = asyncio.Event()
        self._stops = False

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Do the work of a chunk behind that of those before.

        Raises:
            DssError: it cannot be done; those behind it wait until it was asked for again.
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
        """Begin no other chunk; end what runs elsewhere."""
        self._stops = True
        self._changed.set()
        self._work.stop()

    def discard(self) -> None:
        """Remove what is outside of the staging directory."""
        self._work.discard()
