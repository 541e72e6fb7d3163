"""What a bulk job does in a second, what it costs those who produce meanwhile, and its memory.

The live producer takes turns: beside a paced job that writes to its topic, and alone.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from processes import BenchError, Daemon, Process, run_program, within
from workload import TOPIC

import dss_client
from dss_client import Client
from dss_client.changes import CancelJob, CreateJob

TARGET = "copies"
TARGET_PARTITIONS = 24
RECORDS = 3_000_000
LIVE_S = 8.0
LIVE_RATE_BYTES_S = 10 << 20
DRIVEN_SECONDS_MAX = 280.0
LOOK_S = 0.1
LOCAL_DRIVER = ("dss_bulk",)
"""The module of a driver, and its options."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one unpaced replay did."""

    records_per_s: float
    driver_mib: float
    """The most that its driver held in memory."""
    daemon_mib: float


async def fill(daemon: Daemon, records: int = RECORDS) -> None:
    """The records that are replayed, and a topic for the copies."""
    await run_program("produce_columns", daemon.endpoint, str(records))
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create(TARGET, partitions=TARGET_PARTITIONS)


async def replayed(daemon: Daemon, name: str) -> Replayed:
    """Replay all of it as fast as it goes, from the first look at the manifest to the end."""
    lines: list[dict[str, object]] = []
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await make(client, name, 0)
        pid = (await client.daemon.status()).pid
        async with started_driver(daemon, name, lines) as driver:
            most = 0.0
            async with within(DRIVEN_SECONDS_MAX, f"the job {name}"):
                while (held := most_resident_mib(driver.pid)) is not None:
                    most = max(most, held)
                    await asyncio.sleep(LOOK_S)
        job = await client.jobs.get(name)
        if job.state != "done":
            raise BenchError(f"the job {name} is {job.state}: {job.failure}")
        took_s = at_s(lines[-1]) - at_s(lines[0])
        return Replayed(job.records / took_s, most, most_resident_mib(pid) or 0.0)


async def bare(records: int = RECORDS) -> float:
    """Records a second of the same through Arrow alone."""
    with tempfile.TemporaryDirectory(prefix="dss-bare-") as directory:
        done = await run_program("bare_arrow", directory, str(records), str(TARGET_PARTITIONS))
    return float(done["records"]) / float(done["seconds"])


async def live_p99_ms(daemon: Daemon) -> float:
    """Of the acks of the topic for copies."""
    return float((await run_program("live", daemon.endpoint, TARGET, str(LIVE_S)))["p99_ms"])


async def echo_p99_ms(endpoint: str) -> float:
    """Of the answers of an echo that syncs a file before each."""
    return float((await run_program("live_echo", endpoint, str(LIVE_S)))["p99_ms"])


@asynccontextmanager
async def paced_job(
    daemon: Daemon, name: str, driver: Sequence[str] = LOCAL_DRIVER
) -> AsyncIterator[None]:
    """A paced job that writes to the topic for copies as long as the block runs."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await make(client, name, LIVE_RATE_BYTES_S)
        async with started_driver(daemon, name, [], driver):
            while (await client.jobs.get(name)).published == 0:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(LOOK_S)
            yield
            if (await client.jobs.get(name)).has_ended:
                raise BenchError("the job ended before the measurement did")
            await client.operations.apply(CancelJob(name))


async def make(client: Client, name: str, rate_bytes_s: int) -> None:
    change = CreateJob(name, "replay", source=TOPIC, target=TARGET, rate_bytes_s=rate_bytes_s)
    await client.operations.apply(await client.operations.plan(change))


@asynccontextmanager
async def started_driver(
    daemon: Daemon,
    name: str,
    lines: list[dict[str, object]],
    driver: Sequence[str] = LOCAL_DRIVER,
) -> AsyncIterator[Process]:
    """A driver, which has ended when the block has; ``lines`` get what it logs."""
    command = (sys.executable, "-m", *driver, name, "--endpoint", daemon.endpoint)

    def heard(line: bytes) -> None:
        if line.startswith(b"{"):  # Spark writes lines of its own between
            lines.append(json.loads(line))

    async with asyncio.TaskGroup() as tasks:
        process = await Process.start(tasks, f"driver of {name}", command, heard=heard)
        with process.blamed():
            yield process
            await process.ended(DRIVEN_SECONDS_MAX)


def at_s(line: dict[str, object]) -> float:
    return datetime.fromisoformat(str(line["at"])).timestamp()


def most_resident_mib(pid: int) -> float | None:
    """The most that a process held; none where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    found = next((line for line in lines if line.startswith("VmHWM:")), None)
    return None if found is None else int(found.split()[1]) / 1_024
