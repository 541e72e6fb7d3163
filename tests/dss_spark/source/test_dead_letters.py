"""What lies dead in a group as a DataFrame, and jobs of it on Spark."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

import dss_client
from dss_bulk.driver import drive
from dss_bulk.next_export import next_export
from dss_bulk.transform_params import TransformParams
from dss_client import Client
from dss_client.changes import CreateJob
from dss_core.dead_origin import ERROR
from dss_core.errors import IllegalArgument
from dss_spark.source.options import SourceOptions
from support.daemon_process import running, short_directory
from support.dead_letters import dead, grouped, key_of, produce, rejected
from support.proof_share import only_in_proof

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUMBERS = range(30)
MEND = """
def mended(records):
    return records.withColumn("payload", records.error.cast("binary"))
"""


@contextlib.asynccontextmanager
async def filled() -> AsyncIterator[tuple[str, Client]]:
    """A daemon with thirty dead letters: where it is, and a client of it."""
    with short_directory() as home:
        endpoint = f"unix:{home / 's'}"
        async with (
            running("--data-dir", str(home / "d"), "--listen", endpoint),
            dss_client.connect(endpoint=endpoint) as client,
        ):
            await grouped(client)
            await produce(client, NUMBERS)
            await rejected(client, NUMBERS)
            yield endpoint, client


def read(spark: "SparkSession", endpoint: str, **options: str) -> "DataFrame":
    source = spark.read.format("dss").option("endpoint", endpoint).option("topic", "orders")
    return source.options(**options).load()


@pytest.mark.slow("Spark plans and reads in processes of its own")
@only_in_proof
async def test_dead_letters_are_read_as_the_records_that_they_are_and_why(
    spark: "SparkSession",
) -> None:
    async with filled() as (endpoint, client):
        frame = await asyncio.to_thread(read, spark, endpoint, dead_letters="billing")
        wanted = frame.where("cause = 'rejected' AND offset >= 0 AND append_time <= entered_at")
        rows = await asyncio.to_thread(wanted.collect)
        found = {int(row.payload): row for row in rows}
        assert sorted(found) == [*NUMBERS]
        one = found[7]
        assert (bytes(one.key), one.attempt, one.error) == (key_of(7), 1, "no price for 7")
        assert [(each.name, bytes(each.value)) for each in one.headers] == [("n", b"own")]
        records = {
            (each.stream, each.offset): each.payload async for each in client.read("orders/#")
        }
        assert records[one.stream, one.offset] == b"7"
        none = await asyncio.to_thread(read, spark, endpoint, dead_letters="billing", end="@1")
        assert await asyncio.to_thread(none.count) == 0
        assert await dead(client) == [*NUMBERS]


@pytest.mark.slow("three jobs on Spark")
@only_in_proof
async def test_jobs_on_spark_copy_and_export_what_lies_dead(
    spark: "SparkSession", tmp_path: Path
) -> None:
    from dss_spark.engine import SparkEngine

    async with filled() as (_, client):
        await client.topics.create("copies", partitions=3)
        replay = CreateJob(
            "again", "replay", source="orders", target="copies", dead_letters="billing"
        )
        export = CreateJob("kept", "export", source="orders", dead_letters="billing")
        found = await next_export(client, export, tmp_path)
        assert found.change is not None
        params = TransformParams("mended", MEND, "mend.py")
        mend = replace(replay, name="mend", kind="transform", params=params.to_json())
        for change in (replay, found.change, mend):
            await client.operations.apply(change, reason="a test")
            engine = SparkEngine(lambda: spark, "spark of a test")
            job = await drive(client, change.name, engine=engine)
            assert (job.state, job.records) == ("done", len(NUMBERS))
        every = [each async for each in client.read("copies/#")]
        copies = {int(each.payload): each for each in every if each.payload.isdigit()}
        assert sorted(copies) == [*NUMBERS]
        mended = {each.payload for each in every if not each.payload.isdigit()}
        assert mended == {b"no price for %d" % number for number in NUMBERS}
        assert copies[9].header(ERROR) == b"no price for 9"
        assert (copies[9].header("dss-origin") or b"").startswith(b"orders/0/")
        table = await asyncio.to_thread(_exported, tmp_path)
        assert sorted(map(int, table["payload"])) == [*NUMBERS]
        assert set(table["error"]) == {f"no price for {number}" for number in NUMBERS}


def _exported(folder: Path) -> dict[str, list[str]]:
    columns = ds.dataset(folder, partitioning="hive").to_table().to_pydict()
    return {name: columns[name] for name in ("payload", "error")}


def test_an_option_that_says_nothing_of_dead_letters_is_refused() -> None:
    asked = {"topic": "orders", "dead_letters": "billing"}
    with pytest.raises(IllegalArgument, match="streams"):
        SourceOptions.of({**asked, "streams": "orders/0/0"})
    with pytest.raises(IllegalArgument, match="readStream"):
        SourceOptions.of(asked).for_stream()
    assert "entered_at" in SourceOptions.of(asked).columns
    assert "entered_at" not in SourceOptions.of({"topic": "orders"}).columns
