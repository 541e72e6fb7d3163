"""A year of flights through a durable log to a group that loses a member, and then the daemon.

Starts a daemon in a temporary directory, publishes 336,776 real flights, lets three processes share
them, kills one of them while it holds records, kills the daemon, starts it again, and checks that
the sums per carrier equal those of the input file. Exits with 1 where they do not. Leaves nothing
behind, however it ends.
"""

import argparse
import asyncio
import json
import logging
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
from demo_processes import (
    POLL_S,
    Daemon,
    Member,
    daemon,
    members,
    short_temporary_folder,
    stop,
    within,
)
from demo_report import (
    DemoFailedError,
    Kill,
    TakenOver,
    compare,
    console,
    explain_copies,
    read_results,
    say,
    show_taken_over,
)
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

import dss_client

REPO = Path(__file__).resolve().parents[1]
FLIGHTS = REPO / "examples" / "flights.parquet"

PARTITIONS = 12
MEMBERS = ("anna", "bert", "cleo")
VICTIM = "bert"
HOLD_AFTER_RECORDS = 20_000
SLICE_RECORDS = 8_192
FLIGHTS_MAX = 336_776
"""As many as there are."""


@contextmanager
def bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, nothing elsewhere; yields what sets how far it is."""
    if not console.is_terminal:
        yield lambda _done: None
        return
    columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)


async def main(flights_max: int) -> int:
    """Run the demo with so many flights at the most; returns its exit code."""
    # That connections are lost is part of the story, and told as such.
    logging.getLogger("dss_client").setLevel(logging.ERROR)
    flights = pyarrow.parquet.read_table(FLIGHTS).slice(0, flights_max)
    directory = Path(tempfile.mkdtemp(prefix="dss-demo-", dir=short_temporary_folder()))
    failed = False
    try:
        async with daemon(directory) as server:
            say(f"A daemon keeps its data in {directory}.")
            await group_survives(flights, directory, server)
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


async def group_survives(flights: pa.Table, directory: Path, server: Daemon) -> None:
    """The story itself, between a daemon's start and its end."""
    endpoint = server.endpoint
    create = ("create", "flights", "--partitions", str(PARTITIONS))
    await dssctl(endpoint, "topics", *create, "-o", "name")
    start = ("--start", "earliest", "-o", "name")
    await dssctl(endpoint, "groups", "create", "delays@flights/#", *start)
    held_after = {VICTIM: min(HOLD_AFTER_RECORDS, flights.num_rows // 8)}
    async with (
        members(MEMBERS, directory, endpoint, held_after) as group,
        asyncio.TaskGroup() as tasks,
    ):
        for member in group.values():
            await within(member.working.wait(), f"{member.name} got no stream")
        say(f"{', '.join(group)} share the group: each writes results out, then acks.")
        done: Counter[str] = Counter()
        publishing = tasks.create_task(publish(flights, endpoint, done), name="publish")
        killed = await kill_member(group[VICTIM], endpoint)
        await show_heirs(group, killed)
        await kill_daemon(server, done)
        await within(publishing, "the flights were not published")
        await until_all_are_acknowledged(endpoint, len(flights))
        await dssctl(endpoint, "groups", "ls")
        await stop_survivors(group)
    results = read_results({member.name: member.results for member in group.values()})
    explain_copies(results, killed)
    compare(results, flights)


async def publish(flights: pa.Table, endpoint: str, done: Counter[str]) -> None:
    """Publish every flight, one producer an airport, in the order of the file."""
    origins = sorted(flights["origin"].unique().to_pylist())
    say(f"Publishing {len(flights):,} flights from {', '.join(origins)}, a producer each.")
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


async def kill_member(victim: Member, endpoint: str) -> Kill:
    """Kill a member that holds unacknowledged records, and say what it was in the middle of."""
    await within(victim.holding.wait(), f"{victim.name} did not stop between result and ack")
    stream = str(victim.held["stream"])
    first, last = int(str(victim.held["first"])), int(str(victim.held["last"]))
    say(
        f"{victim.name} has written out {victim.held['records']} results and not acknowledged "
        f"them:\n  {stream}, offsets {first} to {last}. Who reads what at this moment:"
    )
    await dssctl(endpoint, "grants", "ls", "--group", "delays")
    async with dss_client.connect(endpoint=endpoint) as client:
        grants = {grant.stream: grant for grant in await client.grants.list("delays")}
    if any(grants[stream].progress.is_acked(offset) for offset in range(first, last + 1)):
        raise DemoFailedError(f"{victim.name} held nothing unacknowledged")
    killed = Kill(victim.name, time.monotonic(), frozenset(victim.streams), stream, first, last)
    victim.process.kill()
    await victim.process.wait()
    say(f"kill -9 {victim.name}. Its {len(killed.orphaned)} streams go to the others:")
    return killed


async def show_heirs(group: Mapping[str, Member], killed: Kill) -> None:
    """Wait until others read what the dead member did, and show who does since when."""

    def taken_over() -> list[TakenOver]:
        return [
            TakenOver(stream, member.name, member.streams[stream] - killed.at_s)
            for stream in killed.orphaned
            for member in group.values()
            if member.name != killed.member and stream in member.streams
        ]

    async def all_have_heirs() -> None:
        news = group[killed.member].news
        while len(taken_over()) < len(killed.orphaned):
            news.clear()
            await news.wait()

    await within(all_have_heirs(), "the streams of the dead member went to nobody")
    show_taken_over(taken_over())


async def kill_daemon(server: Daemon, done: Counter[str]) -> None:
    """Kill the daemon in the middle of its work, and start it again."""
    say(f"kill -9 dssd, with {done.total():,} flights acknowledged as durable so far.")
    killed_s = time.monotonic()
    await server.kill()
    await server.start()
    took_s = time.monotonic() - killed_s
    say(f"dssd serves again {took_s:.1f} s later. Producers and members go on by themselves.")


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


async def stop_survivors(group: Mapping[str, Member]) -> None:
    """Ask the living members to leave and see that they do so in order."""
    for member in group.values():
        if member.name != VICTIM and await stop(member.process) != 0:
            raise DemoFailedError(f"{member.name} ended with {member.process.returncode}")


async def dssctl(endpoint: str, *arguments: str) -> None:
    """Run a command as an operator would, in full view."""
    console.print(f"[bold]$ dssctl {' '.join(arguments)}[/]")
    colour = ("--color", "always" if console.is_terminal else "never")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dssctl", "--endpoint", endpoint, *colour, *arguments),
        stdout=asyncio.subprocess.PIPE,
    )
    # Through the console, which knows of the bar at the foot of the terminal.
    printed, _ = await process.communicate()
    console.print(Text.from_ansi(printed.decode()))
    if code := process.returncode:
        raise DemoFailedError(f"dssctl {' '.join(arguments)} ended with {code}")


if __name__ == "__main__":
    try:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument(
            "--flights", type=int, default=FLIGHTS_MAX, help="publish so many at the most"
        )
        sys.exit(asyncio.run(main(parser.parse_args().flights)))
    except KeyboardInterrupt:
        sys.exit(130)
