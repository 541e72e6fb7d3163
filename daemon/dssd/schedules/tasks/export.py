"""The task ``export``: what is new in a topic, as Parquet files in the data directory.

A driver of its own does it, as for any bulk job, so that the daemon's process has none of its work.
Whoever may make schedules over the network must not choose where files are written: so folders lie
in the directory ``exports`` of the data directory; an operator may put a link there.

Invariant: when a run ends, however that is, no process of it goes on; the job that it leaves is
gone on with by the next run.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from dss_core.errors import IllegalArgument, TaskFailed
from dss_core.filters import TopicFilter, check_name
from dssd.schedules.limits import EXPORT_SAID_BYTES_MAX
from dssd.schedules.tasks.model import Argument, Given, Say, Task

NAME = "export"
PROGRAM = "dss_bulk.scheduled_export"

Endpoint = Callable[[], Awaitable[str]]
"""Where the daemon listens."""


def export(endpoint: Endpoint, directory: Path) -> Task:
    """The task, with the directory that has its folders."""

    async def work(given: Given, say: Say) -> None:
        topic, folder = given["topic"], given["folder"] or given["topic"]
        only = ("--only", given["only"]) if given["only"] else ()
        options = ("--endpoint", await endpoint(), *only)
        try:
            await asyncio.to_thread(directory.mkdir, mode=0o700, exist_ok=True)
            driver = await _started(f"export-{folder}", topic, str(directory / folder), *options)
        except OSError as failed:
            raise TaskFailed(task=NAME, why=f"it cannot begin: {failed.strerror}.") from failed
        await _heard(driver, say)

    return Task(
        NAME,
        "Write what is new in a topic to a folder in DATA-DIR/exports, as Parquet.",
        work,
        (
            Argument("topic", "Of which records.", _topic),
            Argument("folder", "Its name; that of the topic.", _folder),
            Argument("only", "Subjects that meet this filter.", _filter),
        ),
    )


async def _started(*arguments: str) -> Process:
    """The driver, in a session of its own.

    Raises:
        OSError: no process can be made.
    """
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", PROGRAM),  # -P: nothing of the working directory is loaded
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )


async def _heard(driver: Process, say: Say) -> None:
    """Say what the driver says, until it has ended.

    Raises:
        TaskFailed: it did not end well.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            errors = tasks.create_task(_errors(driver), name="what a driver says of errors")
            await _lines(driver, say)
        code = await driver.wait()
    finally:
        if driver.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
            await driver.wait()
    if code:
        why = _reason(errors.result()) or f"its driver ended with {code}."
        raise TaskFailed(task=NAME, why=why)


async def _lines(driver: Process, say: Say) -> None:
    assert driver.stdout is not None
    async for line in driver.stdout:
        heard = json.loads(line)
        if "said" in heard:
            say(heard["said"])
        else:
            done = f"{heard['published']:,} of {heard['chunks']:,} chunks"
            say.now(f"{done}, {heard['records']:,} records")


async def _errors(driver: Process) -> str:
    """What it says of its errors, up to a bound; the rest is read and dropped."""
    assert driver.stderr is not None
    said = b""
    while piece := await driver.stderr.read(EXPORT_SAID_BYTES_MAX):
        said = (said + piece)[:EXPORT_SAID_BYTES_MAX]
    return said.decode(errors="replace")


def _reason(said: str) -> str:
    """The sentence of the error that a driver told; its code and its hint are for a terminal."""
    first = said.partition("\n")[0]
    return first.partition(": ")[2] if first.startswith("error ") else first


def _topic(written: str) -> str:
    if not written:
        raise IllegalArgument(argument="the topic", rule="name one")
    return _folder(written)


def _folder(written: str) -> str:
    if written:
        check_name(written)
    if written.startswith("."):
        raise IllegalArgument(argument=f"the name {written}", rule="it begins with no dot")
    return written


def _filter(written: str) -> str:
    if written:
        TopicFilter.parse(written)
    return written
