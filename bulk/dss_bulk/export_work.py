"""Exports: records of a range as Parquet, see `dss_bulk.export`.

Invariant: the run is published before its last chunk is committed. A driver that finds it published
commits the remaining chunks and writes nothing.
"""

import asyncio
import json
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from dss_bulk.dead_letters import records_of
from dss_bulk.export import ExportRun, Lost, Noted, held_name, storage_topics_of
from dss_bulk.selecting import selected
from dss_bulk.selection import RecordSelection
from dss_bulk.work import ChunkDone
from dss_client import Client
from dss_client.job_values import Granted, JobChunk
from dss_core.filters import TopicFilter


@dataclass(frozen=True, slots=True)
class ExportParams:
    """The parameters of an export besides source and range."""

    folder: str
    topic_id: int
    noted: Noted
    """The notes of the folder after the run."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        said = json.loads(text)
        noted = Noted(
            said["ends"],
            tuple(Lost(**each) for each in said.get("lost", ())),
            storage_topics_of(said.get("storage_topics", {})),
            tuple(said.get("gone", ())),
        )
        return cls(said["folder"], said["topic_id"], noted)

    def to_json(self) -> str:
        """The parameters for the manifest."""
        return json.dumps({"folder": self.folder, "topic_id": self.topic_id, **asdict(self.noted)})


def selection_of(granted: Granted) -> RecordSelection:
    """The records that an export takes."""
    filter = granted.job.filter
    return RecordSelection(subject=TopicFilter.parse(filter) if filter else None)


def run_of(granted: Granted, params: ExportParams) -> ExportRun:
    """The run of a job."""
    job = granted.job
    # A name may be used again after a job was removed; its number is not.
    name = f"{job.name}.{job.job_id}"
    held = held_name(job.source, job.dead_letters)
    return ExportRun(Path(params.folder), held, params.topic_id, name)


class ExportWork:
    """Reads, selects, writes a file for each hour."""

    def __init__(self, client: Client, granted: Granted, *, in_place: bool = True) -> None:
        self._client = client
        self._in_place = in_place
        self._granted = granted
        self._params = ExportParams.from_json(granted.job.params)
        self._selection = selection_of(granted)
        self._run = run_of(granted, self._params)

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Write its records; with the last chunk, publish the run."""
        job = self._granted.job
        tables = records_of(self._client, job, chunk.ranges, in_place=self._in_place)
        async with aclosing(tables) as read:
            parts = [(stream, selected(table, self._selection)) async for stream, table in read]
        records = sum(int(table.num_rows) for _, table in parts)
        if not self._run.published:
            # The loop keeps the lease while a slow disk is written to.
            await asyncio.to_thread(self._run.write_chunk, chunk.number, iter(parts))
        if last:
            await asyncio.to_thread(self._run.publish, self._params.noted)
        output = self._run.output(records, last=last)
        return ChunkDone(output=output, records=records)

    def stop(self) -> None:
        """Nothing runs elsewhere."""

    def discard(self) -> None:
        """Remove files that were written and not published."""
        self._run.discard()
