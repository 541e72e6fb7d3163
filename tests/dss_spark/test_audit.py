"""Audits on Spark find what the local engine finds."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import dss_client
from dss_bulk.audits.output import Output, output_of
from dss_bulk.audits.params import AuditParams
from dss_bulk.audits.partial import Check
from dss_bulk.audits.report import report_of
from dss_bulk.driver import Engine, drive
from dss_bulk.local_engine import LOCAL
from dss_client import Client
from dss_client.changes import CreateJob, GrowTopic
from dss_client.job_values import SourceRange
from dss_spark.audit import shared
from dss_spark.engine import SparkEngine
from support.daemon_process import running, short_directory
from support.proof_share import only_in_proof

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS, KEYS = 600, 20
CHUNK_BYTES = 320 << 10


async def driven(client: Client, change: CreateJob, engine: Engine) -> None:
    await client.operations.apply(await client.operations.plan(change), reason="a test")
    assert (await drive(client, change.name, engine=engine)).state == "done"


async def audited(client: Client, name: str, engine: Engine) -> Output:
    params = AuditParams.of(await client.topics.describe("copies")).to_json()
    change = CreateJob(
        name, "audit", source="copies", filter="copies/eu", chunk_bytes=CHUNK_BYTES, params=params
    )
    await driven(client, change, engine)
    job = await client.jobs.get(name)
    assert job.chunks > 1
    return await output_of(client.jobs.chunks(name))


@pytest.mark.slow("each task of Spark begins a process")
@only_in_proof
async def test_an_audit_on_spark_finds_what_one_process_finds(spark: "SparkSession") -> None:
    with short_directory() as home:
        endpoint = f"unix:{home / 's'}"
        async with (
            running("--data-dir", str(home / "d"), "--listen", endpoint),
            dss_client.connect(endpoint=endpoint) as client,
        ):
            await client.topics.create("orders", partitions=2)
            await client.topics.create("copies", partitions=3)
            async with client.producer("orders") as producer:
                for number in range(RECORDS):
                    subject = "orders/eu" if number % 4 else "orders/us"
                    key = b"k%d" % (number % KEYS)
                    producer.send_nowait(b"%0300d" % number, key=key, subject=subject)
            once = CreateJob("once", "replay", source="orders", target="copies")
            await driven(client, once, LOCAL)
            growing = await client.operations.apply(GrowTopic("copies", 4), reason="a test")
            assert (await client.operations.ended(growing.number)).state == "done"
            await driven(client, replace(once, name="twice"), LOCAL)
            here = await audited(client, "here", LOCAL)
            there = await audited(client, "there", SparkEngine(lambda: spark, "spark of a test"))
    partitions = {0: 3, 1: 4}
    report = report_of(there.partial, partitions)
    assert report == report_of(here.partial, partitions)
    assert report.records == 2 * RECORDS * 3 // 4
    assert report.found((Check.DUPLICATES,))[0].count == RECORDS * 3 // 4


def test_neighbouring_ranges_are_shared_by_tasks_in_their_order() -> None:
    def part(number: int, records: int) -> SourceRange:
        return SourceRange(f"o/0/{number}", 1, number, 0, records)

    ranges = [part(0, 5), part(1, 5), part(2, 1), part(3, 9), part(4, 3)]
    shares = shared(ranges, 2)
    assert [len(each.ranges) for each in shares] == [4, 1]
    assert [each for share in shares for each in share.ranges] == ranges
    assert len(shared(ranges[:1], 8)) == 1
    assert shared([], 4) == []
