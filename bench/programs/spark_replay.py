"""A replay on Spark, warm: with its commits, without them, and by the local engine.

Without: the same chunks through the same plan, staged and left. Besides, what Spark alone needs for
the same records between two folders of Parquet. All in one session that has done each before, so
neither the start of Spark nor what the JVM compiles first counts; what goes first changes from
round to round. ``spark_replay.py ENDPOINT TOPIC ROUNDS``.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from processor_time import own_s, tree_s
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import dss_client
from dss_bulk.driver import Engine, drive
from dss_bulk.local_engine import LOCAL
from dss_bulk.replay_params import ReplayParams, copy_rule_of, selection_of
from dss_client.changes import CreateJob
from dss_client.job_values import Granted, JobChunk
from dss_client.jobs import Lease
from dss_spark.engine import CHUNKS_AHEAD_MAX, SparkEngine
from dss_spark.ranges import ORDER, read_ranges
from dss_spark.source import register
from dss_spark.staging import Stage, stage
from dss_spark.work import OnSpark, target_of

CHUNK_BYTES = 16 << 20
PARTITIONS = 8
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.python.daemon.module": "dss_spark.worker_parent",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}


def session(folder: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    builder = SparkSession.builder.master("local[*,3]").config("spark.local.dir", str(folder))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


async def made(client: dss_client.Client, name: str, topic: str) -> None:
    await client.topics.create(f"{topic}-{name}", partitions=PARTITIONS)
    change = CreateJob(
        name, "replay", source=topic, target=f"{topic}-{name}", chunk_bytes=CHUNK_BYTES
    )
    await client.operations.apply(await client.operations.plan(change), reason="a measurement")


@dataclass(frozen=True, slots=True)
class Done:
    """What one way of doing it took."""

    records: int
    seconds: float
    cpu_s: float
    """Of this process, the JVM, its workers and the daemon."""


@contextmanager
def measured(daemon: int, records: list[int], into: dict[str, Done], name: str) -> Iterator[None]:
    """Keep what the block took; it says how many records there were."""
    spent_s = tree_s(os.getpid()) + own_s(daemon)
    began = time.perf_counter()
    yield
    seconds = time.perf_counter() - began
    cpu_s = tree_s(os.getpid()) + own_s(daemon) - spent_s
    into[name] = Done(records.pop(), seconds, cpu_s)


async def driven(client: dss_client.Client, name: str, engine: Engine) -> int:
    job = await drive(client, name, engine=engine)
    assert job.state == "done", job
    return job.records


async def only_staged(lease: Lease, endpoint: str, spark: SparkSession, folder: Path) -> int:
    chunks = [chunk async for chunk in lease.open_chunks()]
    granted = replace(lease.granted, staging=folder)
    on = OnSpark(spark, granted, folder)
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(CHUNKS_AHEAD_MAX) as threads:

        def one(chunk: JobChunk) -> int:
            return on._run(lambda: staged(on, granted, chunk, endpoint))

        return sum(
            await asyncio.gather(*(loop.run_in_executor(threads, one, chunk) for chunk in chunks))
        )


def through_parquet(spark: SparkSession, source: Path, target: Path) -> int:
    """What Spark alone needs to read the same, bring it into as many partitions, and write it."""
    tasks = min(PARTITIONS, 2 * spark.sparkContext.defaultParallelism)
    (
        spark.read.parquet(str(source))
        .withColumn("to", f.expr(f"CAST(pmod(xxhash64(key), {PARTITIONS}) AS INT)"))
        .repartitionById(tasks, f.expr(f"CAST(to DIV {-(-PARTITIONS // tasks)} AS INT)"))
        .sortWithinPartitions("to", "stream", "offset")
        .write.parquet(str(target))
    )
    return int(spark.read.parquet(str(target)).count())


def staged(on: OnSpark, granted: Granted, chunk: JobChunk, endpoint: str) -> int:
    params = ReplayParams()
    frame = read_ranges(on.spark, endpoint, chunk.ranges, selection_of(granted, params))
    plan = Stage(
        granted.staging,
        granted.staged_for(chunk.number),
        target_of(granted),
        on.answer(chunk.number),
        copy=copy_rule_of(granted, params),
    )
    done = stage(frame, plan, number="offset", order=ORDER, at_once=on.at_once)
    return done.records


async def main(endpoint: str, topic: str, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as made_folder:
        folder = Path(made_folder)
        spark = session(folder / "local")
        engine = SparkEngine(lambda: spark, "spark local[*]")
        source = folder / "source"
        async with dss_client.connect(endpoint=endpoint) as client:
            register(spark)
            read = spark.read.format("dss").option("endpoint", endpoint).option("topic", topic)
            read.load().write.parquet(str(source))
            _cold, *taken = [
                await one_round(client, topic, engine, spark, folder, number)
                for number in range(1 + rounds)
            ]
        spark.stop()
    said = [{name: asdict(each) for name, each in done.items()} for done in taken]
    print(json.dumps({"rounds": said}))


async def one_round(
    client: dss_client.Client,
    topic: str,
    engine: Engine,
    spark: SparkSession,
    folder: Path,
    number: int,
) -> dict[str, Done]:
    """Each way once, on the same records."""
    done: dict[str, Done] = {}
    records: list[int] = []
    daemon = (await client.daemon.status()).pid

    async def parquet() -> None:
        with measured(daemon, records, done, "parquet"):
            records.append(through_parquet(spark, folder / "source", folder / f"{number}"))

    async def plan() -> None:
        name = f"staged{number}"
        await made(client, name, topic)
        async with client.jobs.drive(name, driver="a measurement") as lease:
            with measured(daemon, records, done, "plan"):
                records.append(await only_staged(lease, client.endpoint, spark, folder))
            await lease.give_up("it was a measurement")

    async def by(way: str, one: Engine) -> None:
        name = f"{way}{number}"
        await made(client, name, topic)
        with measured(daemon, records, done, way):
            records.append(await driven(client, name, one))

    ways: Sequence[Callable[[], Awaitable[None]]] = [
        parquet,
        plan,
        partial(by, "spark", engine),
        partial(by, "local", LOCAL),
    ]
    for way in ways if number % 2 else reversed(ways):
        await way()
    assert len({each.records for each in done.values()}) == 1, done
    return done


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
