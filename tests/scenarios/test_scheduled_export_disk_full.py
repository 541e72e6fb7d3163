"""The task ``export`` with a full disk: it waits for room, and no record comes twice."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow.dataset as ds
import pytest

import dss_client
from dss_client import Client
from dss_client.changes import RunTask
from dss_core.errors import JobNotFound
from support.daemon_process import running, short_directory
from support.prerequisites import MOUNT, leave_out
from support.proof_share import share
from support.small_disk import CannotMount, fill, mounted

DISK_BYTES = 48 << 20
RECORDS = 200
PAYLOAD_BYTES = 20_000
ROOM_BYTES = 1 << 20
"""For a part of what is exported."""
JOB = "export-lake"
LOOK_S = 0.02
PATIENCE_S = 60.0


@pytest.fixture
def disk() -> Iterator[Path]:
    """A file system with little room. Skips where none may be mounted."""
    try:
        with short_directory() as directory, mounted(directory / "disk", DISK_BYTES) as disk:
            yield disk
    except CannotMount as why:
        leave_out(MOUNT, str(why))


@asynccontextmanager
async def stocked(disk: Path) -> AsyncIterator[Client]:
    """A client of a daemon that has all on that disk, and records that cannot be packed."""
    endpoint = f"unix:{disk.parent / 's'}"
    async with (
        running("--data-dir", str(disk / "data"), "--listen", endpoint),
        dss_client.connect(endpoint=endpoint) as client,
    ):
        await produce(client, 0)
        yield client


async def produce(client: Client, first: int) -> None:
    if not first:
        await client.topics.create("orders", partitions=2)
    async with client.producer("orders") as producer:
        for number in range(first, first + RECORDS):
            producer.send_nowait(b"%08d" % number + os.urandom(PAYLOAD_BYTES), key=b"k")
        await producer.flush()


async def export(client: Client) -> None:
    """One run of the task, to its end."""
    arguments = {"topic": "orders", "folder": "lake"}
    plan = await client.operations.plan(RunTask("export", arguments))
    applied = await client.operations.apply(plan, reason="a test")
    ended = await client.operations.ended(applied.number)
    assert ended.state == "done", ended


async def said(client: Client) -> str:
    try:
        return (await client.jobs.get(JOB)).said
    except JobNotFound:
        return ""


async def waits(client: Client, exporting: asyncio.Task[None]) -> None:
    """Return once operators are told that the export waits for room."""
    while "full" not in await said(client):
        assert not exporting.done(), exporting.result()
        await asyncio.sleep(LOOK_S)


def exported(disk: Path) -> Counter[int]:
    table = ds.dataset(disk / "data/exports/lake", partitioning="hive").to_table()
    return Counter(int(payload[:8]) for payload in table["payload"].to_pylist())


def parts_left(disk: Path) -> list[Path]:
    return [path for path in (disk / "data/exports").rglob("*") if path.name.startswith(".")]


@pytest.mark.slow("each run is a process of its own, and a disk is filled")
@pytest.mark.parametrize("room_bytes", share([ROOM_BYTES], [0, ROOM_BYTES]))
async def test_an_export_waits_for_room_and_writes_each_record_once(
    disk: Path, room_bytes: int
) -> None:
    async with asyncio.timeout(PATIENCE_S), stocked(disk) as client:
        filler = fill(disk)
        os.truncate(filler, filler.stat().st_size - room_bytes)
        exporting = asyncio.create_task(export(client))
        await waits(client, exporting)
        assert not exporting.done()
        filler.unlink()
        await exporting
        assert exported(disk) == Counter(range(RECORDS))
        await produce(client, RECORDS)
        await export(client)
        assert exported(disk) == Counter(range(2 * RECORDS))
        assert parts_left(disk) == []
