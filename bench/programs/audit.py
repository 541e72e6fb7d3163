"""Reading all of a topic as a bulk job does: to look at it, or only to have it."""

import asyncio
import json
import sys
import time

import dss_client
from dss_bulk.audits.params import AuditParams
from dss_bulk.driver import drive
from dss_bulk.local_engine import LOCAL
from dss_bulk.source import tables_of
from dss_client.changes import CreateJob


async def planned(client: dss_client.Client, change: CreateJob) -> CreateJob:
    resolved = (await client.operations.plan(change)).change
    assert isinstance(resolved, CreateJob)
    return resolved


async def read(client: dss_client.Client, topic: str, *, in_place: bool = False) -> int:
    """All records as Arrow tables with their routing hashes."""
    ranges = (await planned(client, CreateJob("read", "audit", source=topic))).ranges
    records = 0
    async for _, table in tables_of(client, ranges, in_place=in_place):
        records += table.num_rows
    return records


async def read_in_place(client: dss_client.Client, topic: str) -> int:
    return await read(client, topic, in_place=True)


async def audit(client: dss_client.Client, topic: str) -> int:
    params = AuditParams.of(await client.topics.describe(topic)).to_json()
    return await driven(client, CreateJob(f"{topic}-audit", "audit", source=topic, params=params))


async def copy(client: dss_client.Client, topic: str) -> int:
    await client.topics.create(f"{topic}-copies", partitions=8)
    change = CreateJob(f"{topic}-copy", "replay", source=topic, target=f"{topic}-copies")
    return await driven(client, change)


async def driven(client: dss_client.Client, change: CreateJob) -> int:
    await client.operations.apply(await client.operations.plan(change), reason="a measurement")
    job = await drive(client, change.name, engine=LOCAL)
    assert job.state == "done"
    return sum([each.records_planned async for each in client.jobs.chunks(job.name)])


WAYS = {"read": read, "read_in_place": read_in_place, "audit": audit, "copy": copy}


async def main(endpoint: str, what: str, topic: str) -> None:
    async with dss_client.connect(endpoint=endpoint) as client:
        began = time.perf_counter()
        records = await WAYS[what](client, topic)
        seconds = time.perf_counter() - began
    print(json.dumps({"records": records, "seconds": seconds}))


asyncio.run(main(*sys.argv[1:]))
