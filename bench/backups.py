"""A backup beside load, and how fast it is: against `cp`, whole, and where little is new.

A producer sends a record and awaits its ack, and a member acknowledges records and awaits that they
are stored, again and again; first alone, then while a backup of a GiB is made by the tool in a
process of its own. The backup and `cp` write to the same file system in turns, both synced; one in
memory where there is one, so that the daemon's disk serves the load alone, as it should.
"""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

from processes import Daemon, running_daemon
from results import Row

import dss_client

TOPIC, LOADED = "large", "loaded"
RECORD_BYTES = 256 << 10
RECORDS = 4_096
"""A GiB."""
ALONE_S = 4.0
SETTLED_S = 1.0
MEMORY = Path("/dev/shm")
TOOL = [sys.executable, "-m", "dssctl"]


@dataclass(slots=True)
class Waited:
    """How long calls took, in milliseconds."""

    publishes: list[float] = field(default_factory=list)
    commits: list[float] = field(default_factory=list)

    def p99(self) -> float:
        """Of publishes and commits, the worse one."""
        return max(quantiles(each, n=100)[98] for each in (self.publishes, self.commits))

    def longest(self) -> float:
        """Of all."""
        return max(*self.publishes, *self.commits)


def rows() -> dict[str, Row]:
    """What is measured, and its targets."""
    return {
        "backup_cp": Row("cp of a GiB of log, synced", "GiB/s", "baseline"),
        "backup": Row("backup of the same by the tool", "GiB/s", "", "cp", ">= 0.70"),
        "backup_again": Row("  once more, nothing new", "s", "<= 2"),
        "backup99": Row("publish and commit beside a backup, p99", "ms", "", "alone", "<= 2"),
        "backup_beside_max": Row("  the longest", "ms", "<= 50"),
        "backup_alone_max": Row("  the longest without one", "ms", ""),
    }


async def measured(table: dict[str, Row]) -> None:
    """One round."""
    async with running_daemon() as daemon:
        await _round(daemon, table)


async def _round(daemon: Daemon, table: dict[str, Row]) -> None:
    async with dss_client.connect("load", endpoint=daemon.endpoint) as client:
        await _fill(client)
        await client.topics.create(LOADED, partitions=4)
        await client.groups.create(f"$share/g/{LOADED}/#", start="earliest")
        with _folder() as folder:
            await asyncio.to_thread(os.sync)
            copied_s = await asyncio.to_thread(_copied, daemon.directory / "log", folder / "cp")
            took_s = await asyncio.to_thread(_backed_up, daemon, folder / "b")
            again_s = await asyncio.to_thread(_backed_up, daemon, folder / "b")
            await asyncio.sleep(SETTLED_S)
            async with _load(client) as alone:
                await asyncio.sleep(ALONE_S)
            async with _load(client) as beside:
                await asyncio.to_thread(_backed_up, daemon, folder / "c")
    table["backup_cp"].add(1 / copied_s)
    table["backup"].add(1 / took_s, 1 / copied_s)
    table["backup_again"].add(again_s)
    table["backup99"].add(beside.p99(), alone.p99())
    table["backup_beside_max"].add(beside.longest())
    table["backup_alone_max"].add(alone.longest())


async def _fill(client: dss_client.Client) -> None:
    await client.topics.create(TOPIC, partitions=4)
    payload = os.urandom(RECORD_BYTES)
    async with client.producer(TOPIC) as producer:
        for number in range(RECORDS):
            await producer.enqueue(payload, key=b"%d" % number)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


def _copied(source: Path, target: Path) -> float:
    began_s = time.perf_counter()
    subprocess.run(["cp", "-r", source, target], check=True)
    subprocess.run(["sync", *target.iterdir()], check=True)
    took_s = time.perf_counter() - began_s
    shutil.rmtree(target)
    return took_s


def _backed_up(daemon: Daemon, folder: Path) -> float:
    began_s = time.perf_counter()
    command = [*TOOL, "--endpoint", daemon.endpoint, "backup", "create", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began_s


@contextlib.asynccontextmanager
async def _load(client: dss_client.Client) -> AsyncIterator[Waited]:
    """A producer and a member at work while the block runs."""
    waited = Waited()
    async with asyncio.TaskGroup() as tasks:
        working = [
            tasks.create_task(_publish(client, waited)),
            tasks.create_task(_commit(client, waited)),
        ]
        yield waited
        for each in working:
            each.cancel()


async def _publish(client: dss_client.Client, waited: Waited) -> None:
    number = 0
    async with client.producer(LOADED) as producer:
        while True:
            number += 1
            began_s = time.perf_counter()
            await producer.send(b"x" * 100, key=b"%d" % number)
            waited.publishes.append((time.perf_counter() - began_s) * 1e3)


async def _commit(client: dss_client.Client, waited: Waited) -> None:
    async with client.subscribe(f"$share/g/{LOADED}/#") as subscription:
        async for record in subscription:
            began_s = time.perf_counter()
            await record.ack(sync=True)
            waited.commits.append((time.perf_counter() - began_s) * 1e3)
