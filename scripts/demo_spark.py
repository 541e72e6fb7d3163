"""A year of flights through Spark: into a topic, through a function, and out as Parquet.

Starts a daemon in a temporary directory, backfills 336,776 real flights on Spark, kills the first
driver with its JVM on the way, lets another one go on, picks the late flights with a function of
its own, exports all to Parquet, and checks that the sums per carrier equal those of the input.
Exits with 1 where they do not. Leaves nothing behind. It needs PySpark and Java.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
from demo_processes import POLL_S, daemon, short_temporary_folder, stop
from demo_report import DemoFailedError, console, say
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import dss_client
from dss_bulk.backfill_work import BackfillParams, chunks_of
from dss_bulk.export_work import ExportParams
from dss_bulk.inputs import Inputs
from dss_bulk.rows import RowRule
from dss_bulk.transform_params import TransformParams
from dss_client import Client
from dss_client.changes import CreateJob
from dss_core.errors import DssError
from dss_spark.submission import require_spark

FLIGHTS = Path(__file__).resolve().parents[1] / "examples" / "flights.parquet"
MASTER = "local[2]"
LATE_MINUTES = 60
LATE = f"""
def late(records):
    flight = "from_json(CAST(payload AS STRING), 'arr_delay BIGINT').arr_delay"
    return records.where(flight + " > {LATE_MINUTES}")
"""
RULE = RowRule("flights", "tailnum", "keyless", "flights/{origin}/{carrier}")


async def main_of(folder: Path, kill: bool) -> None:
    """The whole of it, in a folder of its own."""
    async with daemon(folder) as served, dss_client.connect(endpoint=served.endpoint) as client:
        for topic, partitions in (("flights", 12), ("late", 24)):
            await client.topics.create(topic, partitions=partitions)
        say(f"a daemon has the topics flights and late; Spark is {MASTER}")
        await make(client, backfill())
        if kill:
            await kill_first(client, folder, "in")
        await drive(client, folder, "in", "rows become records")
        late = TransformParams("late", LATE, "late.py").to_json()
        transform = CreateJob("late", "transform", source="flights", target="late", params=late)
        await make(client, transform)
        await drive(client, folder, "late", "a function picks the late")
        await make(client, await export(client, folder / "lake"))
        await drive(client, folder, "out", "records become Parquet")
        await compare(client, folder / "lake")


def backfill() -> CreateJob:
    """All flights, as they come in their file."""
    inputs = Inputs.looked_at([FLIGHTS], RULE)
    params = BackfillParams(RULE, inputs.files, None).to_json()
    return CreateJob("in", "backfill", target="flights", params=params, inputs=chunks_of(inputs))


async def export(client: Client, lake: Path) -> CreateJob:
    """All records of the topic."""
    topic = await client.topics.describe("flights")
    made = (await client.operations.plan(CreateJob("out", "export", source="flights"))).change
    assert isinstance(made, CreateJob)
    ends = {each.stream: each.end for each in made.ranges}
    params = ExportParams(str(lake), topic.topic_id, ends).to_json()
    return CreateJob("out", "export", source="flights", ranges=made.ranges, params=params)


async def make(client: Client, change: CreateJob) -> None:
    """Plan a job, and make it."""
    await client.operations.apply(await client.operations.plan(change), reason="the demo")


@asynccontextmanager
async def driver(
    client: Client, folder: Path, job: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A driver on Spark, ended with the block."""
    log = folder / f"{job}.log"
    command = ["-m", "dss_spark", job, "--endpoint", client.endpoint, "--master", MASTER]
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *command, "--folder", str(folder / "spark")),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        await stop(process)


async def kill_first(client: Client, folder: Path, job: str) -> None:
    """Kill a driver that has published something."""
    async with driver(client, folder, job) as process:
        while not (await client.jobs.get(job)).published:
            require_running(process, folder, job)
            await asyncio.sleep(POLL_S)
        for child in children_of(process.pid):
            os.killpg(child, signal.SIGKILL)
        await process.wait()
    found = await client.jobs.get(job)
    say(f"its driver and the JVM were killed behind chunk {found.published} of {found.chunks}")


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def require_running(process: asyncio.subprocess.Process, folder: Path, job: str) -> None:
    """Make sure that a driver goes on."""
    if process.returncode is not None:
        raise DemoFailedError(f"the driver ended:\n{(folder / f'{job}.log').read_text()[-4000:]}")


async def drive(client: Client, folder: Path, job: str, text: str) -> None:
    """Drive a job on Spark to its end, and draw how far it is."""
    while (await client.jobs.get(job)).driver_lives:  # noqa: ASYNC110 - the daemon is asked
        await asyncio.sleep(POLL_S)
    columns = (TextColumn("  {task.description:28}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TextColumn("chunks"), TimeElapsedColumn(), console=console) as bar:
        found = await client.jobs.get(job)
        line = bar.add_task(text, total=found.chunks, completed=found.published)
        async with driver(client, folder, job) as process:
            while not (found := await client.jobs.get(job)).has_ended:
                bar.update(line, completed=found.published)
                require_running(process, folder, job)
                await asyncio.sleep(POLL_S)
            bar.update(line, completed=found.published)
            await process.wait()
    if found.state != "done":
        raise DemoFailedError(f"the job {job} is {found.state}: {found.failure}")
    say(f"{found.records:,} records, by {found.driver.partition(',')[0]}, epoch {found.epoch}")


async def compare(client: Client, lake: Path) -> None:
    """Make sure that each flight is there once."""
    flights = pq.read_table(FLIGHTS, columns=["carrier", "arr_delay"]).to_pylist()
    rows = ds.dataset(lake, partitioning="hive").to_table(columns=["payload"])["payload"]
    found = [json.loads(each) for each in rows.to_pylist()]
    wanted, got = ([(f["carrier"], f["arr_delay"]) for f in each] for each in (flights, found))
    late = [record async for record in client.read("late/#")]
    wanted_late = sum((delay or 0) > LATE_MINUTES for _, delay in wanted)
    if Counter(wanted) != Counter(got) or len(late) != wanted_late:
        raise DemoFailedError("what came out is not what went in")
    say(f"all {len(got):,} flights are in the Parquet files once, {len(late):,} late ones in late")


def main() -> int:
    """Run the demo; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-kill", action="store_true", help="leave the first driver alone")
    kill = not parser.parse_args().no_kill
    folder = Path(tempfile.mkdtemp(prefix="dss-demo-", dir=short_temporary_folder()))
    try:
        require_spark()
        asyncio.run(main_of(folder, kill))
    except DssError as missing:
        console.print(f"[red]{missing.message}[/] {missing.hint_text}")
        return 1
    except DemoFailedError as failure:
        console.print(f"[red]{failure}[/]")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
