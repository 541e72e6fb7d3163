"""Bulk jobs in tests: those of a daemon's parts, and a driver that goes record by record."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from dss_client import Client
from dss_client.job_values import JobChunk, JobTarget
from dss_client.jobs import Lease
from dss_client.record import Record
from dss_core.columns import Columns
from dss_core.errors import OutcomeUnknown, Stopping, Unreachable
from dss_core.origin import Source, copied_headers
from dss_core.routing import key_hash, partition_of
from dss_core.staged import StagedFile, StagedWriter
from dss_sim.played_groups import Plant
from dssd.jobs.jobs import Jobs
from dssd.jobs.staging import Staging

T = TypeVar("T")
AWAY_S = 0.05


async def opened_jobs(plant: Plant) -> Jobs:
    """The jobs of a plant, whose events nobody gets."""
    staging = Staging(plant.directory.parent / "staging")
    return await Jobs.open(
        plant.store, plant.catalogue, plant.log, staging, plant.clock, lambda _event: None
    )


async def read_chunk(client: Client, chunk: JobChunk) -> list[Record]:
    """The records that a chunk reads, stream after stream."""
    found: list[Record] = []
    for each in chunk.ranges:
        count = each.end - each.start
        reader = client.read(stream=each.stream, start=f"={each.start}", records_max=count)
        found += [record async for record in reader]
    return found


def staged(lease: Lease, chunk: int, records: Sequence[Record], subject: str) -> StagedFile:
    """One staged file with the records, routed to the target's partitions."""
    target = lease.granted.target
    assert target is not None
    by_partition: defaultdict[int, list[Record]] = defaultdict(list)
    for record in records:
        by_partition[_partition(record, target)].append(record)
    with StagedWriter(lease.granted.staging, lease.granted.staged_for(chunk)) as writer:
        for partition, own in sorted(by_partition.items()):
            writer.add(_columns(own, lease.job.name, subject), partition)
        return writer.finish()


def _partition(record: Record, target: JobTarget) -> int:
    if record.key is None:
        return record.offset % target.partitions
    return partition_of(target.router, key_hash(record.key), target.partitions, target.factor)


def _columns(records: Sequence[Record], job: str, subject: str) -> Columns:
    return Columns(
        payloads=[record.payload for record in records],
        keys=[record.key for record in records],
        subjects=subject,
        headers=[
            copied_headers(record.headers, Source(record.stream, record.offset, 0), job, 4)
            for record in records
        ],
        timestamps_us=[record.timestamp_us for record in records],
    )


async def answered(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer of a daemon that may be away for a while."""
    while True:
        try:
            return await ask()
        except (Unreachable, OutcomeUnknown, Stopping):
            await asyncio.sleep(AWAY_S)


async def replay(client: Client, job: str, *, subject: str, driver: str = "a test") -> int:
    """Drive a replay to its end; returns how many chunks this driver published."""
    count = 0
    async with client.jobs.drive(job, driver=driver) as lease:
        async for chunk in lease.open_chunks():
            records = await answered(partial(read_chunk, client, chunk))
            file = staged(lease, chunk.number, records, subject)
            await lease.commit(chunk.number, [file])
            count += 1
    return count
