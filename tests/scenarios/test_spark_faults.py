"""A job on Spark whose driver, JVM, daemon, tasks or disk fail; with real processes.

After each fault every record of what was published is in the target once, the order of keys is
kept, and no file is left behind. `DSS_PROOF=full` goes through all of them, on a real cluster too,
and leaves the table of all of them in ``.cache/proof/spark-faults.md``.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dss_bulk.transform_params import TransformParams
from dss_client.changes import CancelJob, CreateJob, PauseJob, ResumeJob
from support.faulty_jobs import (
    JOB,
    LOOK_S,
    RECORDS,
    Rows,
    Scene,
    number_of,
    scene,
    table_of_faults,
)
from support.prerequisites import MOUNT, leave_out, need_spark
from support.proof_share import only_in_proof, share
from support.small_disk import CannotMount, fill, mounted
from support.spark_processes import (
    PATIENCE_S,
    Submitted,
    cluster,
    command_of,
    gone,
    parent_of,
    submitted,
)

TABLE = Path(".cache/proof/spark-faults.md")
KILLED = share((), ("copied", "stamped", "committed"))
"""Where the daemon stands when driver and JVM are killed: amid a commit, or behind it."""
CLUSTERS = share((), (("127.0.0.1", "127.0.0.2"),))
DISK_BYTES = 48 << 20

ON_CLUSTER = (
    "spark.driver.host=127.0.0.1",
    "spark.driver.bindAddress=127.0.0.1",
    "spark.executor.memory=512m",
)

HELD = """
import os, time
from pathlib import Path

def held(records):
    from pyspark.sql import functions as f

    folder = Path({folder!r})

    def same(payload):
        if not (folder / "go").exists():
            (folder / f"task-{{os.getpid()}}").touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
        return payload

    same = f.udf(same, "BINARY", useArrow=False)
    return records.withColumn("payload", same("payload"))
