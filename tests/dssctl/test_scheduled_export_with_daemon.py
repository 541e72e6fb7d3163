"""The task ``export`` of a daemon: what is new comes, once, whatever an earlier run left."""

import asyncio
from pathlib import Path

import pyarrow.dataset as ds
import pytest

import dss_client
from dss_bulk.next_export import next_export
from dss_client.changes import CreateJob
from support.dssctl_call import Completed, Daemon


def run(daemon: Daemon, *arguments: str) -> Completed:
    options = [word for each in arguments for word in ("--arg", each)]
    return daemon.dssctl("tasks", "run", "export", *options)


def exported(daemon: Daemon, *arguments: str) -> str:
    done = run(daemon, *arguments)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def folder_of(daemon: Daemon, name: str) -> Path:
    """Where the data directory of the fixture has it."""
    return Path(daemon.endpoint.removeprefix("unix:")).parent / "d/exports" / name


def payloads(folder: Path) -> list[bytes]:
    table = ds.dataset(folder, partitioning="hive").to_table()
    return sorted(table["payload"].to_pylist())


def produce(daemon: Daemon, topic: str, *lines: bytes) -> None:
    done = daemon.dssctl("produce", topic, stdin=b"\n".join(lines) + b"\n")
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.slow("each run and each command is a process of its own")
def test_a_run_finishes_what_an_earlier_one_left_and_exports_what_is_new(
    daemon: Daemon,
) -> None:
    daemon.dssctl("topics", "create", "left")
    produce(daemon, "left", b"a", b"b")
    folder = folder_of(daemon, "lake")

    async def leave_a_job() -> None:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            change = CreateJob("export-lake", "export", source="left")
            new = await next_export(client, change, folder)
            assert new.change is not None
            await client.operations.apply(await client.operations.plan(new.change))

    asyncio.run(leave_a_job())
    produce(daemon, "left", b"c")
    said = exported(daemon, "topic=left", "folder=lake")
    assert "2 records exported that an earlier run had left" in said
    assert "1 record exported to" in said
    assert "nothing of left is new" in exported(daemon, "topic=left", "folder=lake")
    assert payloads(folder) == [b"a", b"b", b"c"]
    jobs = daemon.dssctl("jobs", "ls", "-o", "name").stdout.split()
    assert jobs == [b"export-lake"]


def test_an_export_that_fails_is_told_with_the_sentence_of_its_driver(daemon: Daemon) -> None:
    done = run(daemon, "topic=none")
    assert done.returncode == 1
    assert "The task export failed: There is no topic none" in done.stderr.decode()
