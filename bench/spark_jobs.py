"""Jobs on Spark: their rates and costs, how they start, and who produces beside them.

How they grow with their size: `spark_sizes`.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import bulk
from processes import (
    BenchError,
    Daemon,
    Process,
    run_program,
    running_daemon,
    started_program,
    within,
)
from processor_time import own_s
from workload import PARTITIONS, TOPIC

import dss_client
from dss_client.changes import CreateJob
from dss_spark.submission import Submission, command_of, environment, require_spark

PROGRAM_SECONDS_MAX = 1_800.0
START_SECONDS_MAX = 300.0
ROUNDS = 3
"""In one session, which compiles what it runs more often: the first of them is the slowest."""
TARGET = "started"
WORKERS = {"pyspark.daemon", "pyspark.worker", "dss_spark.worker_parent"}
"""Programs that Spark itself starts."""
BARE = Path(__file__).parent / "programs" / "bare_session.py"


@dataclass(frozen=True, slots=True)
class Rate:
    """Of one way to do it."""

    million_per_s: float
    cpu_us: float
    """Processor time of a record, of all processes."""


async def rates(records: int) -> list[dict[str, Rate]]:
    """What a replay takes: on Spark, by the local engine, and by Spark without a daemon; rounds."""
    async with running_daemon() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create(TOPIC, partitions=PARTITIONS)
        await run_program("produce_prebuilt", daemon.endpoint, str(records), "1000")
        took = await run_program(
            "spark_replay", daemon.endpoint, TOPIC, str(ROUNDS), seconds_max=PROGRAM_SECONDS_MAX
        )
    return [{name: _rate(**one) for name, one in ways.items()} for ways in took["rounds"]]


def _rate(records: int, seconds: float, cpu_s: float) -> Rate:
    return Rate(records / seconds / 1e6, cpu_s / records * 1e6)


@dataclass(frozen=True, slots=True)
class Beside:
    """What takes how long beside a paced job on Spark, p99 in milliseconds."""

    record_ms: float
    echo_ms: float
    echo_alone_ms: float


async def beside(daemon: Daemon) -> Beside:
    """A record to its ack in the topic that the job writes, and a durable echo on the same disk."""
    directory = str(daemon.directory)
    echoes = f"unix:{directory}/e.sock"
    with tempfile.TemporaryDirectory(prefix="dss-bench-") as folder:
        driver = ("dss_spark", "--master", "local[1]", "--folder", f"{folder}/spark")
        async with started_program("echo_server", echoes, directory) as server:
            await server.ready()
            alone_ms = await bulk.echo_p99_ms(echoes)
            async with bulk.paced_job(daemon, "paced-on-spark", driver):
                echo_ms = await bulk.echo_p99_ms(echoes)
                return Beside(await bulk.live_p99_ms(daemon), echo_ms, alone_ms)


@dataclass(frozen=True, slots=True)
class Started:
    """How long until a driver has its session."""

    wall_s: float
    cpu_s: float
    """Of Python: of what submits, and of the driver; the JVM is Spark's own."""


async def started() -> tuple[Started, Started]:
    """A driver of a job, and a program that begins a session with the same properties."""
    async with running_daemon() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create(TOPIC, partitions=1)
            await client.topics.create(TARGET, partitions=1)
            async with client.producer(TOPIC) as producer:
                await producer.send(b"one")
            change = CreateJob("one", "replay", source=TOPIC, target=TARGET)
            await client.operations.apply(await client.operations.plan(change))
        with tempfile.TemporaryDirectory(prefix="dss-bench-") as folder:
            ours = (sys.executable, "-m", "dss_spark", "one", "--endpoint", daemon.endpoint)
            mine = await _begun((*ours, "--folder", folder, "--master", "local[2]"), None)
    with tempfile.TemporaryDirectory(prefix="dss-bench-") as folder:
        pyspark = require_spark()
        submission = Submission(["one"], None, "local[2]", {}, Path(folder))
        command = command_of(submission, pyspark)
        cut = next(at for at, word in enumerate(command) if word.endswith("drive_job.py"))
        bare = await _begun((*command[:cut], str(BARE)), environment(pyspark, "local[2]"))
    return mine, bare


async def _begun(command: Sequence[str], env: dict[str, str] | None) -> Started:
    """How long it takes until the first line comes, with which a session is there."""
    loop = asyncio.get_running_loop()
    async with _first_line(command, env) as (process, spent_s):
        began_s = loop.time()
        async with within(START_SECONDS_MAX, "a session of Spark"):
            cpu_s = await spent_s
        wall_s = loop.time() - began_s
        if code := await process.ended(START_SECONDS_MAX):
            raise BenchError(f"it ended with {code}")
    return Started(wall_s, cpu_s)


@asynccontextmanager
async def _first_line(
    command: Sequence[str], env: dict[str, str] | None
) -> AsyncIterator[tuple[Process, asyncio.Future[float]]]:
    """A process, and what its Python has spent when it says its first line."""
    spent_s: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def heard(_line: object) -> None:
        if not spent_s.done():
            spent_s.set_result(sum(own_s(pid) for pid in _drivers(process.pid)))

    async with asyncio.TaskGroup() as tasks:
        process = await Process.start(tasks, "a driver on Spark", command, heard=heard, env=env)
        with process.blamed():
            yield process, spent_s


def _drivers(pid: int) -> Iterator[int]:
    """The processes, from this one down, that submit or drive; Spark's own workers do neither."""
    left = [pid]
    while left:
        one = left.pop()
        words = Path(f"/proc/{one}/cmdline").read_text().split("\0")
        if "python" in words[0] and not WORKERS.intersection(words):
            yield one
        for task in Path(f"/proc/{one}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # the thread ended
                left += map(int, (task / "children").read_text().split())
