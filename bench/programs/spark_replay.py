"""A replay on Spark, warm: with its commits, without them, and by the local engine.

Without: the same chunks through the same plan, staged and left. All in millions of records a
second, in one session that has made a small replay before, so the start of Spark does not count.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

import dss_client
from dss_bulk.driver import LOCAL, Engine, drive
from dss_bulk.replay_work import ReplayParams, copy_rule_of, selection_of
from dss_client.changes import CreateJob
from dss_client.job_values import Granted, JobChunk
from dss_spark.engine import SparkEngine
from dss_spark.limits import CHUNKS_AHEAD_MAX
from dss_spark.ranges import ORDER, read_ranges
from dss_spark.staging import Stage, stage
from dss_spark.work import OnSpark, target_of

CHUNK_BYTES = 64 << 20
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
    await client.topics.create(f"{topic}-{name}", partitions=8)
    change = CreateJob(
        name, "replay", source=topic, target=f"{topic}-{name}", chunk_bytes=CHUNK_BYTES
    )
    await client.operations.apply(await client.operations.plan(change), reason="a measurement")


async def driven(client: dss_client.Client, name: str, topic: str, engine: Engine) -> float:
    await made(client, name, topic)
    began = time.perf_counter()
    job = await drive(client, name, engine=engine)
    assert job.state == "done", job
    return job.records / (time.perf_counter() - began) / 1e6


async def only_staged(
    client: dss_client.Client, topic: str, spark: SparkSession, folder: Path
) -> float:
    await made(client, "staged", topic)
    async with client.jobs.drive("staged", driver="a measurement") as lease:
        chunks = [chunk async for chunk in lease.open_chunks()]
        granted = replace(lease.granted, staging=folder)
        began = time.perf_counter()
        with ThreadPoolExecutor(CHUNKS_AHEAD_MAX) as threads:
            on = OnSpark(spark, granted, folder)

            def one(chunk: JobChunk) -> int:
                return on._run(lambda: staged(on, granted, chunk, client.endpoint))

            loop = asyncio.get_running_loop()
            counts = await asyncio.gather(
                *(loop.run_in_executor(threads, one, chunk) for chunk in chunks)
            )
        rate = sum(counts) / (time.perf_counter() - began) / 1e6
        await lease.give_up("it was a measurement")
    return rate


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


async def main(endpoint: str, topic: str) -> None:
    with tempfile.TemporaryDirectory() as made_folder:
        folder = Path(made_folder)
        spark = session(folder / "local")
        engine = SparkEngine(lambda: spark, "spark local[*]")
        async with dss_client.connect(endpoint=endpoint) as client:
            await driven(client, "warm", topic, engine)
            rates = {
                "plan": await only_staged(client, topic, spark, folder),
                "spark": await driven(client, "spark", topic, engine),
                "local": await driven(client, "local", topic, LOCAL),
            }
        spark.stop()
    print(json.dumps(rates))


asyncio.run(main(*sys.argv[1:]))
