"""Half a year of flights through Spark: into a topic, through a function, and out as Parquet.

Starts a daemon in a temporary directory, backfills 168,388 real flights on Spark, kills the first
driver with its JVM on the way, lets another one go on, picks the late flights with a function of
its own and exports all to Parquet, both in one session, and checks that the sums per carrier equal
those of the input. Exits with 1 where they do not, and leaves nothing behind. Spark and Java have
to be there.
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
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from demo_processes import POLL_S, daemon, short_temporary_folder, stop
from demo_report import DemoFailedError, console, say
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import dss_client
from dss_bulk.backfill_work import BackfillParams, chunks_of
from dss_bulk.export import Noted
from dss_bulk.export_work import ExportParams
from dss_bulk.inputs import Inputs
from dss_bulk.row_rule import RowRule
from dss_bulk.transform_params import TransformParams
from dss_client import Client
from dss_client.changes import CreateJob
from dss_client.job_values import Job
from dss_core.errors import DssError
from dss_spark.submission import require_spark

FLIGHTS = Path(__file__).resolve().parents[1] / "examples" / "flights.parquet"
HALF = 168_388
"""Flights of the half of the year that is shown; `--year` shows all."""
MASTER = "local[2]"
JVM = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that lives for half a minute: to compile well costs it more than that saves."""
LATE_MINUTES = 60
LATE = f"""
def late(records):
    flight = "from_json(CAST(payload AS STRING), 'arr_delay BIGINT').arr_delay"
    return records.where(flight + " > {LATE_MINUTES}")
"""
RULE = RowRule("flights", "tailnum", "keyless", "flights/{origin}/{carrier}")


async def main_of(folder: Path, kill: bool, year: bool) -> None:
    """The whole of it, in a folder of its own."""
    flights = pq.read_table(FLIGHTS)
    shown = flights if year else flights.slice(0, HALF)
    pq.write_table(shown, folder / "flights.parquet")
    async with daemon(folder) as served, dss_client.connect(endpoint=served.endpoint) as client:
        for topic, partitions in (("flights", 12), ("late", 24)):
            await client.topics.create(topic, partitions=partitions)
        say(f"a daemon has the topics flights and late; Spark is {MASTER}")
        await make(client, backfill(folder / "flights.parquet"))
        if kill:
            await kill_first(client, folder, "in")
        await drive(client, folder, {"in": "rows become records"})
        late = TransformParams("late", LATE, "late.py").to_json()
        transform = CreateJob("late", "transform", source="flights", target="late", params=late)
        await make(client, transform)
        await make(client, await export(client, folder / "lake"))
        texts = {"late": "a function picks the late", "out": "records become Parquet"}
        await drive(client, folder, texts)
        await compare(client, folder / "lake", shown)


def backfill(flights: Path) -> CreateJob:
    """All flights, as they come in their file."""
    inputs = Inputs.looked_at([flights], RULE)
    params = BackfillParams(RULE, inputs.files, None).to_json()
    return CreateJob("in", "backfill", target="flights", params=params, inputs=chunks_of(inputs))


async def export(client: Client, lake: Path) -> CreateJob:
    """All records of the topic."""
    topic = await client.topics.describe("flights")
    made = (await client.operations.plan(CreateJob("out", "export", source="flights"))).change
    assert isinstance(made, CreateJob)
    ends = {each.stream: each.end for each in made.ranges}
    params = ExportParams(str(lake), topic.topic_id, Noted(ends)).to_json()
    return CreateJob("out", "export", source="flights", ranges=made.ranges, params=params)


async def make(client: Client, change: CreateJob) -> None:
    """Plan a job, and make it."""
    await client.operations.apply(await client.operations.plan(change), reason="the demo")


@asynccontextmanager
async def driver(
    client: Client, folder: Path, *jobs: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A driver on Spark, ended with the block."""
    log = folder / f"{jobs[0]}.log"
    command = ["-m", "dss_spark", *jobs, "--endpoint", client.endpoint, "--master", MASTER]
    command += ["--conf", JVM]
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


async def drive(client: Client, folder: Path, texts: dict[str, str]) -> None:
    """Drive jobs to their end, in one session of Spark, and draw how far each is."""
    first, *_ = texts
    while (await client.jobs.get(first)).driver_lives:  # noqa: ASYNC110 - the daemon is asked
        await asyncio.sleep(POLL_S)
    async with driver(client, folder, *texts) as process:
        for job, text in texts.items():
            found = await drawn(client, job, text, lambda: require_running(process, folder, first))
            if found.state != "done":
                raise DemoFailedError(f"the job {job} is {found.state}: {found.failure}")
            size = f"{found.records:,} records" if found.records else "written"
            say(f"{size}, by {found.driver.partition(',')[0]}, epoch {found.epoch}")
        await process.wait()


async def drawn(client: Client, job: str, text: str, look: Callable[[], None]) -> Job:
    """A job at its end, once it was drawn up to that; it is looked after its driver meanwhile."""
    columns = (TextColumn("  {task.description:28}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TextColumn("chunks"), TimeElapsedColumn(), console=console) as bar:
        found = await client.jobs.get(job)
        line = bar.add_task(text, total=found.chunks, completed=found.published)
        while not (found := await client.jobs.get(job)).has_ended:
            bar.update(line, completed=found.published)
            look()
            await asyncio.sleep(POLL_S)
        bar.update(line, completed=found.published)
    return found


async def compare(client: Client, lake: Path, shown: pa.Table) -> None:
    """Make sure that each flight is there once."""
    flights = shown.select(["carrier", "arr_delay"]).to_pylist()
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
    parser.add_argument("--year", action="store_true", help="all flights, not half of them")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="dss-demo-", dir=short_temporary_folder()))
    try:
        require_spark()
        asyncio.run(main_of(folder, not given.no_kill, given.year))
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
