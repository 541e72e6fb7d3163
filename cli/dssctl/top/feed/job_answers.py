"""Asks for what no watch reports of a bulk job: its manifest, and its log.

A job may have thousands of chunks, and megabytes of log. Invariant: for the shown job only new
parts are asked for and read; chunks that were published before stay as they are.
"""

from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING

from dssctl.output import Instant
from dssctl.top.model.answers import Answer, LogLine

if TYPE_CHECKING:
    from dss_client import Client, Job, JobChunk
    from dssctl.job_logs import JobTold
    from dssctl.output import Item
    from dssctl.top.model.places import Place

JOB_LOG_LINES = 200
"""How many lines of a job's log are kept, the newest: four large screens."""


class JobAnswers:
    """Remembers one job: the one asked about last."""

    def __init__(self) -> None:
        self._job_id = 0
        self._chunks: list[JobChunk] = []
        self._told: JobTold | None = None
        self._lines: deque[LogLine] = deque(maxlen=JOB_LOG_LINES)

    async def answer(self, client: "Client", place: "Place") -> Answer:
        """All that is known of the job, beside the watch.

        Raises:
            DssError: there is none, or the daemon is away.
        """
        job = await client.jobs.get(place.name)
        if job.job_id != self._job_id:
            self._begin(job)
        await self._learn_chunks(client, job)
        await self._read_log(client)
        return Answer(place, params=job.params, chunks=tuple(self._chunks), log=tuple(self._lines))

    def _begin(self, job: "Job") -> None:
        from dssctl.job_logs import JobTold

        self._job_id = job.job_id
        self._chunks = []
        self._told = JobTold(job)
        self._lines.clear()

    async def _learn_chunks(self, client: "Client", job: "Job") -> None:
        """Read all chunks at first; later only those published since."""
        known = len(self._chunks) == job.chunks
        first = sum(each.result is not None for each in self._chunks) if known else 0
        if known and first >= job.published:
            return
        after = first - 1 if first else None
        found: list[JobChunk] = []
        async with aclosing(client.jobs.chunks(str(job.job_id), after=after)) as chunks:
            async for chunk in chunks:
                if known and chunk.result is None:
                    break  # this chunk and the later ones did not change
                found.append(chunk)
        self._chunks[first : first + len(found)] = found

    async def _read_log(self, client: "Client") -> None:
        assert self._told is not None
        self._lines.extend(map(_line, await self._told.more(client)))


def _line(item: "Item") -> LogLine:
    at = item["at"]
    assert isinstance(at, Instant)
    return LogLine(at.us // 1_000, str(item["by"]), str(item["text"]))
