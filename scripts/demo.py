"""A year of flights through a durable log to a group that loses a member: ``make demo``.

Starts a daemon in a temporary directory, publishes 336,776 real flights, lets three processes share
them, kills one of them while it holds records, and checks that the sums per carrier equal those of
the input file. Exits with 1 where they do not. Leaves nothing behind, however it ends.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
from demo_report import (
    DemoFailedError,
    Kill,
    compare,
    console,
    read_results,
    say,
    tell_of_the_kill,
)
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import dss_client

REPO = Path(__file__).resolve().parents[1]
FLIGHTS = REPO / "examples" / "flights.parquet"
CONSUMER = REPO / "scripts" / "demo_consumer.py"

PARTITIONS = 12
MEMBERS = ("anna", "bert", "cleo")
VICTIM = "bert"
HOLD_AFTER_RECORDS = 20_000
SLICE_RECORDS = 8_192
FLIGHTS_MAX = 336_776
"""As many as there are."""
STEP_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
POLL_S = 0.05


@contextmanager
def bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, nothing elsewhere; yields what sets how far it is."""
    if not console.is_terminal:
        yield lambda _done: None
        return
    columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)


@dataclass(slots=True)
class Member:
    """A consumer process, and what it has reported."""

    name: str
    results: Path
    process: asyncio.subprocess.Process
    streams: set[str] = field(default_factory=set)
    working: asyncio.Event = field(default_factory=asyncio.Event)
    """It holds a stream."""
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    """It has stopped between writing out and acknowledging."""
    held: Mapping[str, object] = field(default_factory=dict)

    async def listen(self) -> None:
        """Follow its reports until it ends."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            report = json.loads(line)
            match report["event"]:
                case "granted":
                    self.streams.add(report["stream"])
                    self.working.set()
                case "revoked":
                    self.streams.discard(report["stream"])
                case "holding":
                    self.held = report
                    self.holding.set()


async def main(flights_max: int) -> int:
    """Run the demo with so many flights at the most; returns its exit code."""
    flights = pyarrow.parquet.read_table(FLIGHTS).slice(0, flights_max)
    directory = Path(tempfile.mkdtemp(prefix="dss-demo-", dir=short_temporary_folder()))
    failed = False
    try:
        async with daemon(directory) as endpoint:
            await group_survives(flights, directory, endpoint)
    except* DemoFailedError as failures:
        failed = True
        for failure in leaves(failures):
            console.print(f"[bold red]FAILED[/] {failure}")
    finally:
        shutil.rmtree(directory)
    say("Everything is stopped and removed.")
    return 1 if failed else 0


def leaves(group: BaseExceptionGroup[DemoFailedError]) -> Iterator[DemoFailedError]:
    """The failures in nested groups."""
    for inner in group.exceptions:
        if isinstance(inner, BaseExceptionGroup):
            yield from leaves(inner)
        else:
            yield inner


async def group_survives(flights: pa.Table, directory: Path, endpoint: str) -> None:
    """The story itself, between a daemon's start and its end."""
    await dssctl(endpoint, "topics", "create", "flights", "--partitions", str(PARTITIONS))
    await dssctl(endpoint, "groups", "create", "delays@flights/#", "--start", "earliest")
    async with members(directory, endpoint) as group, asyncio.TaskGroup() as tasks:
        for member in group.values():
            await within(member.working.wait(), f"{member.name} got no stream")
        say(f"Three processes share the group: {', '.join(group)}. Each writes its results out,")
        console.print("  then acknowledges.")
        publishing = tasks.create_task(publish(flights, endpoint), name="publish the flights")
        killed = await kill(group[VICTIM], endpoint)
        await within(publishing, "the flights were not published")
        await until_all_are_acknowledged(endpoint, len(flights))
        await dssctl(endpoint, "groups", "ls")
        await dssctl(endpoint, "grants", "ls")
        await stop_survivors(group)
    results = read_results({member.name: member.results for member in group.values()})
    tell_of_the_kill(results, killed)
    compare(results, flights)


async def publish(flights: pa.Table, endpoint: str) -> None:
    """Publish every flight, one producer an airport, in the order of the file."""
    origins = sorted(flights["origin"].unique().to_pylist())
    say(f"Publishing {len(flights):,} flights from {', '.join(origins)}, a producer each.")
    done: Counter[str] = Counter()
    started_s = time.monotonic()
    async with dss_client.connect(endpoint=endpoint) as client:
        with bar("published", len(flights)) as show:
            async with asyncio.TaskGroup() as tasks:
                for origin in origins:

                    def advanced(count: int, origin: str = origin) -> None:
                        done[origin] += count
                        show(done.total())

                    mine = flights.filter(pa.compute.equal(flights["origin"], origin))
                    publishing = publish_one(client, mine, advanced)
                    tasks.create_task(publishing, name=f"publish {origin}")
    took_s = time.monotonic() - started_s
    say(f"{done.total():,} flights are acknowledged as durable, after {took_s:.1f} s.")


async def publish_one(
    client: dss_client.Client, flights: pa.Table, advanced: Callable[[int], None]
) -> None:
    """Publish the flights of one airport; a flight of an unknown aircraft has no key."""
    async with client.producer("flights") as producer:
        for batch in flights.to_batches(max_chunksize=SLICE_RECORDS):
            rows = batch.to_pylist()
            await producer.send_columns(
                payloads=[payload(row) for row in rows],
                keys=[row["tailnum"] and row["tailnum"].encode() for row in rows],
                subjects=[f"flights/{row['origin']}/{row['carrier']}" for row in rows],
            )
            await producer.flush()
            advanced(len(rows))


