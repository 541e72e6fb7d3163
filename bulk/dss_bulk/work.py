"""What a driver does with a chunk, by the kind of its job.

::

    open(job) ──► chunk(0) ─commit─► chunk(1) ─commit─► ... chunk(last) ─commit─► done

Invariant: `chunk` may be called for several chunks at once; but of a job that writes no topic, not
for the last one before all the others are committed. It may be called again for the same chunk by
another process, and then gives the same; what it leaves outside of the staging directory is
complete and durable when it returns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dss_client.job_values import JobChunk
from dss_core.staged import StagedFile


@dataclass(frozen=True, slots=True)
class ChunkDone:
    """The content of a chunk's commit."""

    files: Sequence[StagedFile] = ()
    output: str = ""
    """The note in the manifest on a chunk that was written elsewhere."""
    records: int = 0


class Work(Protocol):
    """The work of one kind of job."""

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Do the work of a chunk, up to its commit.

        Raises:
            DssError: it cannot be done.
        """
        ...

    def stop(self) -> None:
        """Nobody wants the chunks that are worked on: end what runs elsewhere for them."""
        ...

    def discard(self) -> None:
        """The job has ended otherwise: remove what is outside of the staging directory."""
        ...
