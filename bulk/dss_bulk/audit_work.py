"""Audits: records of a range looked at, and what they say kept in the manifest.

Invariant: nothing is written anywhere but into the manifest. The last chunk holds what all chunks
gave, those of earlier drivers too.
"""

import asyncio

from dss_bulk.audits.examining import RangeRead, Rule, Shape, examined
from dss_bulk.audits.output import GroupLag, Output, output_of
from dss_bulk.audits.params import AuditParams
from dss_bulk.audits.partial import Partial, merged
from dss_bulk.selection import Selection
from dss_bulk.whole_range import whole_range
from dss_bulk.work import ChunkDone
from dss_client import Client
from dss_client.job_values import Granted, JobChunk, SourceRange
from dss_core.filters import TopicFilter
from dss_core.routing import Router


class AuditWork:
    """Reads, examines, says."""

    def __init__(self, client: Client, granted: Granted) -> None:
        job = granted.job
        self._client = client
        self._job = job
        params = AuditParams.from_json(job.name, job.params)
        self._patterns = tuple(TopicFilter.parse(each) for each in params.patterns)
        selection = Selection(subject=TopicFilter.parse(job.filter) if job.filter else None)
        router = Router(params.router)
        shapes = {
            number: Shape(router, each.partitions, each.factor)
            for number, each in params.shapes.items()
        }
        self._rule = Rule(self._patterns, shapes, selection)

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Examine its ranges; with the last chunk, say what all of them gave."""
        partial = Partial()
        before: RangeRead | None = None
        for each in chunk.ranges:
            # While a range is examined the next one comes, and the lease is kept.
            read, found = await asyncio.gather(self._read(each), self._examined(before))
            partial, before = merged(partial, found), read
        partial = merged(partial, await self._examined(before))
        output = await self._whole(partial) if last else Output(partial)
        return ChunkDone(output=await asyncio.to_thread(output.to_json), records=partial.records)

    def stop(self) -> None:
        """Nothing runs elsewhere."""

    def discard(self) -> None:
        """Nothing is left anywhere."""

    async def _examined(self, read: RangeRead | None) -> Partial:
        if read is None:
            return Partial()
        return await asyncio.to_thread(examined, read, self._rule)

    async def _read(self, each: SourceRange) -> RangeRead:
        read = await whole_range(self._client, each)
        return RangeRead(
            each.stream,
            each.storage_topic_id,
            each.partition,
            each.start,
            each.end,
            read.table,
            read.damaged,
            read.lost,
        )

    async def _whole(self, partial: Partial) -> Output:
        before = await output_of(self._client.jobs.chunks(str(self._job.job_id)))
        whole = await asyncio.to_thread(merged, before.partial, partial)
        return Output(whole, is_whole=True, groups=await self._groups())

    async def _groups(self) -> tuple[GroupLag, ...]:
        """Those that read the topic, the furthest behind first."""
        groups = await self._client.groups.list(sort="lag")
        return tuple(
            GroupLag(f"{each.name}@{each.filter}", each.state, each.lag)
            for each in groups
            if any(TopicFilter.parse(each.filter).overlaps(own) for own in self._patterns)
        )
