"""Replays: records of a range of one topic, copied to another.

Invariant: each selected record gets one copy; copies keep the order of their keys.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial

import pyarrow as pa

from dss_bulk.copies import copied
from dss_bulk.dead_letters import records_of
from dss_bulk.replay_params import ReplayParams, copy_rule_of, selection_of
from dss_bulk.selecting import selected
from dss_bulk.staging import Staging
from dss_bulk.tables import with_stream
from dss_bulk.target import Target
from dss_bulk.work import ChunkDone
from dss_client import Client
from dss_client.job_values import Granted, JobChunk
from dss_core.staged import StagedFor

STAGED_TABLES_AT_ONCE = 4
"""How many tables one turn of a thread takes in: handing over each by itself costs more than
keeping it until it is written."""


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
            read = records_of(
                self._client,
                self._granted.job,
                chunk.ranges,
                in_place=self._in_place,
                encoded=True,
                tells=True,
            )
            some: list[tuple[str, pa.Table]] = []
            async with aclosing(read) as tables:
                async for each in tables:
                    some.append(each)
                    if len(some) == STAGED_TABLES_AT_ONCE:
                        await asyncio.to_thread(self._stage, staging, some)
                        some = []
            return await asyncio.to_thread(self._finished, staging, some)

    def _stage(self, staging: Staging, some: Sequence[tuple[str, pa.Table]]) -> None:
        for stream, table in some:
            staging.add(with_stream(selected(table, self._selection), stream))

    def _finished(self, staging: Staging, rest: Sequence[tuple[str, pa.Table]]) -> ChunkDone:
        self._stage(staging, rest)
        records = staging.records
        file = staging.finish()
        return ChunkDone(() if file is None else (file,), records=records)

    def stop(self) -> None:
        """Nothing runs elsewhere."""

    def discard(self) -> None:
        """Nothing to do: the daemon deletes staged files."""
