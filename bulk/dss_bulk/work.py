"""The work of a driver on a chunk, by the kind of its job.

::

    open(job) ──► chunk(0) ─commit─► chunk(1) ─commit─► ... chunk(last) ─commit─► done

Invariant: `chunk` may be called for several chunks at once; but the last chunk of a job that writes
to no topic waits until all others are committed. It may be called again for the same chunk by
another process, and then gives the same; files that it leaves outside of the staging directory are
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
    """The manifest's note on a chunk that was written elsewhere."""
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
        """The chunks under way are not wanted: end work elsewhere on them."""
        ...

    def discard(self) -> None:
        """The job has ended without success: remove files outside of the staging directory."""
        ...
