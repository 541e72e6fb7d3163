"""Bulk jobs over topics that were switched, and are switched while a job goes on.

A job reads all storage topics, each record once, those of a key in the order in which they were
sent, to the end that was planned. It writes to the storage topic that takes records.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dss_client
from dss_bulk.audits.output import output_of
from dss_bulk.audits.params import AuditParams
from dss_bulk.audits.report import report_of
from dss_bulk.backfill_work import BackfillParams, chunks_of
from dss_bulk.driver import drive
from dss_bulk.export import state_of
from dss_bulk.inputs import Inputs
from dss_bulk.local_engine import LOCAL
from dss_bulk.next_export import next_export
from dss_bulk.row_rule import RowRule
from dss_client import Client, Record
from dss_client.changes import Change, CreateJob, GrowTopic
from dss_core.errors import TopicWrittenByJobs
from support.daemon_process import running, short_directory

RECORDS = 500
"""In each storage topic of ``orders``."""
KEYS = 40
GENERATIONS = 3
CHUNK_BYTES = 64 << 10


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Of a daemon with ``orders``, which has records in three storage topics, and ``copies``."""
    with short_directory() as home:
        endpoint = f"unix:{home / 's'}"
        async with (
            running("--data-dir", str(home / "d"), "--listen", endpoint),
            dss_client.connect(endpoint=endpoint) as connected,
        ):
            await connected.topics.create("orders", partitions=2)
            await connected.topics.create("copies", partitions=2)
            for generation, partitions in enumerate((2, 4, 3)):
                if generation:
                    await apply(connected, GrowTopic("orders", partitions))
                await fill(connected, generation)
            await apply(connected, GrowTopic("copies", 6))
            yield connected


async def apply(client: Client, change: Change) -> None:
    plan = await client.operations.plan(change)
    applied = await client.operations.apply(plan, reason="a test")
    assert (await client.operations.ended(applied.number)).state == "done"


async def fill(client: Client, generation: int) -> None:
    async with client.producer("orders") as producer:
        for number in range(generation * RECORDS, (generation + 1) * RECORDS):
            producer.send_nowait(b"%0200d" % number, key=b"k%d" % (number % KEYS))
        await producer.flush()


async def copies(client: Client) -> list[Record]:
    return [record async for record in client.read("copies/#")]


def assert_each_once_in_order(records: list[Record], numbers: range) -> None:
    of_key: dict[bytes | None, list[int]] = {}
    for record in records:
        of_key.setdefault(record.key, []).append(int(record.payload))
    assert all(own == sorted(own) for own in of_key.values())
    assert Counter(n for own in of_key.values() for n in own) == Counter(numbers)


async def switched_meanwhile(client: Client, job: str) -> None:
    """Drive a job while its source is switched, and gets more records."""

    async def grow() -> None:
        await apply(client, GrowTopic("orders", 8))
        await fill(client, GENERATIONS)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(grow(), name="growth")
        driving = tasks.create_task(drive(client, job, engine=LOCAL), name="driver")
    assert driving.result().state == "done"


async def test_a_replay_takes_each_storage_topic_once_and_in_turn_to_where_it_takes_records(
    client: Client,
) -> None:
    change = CreateJob("whole", "replay", source="orders", target="copies", chunk_bytes=CHUNK_BYTES)
    await apply(client, change)
    with pytest.raises(TopicWrittenByJobs, match="whole"):
        await client.operations.plan(GrowTopic("copies", 4))
    await switched_meanwhile(client, "whole")
    found = await copies(client)
    assert_each_once_in_order(found, range(GENERATIONS * RECORDS))
    assert {record.stream.split("/")[1] for record in found} == {"1"}
    origins = {(record.header("dss-origin") or b"").split(b"/")[1] for record in found}
    assert origins == {b"0", b"1", b"2"}
    # Now that the job has ended, its target may grow; the next one writes where that takes records.
    await apply(client, GrowTopic("copies", 4))
    begins_us = (await client.topics.describe("orders")).storage_topics[2].begins_us
    await apply(
        client, CreateJob("late", "replay", source="orders", target="copies", start_us=begins_us)
    )
    # A time opens no storage topic that ended before it.
    read = [each.stream async for chunk in client.jobs.chunks("late") for each in chunk.ranges]
    assert {stream.split("/")[1] for stream in read} == {"2", "3"}
    assert (await drive(client, "late", engine=LOCAL)).state == "done"
    behind = [record for record in await copies(client) if record.stream.startswith("copies/2")]
    assert_each_once_in_order(behind, range(2 * RECORDS, (GENERATIONS + 1) * RECORDS))


async def test_exports_take_all_storage_topics_and_then_what_is_new_in_any(
    client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"

    async def exported(name: str) -> None:
        new = await next_export(client, CreateJob(name, "export", source="orders"), folder)
        assert new.change is not None
        assert new.told == ()
        await apply(client, new.change)

    await exported("one")
    await switched_meanwhile(client, "one")
    await exported("two")
    assert (await drive(client, "two", engine=LOCAL)).state == "done"
    table = ds.dataset(folder, partitioning="hive").to_table()
    numbers = Counter(map(int, table["payload"].to_pylist()))
    assert numbers == Counter(range((GENERATIONS + 1) * RECORDS))
    state = state_of(folder)
    assert state is not None
    sizes = {at: ends and sum(ends) for at, ends in state.storage_topics.items()}
    assert sizes == {0: RECORDS, 1: RECORDS, 2: RECORDS, 3: None}


async def test_a_backfill_writes_to_the_storage_topic_that_takes_records(
    client: Client, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"k": [f"k{n % 7}" for n in range(99)], "n": list(range(99))}), path)
    rule = RowRule("copies", "k")
    inputs = Inputs.looked_at([path], rule)
    params = BackfillParams(rule, inputs.files, None).to_json()
    change = CreateJob("old", "backfill", target="copies", params=params, inputs=chunks_of(inputs))
    await apply(client, change)
    with pytest.raises(TopicWrittenByJobs, match="old"):
        await client.operations.plan(GrowTopic("copies", 4))
    assert (await drive(client, "old", engine=LOCAL)).state == "done"
    found = await copies(client)
    assert sorted(json.loads(record.payload)["n"] for record in found) == list(range(99))
    assert {record.stream.split("/")[1] for record in found} == {"1"}


async def test_an_audit_looks_at_each_storage_topic_by_its_own_routing(client: Client) -> None:
    params = AuditParams.of(await client.topics.describe("orders"))
    change = CreateJob("look", "audit", source="orders", params=params.to_json())
    await apply(client, change)
    await switched_meanwhile(client, "look")
    output = await output_of(client.jobs.chunks("look"))
    report = report_of(output.partial, params.partitions)
    assert report.findings == ()
    assert sum(each.records for each in report.streams) == GENERATIONS * RECORDS
