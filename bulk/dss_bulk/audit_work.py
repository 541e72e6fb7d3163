"""Audits: examine the records of ranges, and keep the findings in the manifest.

Invariant: nothing is written except into the manifest. The last chunk has the findings of all
chunks, those of earlier drivers included.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from dss_bulk.audits.examining import RangeRead, Rule, Shape, examined
from dss_bulk.audits.output import GroupLag, Output, output_of
from dss_bulk.audits.params import AuditParams
from dss_bulk.audits.partial import Partial, merged
from dss_bulk.selection import RecordSelection
from dss_bulk.whole_range import whole_range
from dss_bulk.work import ChunkDone
from dss_client import Client
from dss_client.job_values import Granted, JobChunk, SourceRange
from dss_core.errors import IllegalJob
from dss_core.filters import TopicFilter
from dss_core.routing import Router

Examine = Callable[[Sequence[SourceRange]], Awaitable[Partial]]
"""Examines ranges, here or on a cluster."""


class AuditWork:
    """The work of an audit: read, examine, report."""

    def __init__(
        self,
        client: Client,
        granted: Granted,
        examine: Examine | None = None,
        *,
        in_place: bool = True,
    ) -> None:
        self._client = client
        self._job = job = granted.job
        self._rule = rule_of(job.name, job.params, job.filter)
        here = partial(examined_here, client, self._rule, in_place=in_place)
        self._examine = examine or here

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Examine its ranges; with the last chunk, return the findings of all.

        Raises:
            IllegalJob: the job does not say how a storage topic of its topic is routed.
        """
        if any(each.storage_topic_id not in self._rule.shapes for each in chunk.ranges):
            rule = "its topic got a storage topic while it was made; make it again"
            raise IllegalJob(job=self._job.name, rule=rule)
        found = await self._examine(chunk.ranges)
        output = await self._whole(found) if last else Output(found)
        return ChunkDone(output=await asyncio.to_thread(output.to_json), records=found.records)

    def stop(self) -> None:
        """Nothing runs elsewhere."""

    def discard(self) -> None:
        """Nothing is left anywhere."""

    async def _whole(self, found: Partial) -> Output:
        before = await output_of(self._client.jobs.chunks(str(self._job.job_id)))
        whole = await asyncio.to_thread(merged, before.partial, found)
        return Output(whole, is_whole=True, groups=await self._groups())

    async def _groups(self) -> tuple[GroupLag, ...]:
        """The groups that read the topic, the furthest behind first."""
        groups = await self._client.groups.list(sort="lag")
        return tuple(
            GroupLag(f"{each.name}@{each.filter}", each.state, each.lag)
            for each in groups
            if any(TopicFilter.parse(each.filter).overlaps(own) for own in self._rule.patterns)
        )


def rule_of(job: str, params: str, filter: str) -> Rule:
    """The rules for the records of an audit, from the parameters of its job.

    Raises:
        IllegalJob: its parameters are none of an audit.
    """
    said = AuditParams.from_json(job, params)
    router = Router(said.router)
    return Rule(
        patterns=tuple(TopicFilter.parse(each) for each in said.patterns),
        shapes={
            number: Shape(router, each.partitions, each.factor)
            for number, each in said.shapes.items()
        },
        selection=RecordSelection(subject=TopicFilter.parse(filter) if filter else None),
    )


async def examined_here(
    client: Client, rule: Rule, ranges: Sequence[SourceRange], *, in_place: bool = True
) -> Partial:
    """The partial results of ranges, one after the other, in this process.

    Raises:
        DssError: the daemon refuses, or the connection was lost.
    """
    whole = Partial()
    before: RangeRead | None = None
    for each in ranges:
        # While a range is examined the next one comes, and the lease is kept.
        read, found = await asyncio.gather(
            _read(client, each, in_place=in_place), _examined(before, rule)
        )
        whole, before = merged(whole, found), read
    return merged(whole, await _examined(before, rule))


async def _examined(read: RangeRead | None, rule: Rule) -> Partial:
    return Partial() if read is None else await asyncio.to_thread(examined, read, rule)


async def _read(client: Client, each: SourceRange, *, in_place: bool) -> RangeRead:
    read = await whole_range(client, each, in_place=in_place)
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
