"""``dssctl jobs`` against a daemon process: a job as it stands, waited for and steered."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol

import pytest

import dss_client
from dss_client import Client
from dss_client.changes import CreateJob
from support.bulk_jobs import read_chunk, staged
from support.dssctl_call import Completed, Daemon, environment, item, run_dssctl
from support.started_program import ProgramProcess

STOP_S_MAX = 60.0
HEADINGS = "NAME KIND STATE SOURCE TARGET PROGRESS RECORDS BYTES RATE AGE DRIVER"


def ok(done: Completed) -> str:
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def refused(done: Completed, exit_code: int, code: str) -> str:
    said = done.stderr.decode()
    assert done.returncode == exit_code, said
    assert f"error {code}: " in said
    return said


@pytest.fixture(scope="module")
def filled(daemon: Daemon) -> Daemon:
    """A daemon with a topic of records, and one for copies."""
    ok(daemon.dssctl("topics", "create", "orders", "--partitions", "2"))
    ok(daemon.dssctl("topics", "create", "copies"))
    ok(daemon.dssctl("produce", "orders", stdin=b"".join(b"%d\n" % n for n in range(500))))
    return daemon


def run(daemon: Daemon, doing: "Doing") -> None:
    async def connected() -> None:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await doing(client)

    asyncio.run(connected())


class Doing(Protocol):
    def __call__(self, client: Client) -> Coroutine[Any, Any, None]: ...


def make(daemon: Daemon, name: str) -> None:
    async def made(client: Client) -> None:
        change = CreateJob(name, "replay", source="orders", target="copies", rate_bytes_s=10 << 20)
        await client.operations.apply(await client.operations.plan(change), reason="a test")

    run(daemon, made)


def drive(daemon: Daemon, name: str, *, gives_up: str = "") -> None:
    """Publish the job to its end, or give it up with a reason."""

    async def driven(client: Client) -> None:
        async with client.jobs.drive(name, driver="a test, pid 7") as lease:
            async for chunk in lease.open_chunks():
                if gives_up:
                    await lease.give_up(gives_up)
                    return
                records = await read_chunk(client, chunk)
                await lease.commit(
                    chunk.number, [staged(lease, chunk.number, records, f"copies/{name}")]
                )

    run(daemon, driven)


def test_a_job_is_listed_described_paused_resumed_cancelled_and_removed(filled: Daemon) -> None:
    dssctl = filled.dssctl
    make(filled, "again")
    listed = ok(dssctl("jobs", "ls")).splitlines()
    assert listed[0].split() == HEADINGS.split()
    row = listed[1].split()
    assert row[:7] == ["again", "replay", "active", "orders", "copies", "0/1", "0%"]
    assert (row[-3], row[-1]) == ("10.0M/s", "none")
    assert "No driver has taken it yet" in ok(dssctl("jobs", "describe", "again"))
    assert (
        "1 chunk wait until it is resumed" in dssctl("jobs", "pause", "again", "-y").stderr.decode()
    )
    paused = item(dssctl("jobs", "describe", "again", "--chunks", "-o", "json"))
    assert paused["state"] == "paused"
    assert "dssctl jobs resume again" in paused["next"][0]
    [chunk] = paused["manifest"]
    assert (chunk["state"], chunk["records_planned"], chunk["wrote"]) == ("open", 500, [])
    assert sum(each["end"] - each["start"] for each in chunk["reads"]) == 500
    ok(dssctl("jobs", "resume", "again", "-y"))
    refused(dssctl("jobs", "rm", "again", "-y"), 6, "DSS7004")
    cancelled = dssctl("jobs", "cancel", "again", "-y", "--reason", "enough")
    ok(cancelled)
    assert "this cannot be undone: what it published stays" in cancelled.stderr.decode()
    assert "enough" in refused(dssctl("jobs", "wait", "again"), 1, "DSS7013")
    assert item(dssctl("jobs", "describe", "again", "-o", "json"))["failure"] == "enough"
    assert "REMOVED    yes" in ok(dssctl("jobs", "rm", "again", "-y"))
    ok(dssctl("jobs", "rm", "again", "-y", "--if-exists"))


def test_a_job_that_is_not_there_is_told_with_the_name_that_is_near(filled: Daemon) -> None:
    make(filled, "nightly")
    told = refused(filled.dssctl("jobs", "describe", "nightli"), 5, "DSS7003")
    assert "Did you mean nightly?" in told


def test_who_waits_hears_that_nobody_drives_and_then_of_the_end(filled: Daemon) -> None:
    make(filled, "waited")
    waiting = start(filled, "jobs", "wait", "waited", "-o", "json")
    assert waiting.stderr is not None
    assert b"nobody drives the job waited" in waiting.stderr.readline()
    drive(filled, "waited")
    said, _ = waiting.communicate(timeout=STOP_S_MAX)
    assert waiting.returncode == 0
    ended = json.loads(said)["item"]
    assert (ended["state"], ended["published"], ended["records"]) == ("done", 1, 500)
    [chunk] = item(filled.dssctl("jobs", "describe", "waited", "--chunks", "-o", "json"))[
        "manifest"
    ]
    assert chunk["state"] == "published"
    assert sum(each["end"] - each["start"] for each in chunk["wrote"]) == 500
    assert "copies" in ok(filled.dssctl("jobs", "describe", "waited", "--chunks"))


def test_a_job_that_failed_ends_the_waiting_with_1_and_its_reason(filled: Daemon) -> None:
    make(filled, "broken")
    drive(filled, "broken", gives_up="the disk is full")
    told = refused(filled.dssctl("jobs", "wait", "broken"), 1, "DSS7013")
    assert "the disk is full" in told
    assert "the disk is full" in ok(filled.dssctl("jobs", "describe", "broken"))


def test_ctrl_c_ends_the_waiting_and_leaves_the_job(filled: Daemon) -> None:
    make(filled, "left")
    waiting = start(filled, "jobs", "wait", "left")
    assert waiting.stderr is not None
    waiting.stderr.readline()
    waiting.send_signal(signal.SIGINT)
    _, said = waiting.communicate(timeout=STOP_S_MAX)
    assert waiting.returncode == 130
    assert b"the job left goes on: dssctl jobs wait left" in said
    assert item(filled.dssctl("jobs", "describe", "left", "-o", "json"))["state"] == "active"
    late = filled.dssctl("jobs", "wait", "left", "--timeout", "1s")
    assert "it is active, 0 of 1 chunks" in refused(late, 4, "DSS1172")


def test_a_driver_is_started_where_none_lives(
    filled: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    between = ("--from", "orders", "--to", "copies")
    ok(filled.dssctl("replays", "create", "driven", *between, "--no-drive", "-y"))
    # As a process: who starts a driver does not wait for it.
    ok(run_dssctl("--endpoint", filled.endpoint, "jobs", "drive", "driven"))
    assert item(filled.dssctl("jobs", "wait", "driven", "-o", "json"))["records"] == 500
    told = refused(filled.dssctl("jobs", "drive", "driven"), 6, "DSS7004")
    assert "is done: it cannot be driven" in told


def test_a_job_is_waited_for_where_it_is_made(
    filled: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    replay = ("replays", "create", "--from", "orders", "--to", "copies", "-y", "--wait")
    planned = filled.dssctl(*replay, "soon", "-o", "json", "--dry-run")
    assert json.loads(ok(planned))["kind"] == "OperationPlan"
    # As a process: who starts a driver does not wait for it.
    made = run_dssctl("--endpoint", filled.endpoint, *replay, "soon", "-o", "json")
    assert (item(made)["state"], item(made)["records"]) == ("done", 500)
    late = filled.dssctl(*replay, "left-alone", "--no-drive", "--timeout", "1s")
    assert "nobody drives the job left-alone" in refused(late, 4, "DSS1172")


def test_a_second_driver_is_refused_before_it_is_started(filled: Daemon) -> None:
    make(filled, "taken")

    async def taken(client: Client) -> None:
        async with client.jobs.drive("taken", driver="a test, pid 7"):
            pass  # its lease outlasts it

    run(filled, taken)
    told = refused(filled.dssctl("jobs", "drive", "taken"), 6, "DSS7004")
    assert "is driven by a test, pid 7" in told


def start(daemon: Daemon, *arguments: str) -> ProgramProcess:
    return ProgramProcess(
        ["-m", "dssctl", "--endpoint", daemon.endpoint, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
