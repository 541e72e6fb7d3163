"""Replays: records of a range of one topic, copied to another.

Invariant: each record that is selected gets one copy; copies keep the order of their keys.
"""

import asyncio
import json
from dataclasses import asdict, dataclass
from functools import partial
from typing import Self

import pyarrow as pa

from dss_bulk.copies import CopyRule, copied
from dss_bulk.selection import Selection
from dss_bulk.source import tables_of
from dss_bulk.staging import Staging, Target
from dss_bulk.tables import with_stream
from dss_bulk.work import ChunkDone
from dss_client import Client
from dss_client.job_values import Granted, JobChunk
from dss_core.filters import TopicFilter
from dss_core.staged import StagedFor


@dataclass(frozen=True, slots=True)
class ReplayParams:
    """What a replay is told besides source, target and range."""

    subject: str | None = None
    """A template, see `dss_bulk.copies`."""
    key: str | None = None
    """Hexadecimal: records of this key alone."""
    headers: tuple[tuple[str, str], ...] = ()
    """Records with each of these headers alone; values as text."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote; nothing where it is empty."""
        fields = json.loads(text or "{}")
        headers = tuple((name, value) for name, value in fields.pop("headers", ()))
        return cls(headers=headers, **fields)

    def to_json(self) -> str:
        """For the manifest."""
        return json.dumps(asdict(self))


def copy_rule_of(granted: Granted, params: ReplayParams) -> CopyRule:
    """How the records of a replay are copied."""
    assert granted.target is not None, "a replay writes to a topic"
    job = granted.job
    return CopyRule(job.source, granted.target.topic, job.name, job.hops_max, params.subject)


def selection_of(granted: Granted, params: ReplayParams) -> Selection:
    """Which records a replay takes."""
    job = granted.job
    return Selection(
        subject=TopicFilter.parse(job.filter) if job.filter else None,
        key=None if params.key is None else bytes.fromhex(params.key),
        headers=tuple((name, value.encode()) for name, value in params.headers),
    )


class ReplayWork:
    """Reads, selects, copies, stages."""

    def __init__(self, client: Client, granted: Granted, *, in_place: bool = True) -> None:
        assert granted.target is not None, "a replay writes to a topic"
        target = granted.target
        params = ReplayParams.from_json(granted.job.params)
        self._client = client
        self._in_place = in_place
        self._granted = granted
        self._storage_topic_id = target.storage_topic_id
        self._target = Target(target.router, target.partitions, target.factor)
        self._rule = copy_rule_of(granted, params)
        self._selection = selection_of(granted, params)

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Stage the copies of its records."""
        staged_for = StagedFor(self._granted.job.job_id, chunk.number, self._storage_topic_id)
        # The loop reads on and keeps the lease while a table is copied, routed and written.
        finished = partial(copied, rule=self._rule)
        with Staging(self._granted.staging, staged_for, self._target, finished) as staging:
            tables = tables_of(self._client, chunk.ranges, in_place=self._in_place)
            async for stream, table in tables:
                await asyncio.to_thread(self._stage, staging, stream, table)
            records = staging.records
            file = await asyncio.to_thread(staging.finish)
        return ChunkDone(() if file is None else (file,), records=records)

    def _stage(self, staging: Staging, stream: str, table: pa.Table) -> None:
        staging.add(with_stream(self._selection.of(table), stream))

    def stop(self) -> None:
        """Nothing runs elsewhere."""

    def discard(self) -> None:
        """Nothing is left: the daemon sweeps what was staged."""
