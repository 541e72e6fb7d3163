"""Replays, exports and transforms on Spark, on a real daemon."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

import dss_client
from dss_bulk import export
from dss_bulk.driver import Engine, drive
from dss_bulk.export_work import ExportParams
from dss_bulk.local_engine import LOCAL
from dss_bulk.replay_params import ReplayParams
from dss_bulk.transform_params import TransformParams
from dss_client import Client
from dss_client.changes import CancelJob, CreateJob, GrowTopic
from dss_core.errors import FunctionRefused, JobNotInState, StagedFileRefused, WorkFailed
from dss_spark.driving import in_turn
from dss_spark.engine import SparkEngine
from support.daemon_process import running, short_directory
from support.proof_share import only_in_proof

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS = 1_500
KEYS = 40
CHUNK_BYTES = 128 << 10

MENDED = """
def mended(records):
    from pyspark.sql import functions as f

    doubled = f.expr("CAST(CAST(2 * CAST(CAST(payload AS STRING) AS BIGINT) AS STRING) AS BINARY)")
    return records.where("subject LIKE 'copies/eu%'").withColumn("payload", doubled)

def nothing(records):
    return records.count()
"""

BAD = """
def raises(records):
    raise KeyError("price")

def short(records):
    return records.drop("payload", "time")

def strange(records):
    return records.withColumn("payload", records.time)

def empty(records):
    from pyspark.sql import functions as f

    return records.withColumn("payload", f.expr("CAST(NULL AS BINARY)"))

def placeless(records):
    from pyspark.sql import functions as f

    return records.withColumn("offset", f.expr("CAST(NULL AS BIGINT)"))

def elsewhere(records):
    from pyspark.sql import functions as f

    return records.withColumn("subject", f.lit("elsewhere/1"))

def late(records):
    from pyspark.sql import functions as f

    def divided(payload):
        return 1 // 0

    return records.withColumn("payload", f.udf(divided, "BINARY", useArrow=False)("payload"))
"""
BAD_FUNCTIONS = (
    ("raises", FunctionRefused, "KeyError: 'price'"),
    ("short", FunctionRefused, "has no column payload, time"),
    ("strange", FunctionRefused, "is no record"),
    ("empty", WorkFailed, "bad.py:empty returned has a record without payload"),
    ("placeless", WorkFailed, "a record without offset"),
    ("elsewhere", StagedFileRefused, "elsewhere/1"),
    ("late", WorkFailed, "ZeroDivisionError"),
)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Of a daemon with topics that were switched: ``orders`` with records, and ``copies``."""
    with short_directory() as home:
        endpoint = f"unix:{home / 's'}"
        async with (
            running("--data-dir", str(home / "d"), "--listen", endpoint),
            dss_client.connect(endpoint=endpoint) as connected,
        ):
            await fill(connected)
            yield connected


@pytest.fixture
def engine(spark: "SparkSession") -> SparkEngine:
    """On the session of all tests."""
    return SparkEngine(lambda: spark, "spark of a test")