def payload(row: Mapping[str, object]) -> bytes:
    """What a consumer needs of a flight."""
    return json.dumps({"carrier": row["carrier"], "arr_delay": row["arr_delay"]}).encode()


async def kill(victim: Member, endpoint: str) -> Kill:
    """Kill a member that holds unacknowledged records, and say what it was in the middle of."""
    await within(victim.holding.wait(), f"{victim.name} did not stop between result and ack")
    stream = str(victim.held["stream"])
    first, last = int(str(victim.held["first"])), int(str(victim.held["last"]))
    async with dss_client.connect(endpoint=endpoint) as client:
        grants = {grant.stream: grant for grant in await client.grants.list("delays")}
    if any(grants[stream].progress.is_acked(offset) for offset in range(first, last + 1)):
        raise DemoFailedError(f"{victim.name} held nothing unacknowledged")
    done = Kill(victim.name, time.monotonic(), frozenset(victim.streams), stream, first, last)
    victim.process.kill()
    await victim.process.wait()
    say(
        f"kill -9 {victim.name}, which had written out but not acknowledged "
        f"{victim.held['records']} records ({stream}, offsets {first} to {last}) and read "
        f"{len(done.orphaned)} streams."
    )
    return done


async def until_all_are_acknowledged(endpoint: str, total: int) -> None:
    """Wait until the group's lag is 0."""
    async with dss_client.connect(endpoint=endpoint) as client:
        with bar("acknowledged", total) as show:

            async def lag_is_gone() -> None:
                while lag := (await client.groups.describe("delays")).group.lag:
                    show(total - lag)
                    await asyncio.sleep(POLL_S)
                show(total)

            await within(lag_is_gone(), "the survivors did not finish")
    say(f"The survivors have acknowledged all {total:,}.")


@asynccontextmanager
async def daemon(directory: Path) -> AsyncIterator[str]:
    """A daemon with its data in the directory; yields its endpoint."""
    endpoint = f"unix:{directory / 'dssd.sock'}"
    command = (sys.executable, "-m", "dssd", "serve")
    log = directory / "dssd.log"
    with log.open("wb") as log_file:
        process = await asyncio.create_subprocess_exec(
            *command,
            *("--data-dir", str(directory / "data"), "--listen", endpoint),
            stdout=log_file,
            stderr=log_file,
            # Ctrl-C reaches this script alone, which then stops the others in order.
            start_new_session=True,
        )
    try:
        try:
            await within(until_it_answers(process, endpoint), "the daemon did not start")
        except DemoFailedError as failure:
            raise DemoFailedError(f"{failure}:\n{log.read_text()}") from failure
        say(f"A daemon keeps its data in {directory}.")
        yield endpoint
    finally:
        await stop(process)


async def until_it_answers(process: asyncio.subprocess.Process, endpoint: str) -> None:
    """Wait for the daemon's first answer."""
    async with dss_client.connect(endpoint=endpoint) as client:
        while process.returncode is None:
            try:
                await client.daemon.status()
            except dss_client.DssError:
                await asyncio.sleep(POLL_S)
            else:
                return
    raise DemoFailedError(f"the daemon ended with {process.returncode}")


@asynccontextmanager
async def members(directory: Path, endpoint: str) -> AsyncIterator[Mapping[str, Member]]:
    """The three consumer processes, by name; none outlives the block."""
    group: dict[str, Member] = {}
    try:
        async with asyncio.TaskGroup() as tasks:
            for name in MEMBERS:
                hold = (str(HOLD_AFTER_RECORDS),) if name == VICTIM else ()
                results = directory / f"{name}.csv"
                results.touch()
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, str(CONSUMER), endpoint, name, str(results), *hold),
                    stdout=asyncio.subprocess.PIPE,
                    start_new_session=True,
                )
                group[name] = Member(name, results, process)
                tasks.create_task(group[name].listen(), name=f"listen to {name}")
            try:
                yield group
            finally:
                for member in group.values():
                    await stop(member.process)
    finally:
        for member in group.values():
            await stop(member.process)


async def stop_survivors(group: Mapping[str, Member]) -> None:
    """Ask the living members to leave and see that they do so in order."""
    for member in group.values():
        if member.name != VICTIM and await stop(member.process) != 0:
            raise DemoFailedError(f"{member.name} ended with {member.process.returncode}")


async def stop(process: asyncio.subprocess.Process) -> int:
    """End a process, with SIGKILL if it takes too long, and return its exit code."""
    if process.returncode is None:
        process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
    return await process.wait()


async def dssctl(endpoint: str, *arguments: str) -> None:
    """Run a command as an operator would, in full view."""
    console.print(f"\n[bold]$ dssctl {' '.join(arguments)}[/]")
    sys.stdout.flush()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dssctl", "--endpoint", endpoint, *arguments)
    )
    if code := await process.wait():
        raise DemoFailedError(f"dssctl {' '.join(arguments)} ended with {code}")
    console.print()


async def within(waiting: Awaitable[object], otherwise: str) -> None:
    """Wait, but not for ever."""
    try:
        async with asyncio.timeout(STEP_TIMEOUT_S):
            await waiting
    except TimeoutError as late:
        raise DemoFailedError(f"{otherwise} within {STEP_TIMEOUT_S:g} s") from late


def short_temporary_folder() -> str | None:
    """A unix socket's path is bounded, so a deep TMPDIR will not do."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 60 else "/tmp"


if __name__ == "__main__":
    try:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument(
            "--flights", type=int, default=FLIGHTS_MAX, help="publish so many at the most"
        )
        sys.exit(asyncio.run(main(parser.parse_args().flights)))
    except KeyboardInterrupt:
        sys.exit(130)
