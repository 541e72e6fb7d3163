"""A job on Spark whose driver, JVM, daemon or tasks fail; with real processes, submitted for real.

After each fault every record of what was published is in the target once, the order of keys is
kept, and no file is left behind. `DSS_PROOF=full` goes through all of them, on a real cluster too.
"""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from dss_bulk.transform_params import TransformParams
from dss_client.changes import CancelJob, CreateJob
from support.faulty_jobs import JOB, RECORDS, Scene, number_of, scene
from support.prerequisites import need_spark
from support.proof_share import share
from support.spark_processes import PATIENCE_S, Submitted, cluster, submitted

KILLED = share((), ("copied", "stamped", "committed"))
"""Where the daemon stands when driver and JVM are killed: amid a commit, or behind it."""
ENDED = share((), ("daemon", "cancelled"))
CLUSTERS = share((), (("127.0.0.1", "127.0.0.2"),))

FAULTY = """
import os, signal, time

def once(records):
    from pyspark import TaskContext
    from pyspark.sql import functions as f

    def same(payload):
        task = TaskContext.get()
        if task.attemptNumber() == 0 and task.partitionId() == 0:
            time.sleep(3_600)  # no attempt waits for that but by another one
        if task.attemptNumber() == 0 and task.partitionId() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return payload

    same = f.udf(same, "BINARY", useArrow=False)
    return records.repartition(4, "key").withColumn("payload", same("payload"))
"""

pytestmark = pytest.mark.slow("a JVM starts for each")


@pytest.fixture(autouse=True)
def _spark() -> None:
    need_spark()


def endpoint_of(one: Scene) -> str:
    return f"unix:{one.folder / 's'}"


async def clean(one: Scene, state: str = "done", records: int = RECORDS) -> None:
    verdict = await one.verdict()
    assert verdict.is_clean, verdict
    assert verdict.state == state
    if state == "done":
        assert verdict.records == records


async def reached(one: Scene, driver: Submitted) -> None:
    """Return once the daemon stands at its point; a driver that ends before fails the test."""
    there = asyncio.create_task(one.reached())
    ended = asyncio.create_task(driver.ended())
    await asyncio.wait({there, ended}, return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    if not there.done():
        there.cancel()
        pytest.fail(driver.said())


def left(driver: Submitted) -> list[Path]:
    return [path for path in driver.folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("point", KILLED)
async def test_a_driver_that_is_killed_with_its_jvm_is_replaced(point: str) -> None:
    async with scene(point, 1, patience_s=PATIENCE_S) as one:
        async with submitted(JOB, endpoint_of(one), one.folder) as driver:
            await reached(one, driver)
            assert "spark" in (await one.job()).driver
            driver.kill_spark()
            await driver.ended()
            assert left(driver) == []
        one.go_on()
        ended = await one.drive_on()
        assert ended.epoch == 2
        await clean(one)


@pytest.mark.parametrize("what", ENDED)
async def test_a_driver_outlives_the_daemon_and_ends_with_its_job(what: str) -> None:
    async with (
        scene("copied", 1, patience_s=PATIENCE_S) as one,
        submitted(JOB, endpoint_of(one), one.folder) as driver,
    ):
        await reached(one, driver)
        if what == "daemon":
            await one.kill_daemon()
            assert await driver.ended() == 0, driver.said()
            await clean(one)
        else:
            plan = await one.client.operations.plan(CancelJob(JOB))
            await one.client.operations.apply(plan, reason="a test")
            one.go_on()
            assert await driver.ended() == 6, driver.said()
            await clean(one, "cancelled")
        assert left(driver) == []


@pytest.mark.parametrize("hosts", CLUSTERS)
async def test_tasks_that_are_speculated_or_killed_publish_each_record_once(
    hosts: tuple[str, ...], tmp_path: Path
) -> None:
    conf = [
        "spark.speculation=true",
        "spark.speculation.interval=100ms",
        "spark.speculation.multiplier=1.1",
        "spark.speculation.quantile=0.1",
        "spark.speculation.minTaskRuntime=100ms",
        "spark.driver.host=127.0.0.1",
        "spark.driver.bindAddress=127.0.0.1",
        "spark.executor.memory=512m",
    ]
    async with (
        scene(patience_s=PATIENCE_S) as one,
        cluster(tmp_path, hosts) as master,
    ):
        path = tmp_path / "faulty.py"
        path.write_text(FAULTY)
        params = TransformParams.of_file(f"{path}:once").to_json()
        await one.client.topics.create("whole", partitions=3)
        change = CreateJob("whole", "transform", source="orders", target="whole", params=params)
        await one.client.operations.apply(await one.client.operations.plan(change), reason="a test")
        async with submitted("whole", endpoint_of(one), tmp_path, master, conf) as driver:
            assert await driver.ended() == 0, driver.said()
            assert left(driver) == []
        by_key: dict[bytes | None, list[int]] = {}
        async for record in one.client.read("whole/#"):
            by_key.setdefault(record.key, []).append(number_of(record.payload))
        assert all(numbers == sorted(numbers) for numbers in by_key.values())
        found = Counter(number for numbers in by_key.values() for number in numbers)
        assert found == Counter(range(RECORDS))
        assert list(one.files()) == []