async def fill(client: Client) -> None:
    await client.topics.create("orders", partitions=2)
    await client.topics.create("copies", partitions=3)
    await grow(client, "copies", 12)
    await produce(client, range(RECORDS // 2))
    await grow(client, "orders", 3)
    await produce(client, range(RECORDS // 2, RECORDS))


async def grow(client: Client, topic: str, partitions: int) -> None:
    growing = await client.operations.apply(GrowTopic(topic, partitions), reason="a test")
    assert (await client.operations.ended(growing.number)).state == "done"


async def produce(client: Client, numbers: range) -> None:
    async with client.producer("orders") as producer:
        for number in numbers:
            subject = "orders/eu" if number % 4 else "orders/us"
            key = None if number % 100 == 0 else b"k%d" % (number % KEYS)
            producer.send_nowait(b"%0200d" % number, key=key, subject=subject)
        await producer.flush()


async def driven(client: Client, change: CreateJob, engine: Engine) -> None:
    await client.operations.apply(await client.operations.plan(change), reason="a test")
    assert (await drive(client, change.name, engine=engine)).state == "done"


def of_topic(
    name: str, kind: str, params: str = "", *, target: str = "copies", filter: str = ""
) -> CreateJob:
    return CreateJob(
        name, kind, source="orders", target=target, filter=filter, chunk_bytes=CHUNK_BYTES,
        params=params,
    )  # fmt: skip


async def by_key(client: Client) -> dict[bytes | None, list[int]]:
    found: dict[bytes | None, list[int]] = {}
    async for record in client.read("copies/#"):
        found.setdefault(record.key, []).append(int(record.payload))
    return found


@only_in_proof
async def test_some_jobs_are_driven_in_one_session_up_to_the_first_that_cannot_be(
    client: Client, engine: SparkEngine
) -> None:
    for name in ("first", "gone", "last"):
        change = of_topic(name, "replay", filter=f"{name}/#")
        await client.operations.apply(await client.operations.plan(change), reason="a test")
    await client.operations.apply(await client.operations.plan(CancelJob("gone")))
    with pytest.raises(JobNotInState):
        await in_turn(["first", "gone", "last"], client.endpoint, engine)
    await in_turn(["last"], client.endpoint, engine)
    assert [(await client.jobs.get(name)).state for name in ("first", "gone", "last")] == [
        "done", "cancelled", "done",
    ]  # fmt: skip


@only_in_proof
async def test_a_replay_copies_each_record_once_in_the_order_of_its_key(
    client: Client, engine: Engine
) -> None:
    await driven(client, of_topic("whole", "replay"), engine)
    found = await by_key(client)
    keyed = [numbers for key, numbers in found.items() if key is not None]
    assert all(numbers == sorted(numbers) for numbers in keyed)
    assert Counter(n for numbers in found.values() for n in numbers) == Counter(range(RECORDS))
    record = await anext(aiter(client.read("copies/#")))
    assert record.header("dss-job") == b"whole"
    assert record.subject in ("copies/eu", "copies/us")


@only_in_proof
async def test_a_replay_copies_what_its_filter_and_its_key_choose(
    client: Client, engine: Engine
) -> None:
    await driven(client, of_topic("whole", "replay"), engine)
    params = ReplayParams(key=b"k4".hex(), headers=(("dss-job", "whole"),))
    back = of_topic("some", "replay", params.to_json(), filter="copies/us")
    await client.topics.create("third", partitions=1)
    await driven(client, replace(back, source="copies", target="third"), engine)
    numbers = [int(record.payload) async for record in client.read("third/#")]
    assert numbers == list(range(4, RECORDS, KEYS))


async def test_a_transform_publishes_what_the_function_makes_of_the_records(
    client: Client, engine: Engine, tmp_path: Path
) -> None:
    path = tmp_path / "mend.py"
    path.write_text(MENDED)
    params = TransformParams.of_file(f"{path}:mended")
    await driven(client, of_topic("mend", "transform", params.to_json()), engine)
    found = await by_key(client)
    keyed = [numbers for key, numbers in found.items() if key is not None]
    assert all(numbers == sorted(numbers) for numbers in keyed)
    wanted = [2 * number for number in range(RECORDS) if number % 4]
    assert Counter(n for numbers in found.values() for n in numbers) == Counter(wanted)
    record = await anext(aiter(client.read("copies/#")))
    assert record.subject == "copies/eu"
    origin = record.header("dss-origin")
    assert origin is not None
    assert origin.startswith(b"orders/0/")
    wrong = TransformParams.of_file(f"{path}:nothing")
    with pytest.raises(FunctionRefused, match="no DataFrame"):
        await driven(client, of_topic("wrong", "transform", wrong.to_json()), engine)


@pytest.mark.slow("a job of Spark for each function")
@only_in_proof
async def test_a_function_that_returns_no_records_fails_its_job_with_nothing_published(
    client: Client, engine: Engine, tmp_path: Path
) -> None:
    path = tmp_path / "bad.py"
    path.write_text(BAD)
    for name, error, said in BAD_FUNCTIONS:
        params = TransformParams.of_file(f"{path}:{name}").to_json()
        with pytest.raises(error, match=said):
            await driven(client, of_topic(name, "transform", params), engine)
        assert (await client.jobs.get(name)).state == "failed"
    assert [record async for record in client.read("copies/#")] == []


async def exported(client: Client, name: str, folder: Path, engine: Engine) -> None:
    topic = await client.topics.describe("orders")
    state = export.state_of(folder)
    after = {} if state is None else state.ends
    change = of_topic(name, "export", target="")
    made = (await client.operations.plan(change)).change
    assert isinstance(made, CreateJob)
    ranges = [
        replace(each, start=max(each.start, after.get(each.stream, 0))) for each in made.ranges
    ]
    ranges = [each for each in ranges if each.start < each.end]
    noted = export.Noted({each.stream: each.end for each in ranges})
    params = ExportParams(str(folder), topic.topic_id, noted)
    await driven(client, replace(change, ranges=tuple(ranges), params=params.to_json()), engine)


async def test_an_export_writes_the_files_of_the_local_engine_and_goes_on_from_its_runs(
    client: Client, engine: Engine, spark: "SparkSession", tmp_path: Path
) -> None:
    mine, theirs = tmp_path / "local", tmp_path / "spark"
    await exported(client, "local", mine, LOCAL)
    await exported(client, "spark", theirs, engine)

    def files(folder: Path) -> list[str]:
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))

    assert files(mine) == files(theirs)
    for name in files(mine):
        if name.endswith(".parquet"):
            rows = [ds.dataset(folder / name).to_table() for folder in (mine, theirs)]
            assert rows[0].equals(rows[1])
    async with client.producer("orders") as producer:
        await producer.send(b"%d" % RECORDS, key=b"new")
    await exported(client, "more", theirs, engine)
    numbers = ds.dataset(theirs, partitioning="hive").to_table()["payload"].to_pylist()
    assert Counter(map(int, numbers)) == Counter(range(RECORDS + 1))
    assert spark.read.parquet(str(theirs)).count() == RECORDS + 1