"""
"""Tasks say that they are there, and wait."""

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


@pytest.fixture(scope="module")
def rows() -> Iterator[Rows]:
    """The table of the module."""
    with table_of_faults(TABLE) as table:
        yield table


def endpoint_of(one: Scene) -> str:
    return f"unix:{one.folder / 's'}"


async def clean(one: Scene, rows: Rows, fault: str, state: str = "done") -> None:
    verdict = rows[fault] = await one.verdict()
    assert verdict.is_clean, verdict
    assert verdict.state == state
    if state == "done":
        assert verdict.records == RECORDS


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


def held_in(folder: Path) -> str:
    """Params of a transform whose tasks wait for a file of the folder."""
    return TransformParams("held", HELD.format(folder=str(folder)), "held.py").to_json()


async def held_task(folder: Path, driver: Submitted) -> int:
    """The process of a task that waits."""
    while (task := next(tasks_in(folder), None)) is None:
        assert driver.is_running, driver.said()
        await asyncio.sleep(LOOK_S)
    return task


def tasks_in(folder: Path) -> Iterator[int]:
    return (int(path.name.removeprefix("task-")) for path in folder.glob("task-*"))


async def cancel(one: Scene) -> None:
    plan = await one.client.operations.plan(CancelJob(JOB))
    await one.client.operations.apply(plan, reason="a test")


async def driven(one: Scene) -> None:
    """Return once a driver has the job."""
    while not (await one.job()).driver_lives:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(LOOK_S)


@pytest.mark.parametrize("point", KILLED)
async def test_a_driver_that_is_killed_with_its_jvm_is_replaced(rows: Rows, point: str) -> None:
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
        await clean(one, rows, f"driver and JVM killed, chunk 1 {point}")


@only_in_proof
async def test_a_driver_outlives_the_daemon(rows: Rows) -> None:
    async with (
        scene("copied", 1, patience_s=PATIENCE_S) as one,
        submitted(JOB, endpoint_of(one), one.folder) as driver,
    ):
        await reached(one, driver)
        await one.kill_daemon()
        assert await driver.ended() == 0, driver.said()
        assert left(driver) == []
        await clean(one, rows, "daemon killed, chunk 1 copied")


@only_in_proof
async def test_of_two_drivers_one_works_and_once_fenced_it_harms_nothing(rows: Rows) -> None:
    async with scene("copied", 1, patience_s=PATIENCE_S) as one:
        async with (
            submitted(JOB, endpoint_of(one), one.folder, "local[1]") as first,
            submitted(JOB, endpoint_of(one), one.folder, "local[1]") as second,
        ):
            await asyncio.wait(
                [asyncio.create_task(each.ended()) for each in (first, second)],
                return_when=asyncio.FIRST_COMPLETED,
            )
            refused, working = sorted((first, second), key=lambda each: each.is_running)
            assert await refused.ended() == 6, refused.said()
            assert "DSS7006" in refused.said()
            await reached(one, working)
            working.signal_spark(signal.SIGSTOP)
            one.go_on()
            assert (await one.drive_on()).epoch == 2
            working.signal_spark(signal.SIGCONT)
            assert await working.ended() == 6, working.said()
            assert "DSS7005" in working.said()
            assert left(working) == []
        await clean(one, rows, "two drivers, the one that works fenced amid a commit")


@only_in_proof
@pytest.mark.parametrize("phase", ["submitted", "acquired", "committing"])
async def test_a_job_that_is_cancelled_ends_its_driver(rows: Rows, phase: str) -> None:
    point, call = ("copied", 1) if phase == "committing" else ("copied", 0)
    async with (
        scene(point, call, patience_s=PATIENCE_S) as one,
        submitted(JOB, endpoint_of(one), one.folder) as driver,
    ):
        if phase == "acquired":
            await driven(one)
        elif phase == "committing":
            await reached(one, driver)
        await cancel(one)
        one.go_on()
        assert await driver.ended() == 6, driver.said()
        assert "DSS7004" in driver.said()
        assert left(driver) == []
        await clean(one, rows, f"cancelled, {phase}", "cancelled")
        assert (await one.job()).published == call


@only_in_proof
async def test_a_job_that_is_cancelled_ends_its_tasks(rows: Rows, tmp_path: Path) -> None:
    async with (
        scene(patience_s=PATIENCE_S, transform=held_in(tmp_path)) as one,
        submitted(JOB, endpoint_of(one), one.folder) as driver,
    ):
        task = await held_task(tmp_path, driver)
        await cancel(one)
        assert await driver.ended() == 6, driver.said()
        await gone(task)
        assert left(driver) == []
        await clean(one, rows, "cancelled, tasks run", "cancelled")


@only_in_proof
async def test_a_paused_job_stages_and_publishes_once_it_is_resumed(rows: Rows) -> None:
    async with scene("copied", 1, patience_s=PATIENCE_S) as one:
        await one.client.operations.apply(PauseJob(JOB))
        async with submitted(JOB, endpoint_of(one), one.folder) as driver:
            while not any(path.suffix == ".staged" for path in one.files()):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_S)
            assert ((await one.job()).state, (await one.job()).published) == ("paused", 0)
            await one.client.operations.apply(ResumeJob(JOB))
            await reached(one, driver)
            await one.client.operations.apply(PauseJob(JOB))
            one.go_on()
            await one.client.operations.apply(ResumeJob(JOB))
            assert await driver.ended() == 0, driver.said()
            assert left(driver) == []
        assert (await one.job()).epoch == 1
        await clean(one, rows, "paused before, and amid a commit")


@only_in_proof
async def test_a_full_disk_holds_a_job_up_until_there_is_room(rows: Rows, tmp_path: Path) -> None:
    try:
        with mounted(tmp_path / "disk", DISK_BYTES) as disk:
            await held_up(rows, disk, tmp_path)
    except CannotMount as why:
        leave_out(MOUNT, str(why))


async def held_up(rows: Rows, disk: Path, folder: Path) -> None:
    async with (
        scene(data=disk / "data", patience_s=PATIENCE_S, transform=held_in(folder)) as one,
        submitted(JOB, endpoint_of(one), one.folder) as driver,
    ):
        await held_task(folder, driver)
        filler = fill(disk)
        (folder / "go").touch()
        while "full" not in (await one.job()).said:
            assert driver.is_running, driver.said()
            await asyncio.sleep(LOOK_S)
        assert (await one.job()).published == 0
        filler.unlink()
        assert await driver.ended() == 0, driver.said()
        assert (await one.job()).epoch == 1
        await clean(one, rows, "disk full, tasks stage chunk 0")


@only_in_proof
async def test_a_worker_of_python_that_is_killed_is_replaced(rows: Rows, tmp_path: Path) -> None:
    async with (
        scene(patience_s=PATIENCE_S, transform=held_in(tmp_path)) as one,
        submitted(JOB, endpoint_of(one), one.folder) as driver,
    ):
        task = await held_task(tmp_path, driver)
        os.kill(task, signal.SIGKILL)
        (tmp_path / "go").touch()
        assert await driver.ended() == 0, driver.said()
        assert (await one.job()).epoch == 1
        await clean(one, rows, "worker of Python killed, tasks run")


def python_without(module: str, folder: Path) -> Path:
    """A program that is this Python but for a module, which it does not have."""
    (folder / f"{module}.py").write_text(f"raise ModuleNotFoundError('no {module}')")
    program = folder / "python"
    path = f"PYTHONPATH={folder}:$PYTHONPATH"
    program.write_text(f'#!/bin/sh\n{path} exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


@only_in_proof
async def test_a_job_waits_for_executors_that_have_what_tasks_need(
    rows: Rows, tmp_path: Path
) -> None:
    # Workers of a cluster are forked from Spark's own process.
    conf = ("spark.python.daemon.module=pyspark.daemon",)
    python = python_without("pyarrow", tmp_path)
    async with scene(patience_s=PATIENCE_S) as one:
        async with submitted(JOB, endpoint_of(one), one.folder, conf=conf, python=python) as driver:
            assert await driver.ended() == 1
            assert "DSS7045" in driver.said(), driver.said()
            assert "there is no module pyarrow" in driver.said()
            assert left(driver) == []
        assert ((await one.job()).state, (await one.job()).published) == ("active", 0)
        assert (await one.drive_on()).epoch == 2
        await clean(one, rows, "executors without pyarrow")


@only_in_proof
async def test_an_executor_that_is_killed_is_replaced(rows: Rows, tmp_path: Path) -> None:
    async with (
        scene(patience_s=PATIENCE_S, transform=held_in(tmp_path)) as one,
        cluster(tmp_path, ("127.0.0.1",)) as master,
        submitted(JOB, endpoint_of(one), tmp_path, master, ON_CLUSTER) as driver,
    ):
        task = await held_task(tmp_path, driver)
        executor = parent_of(parent_of(task))
        assert "CoarseGrainedExecutorBackend" in command_of(executor)
        os.kill(executor, signal.SIGKILL)
        (tmp_path / "go").touch()
        assert await driver.ended() == 0, driver.said()
        assert (await one.job()).epoch == 1
        await clean(one, rows, "executor killed, tasks run")


@pytest.mark.parametrize("hosts", CLUSTERS)
async def test_tasks_that_are_speculated_or_killed_publish_each_record_once(
    hosts: tuple[str, ...], tmp_path: Path
) -> None:
    conf = [
        *ON_CLUSTER,
        "spark.speculation=true",
        "spark.speculation.interval=100ms",
        "spark.speculation.multiplier=1.1",
        "spark.speculation.quantile=0.1",
        "spark.speculation.minTaskRuntime=100ms",
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
