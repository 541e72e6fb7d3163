"""The task ``export``: writes new records of a topic as Parquet files into the data directory.

A separate driver process does the work, as for any bulk job.
Creators of schedules may be remote, so they must not choose where files go: folders are in the
directory ``exports`` of the data directory. An operator may put a link there.

Invariant: when a run ends, for whatever reason, its process has ended; the next run continues an
unfinished job. If the daemon is killed, the driver continues like any other driver: it waits for
the next daemon, keeps the job's lease, and ends with the job.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path

from dss_core.errors import IllegalArgument, TaskFailed
from dss_core.filters import TopicFilter, check_name
from dssd.schedules.tasks.model import Argument, Given, Say, Task
from dssd.schedules.tasks.programs import Program, started

EXPORT_LINE_BYTES_MAX = 1 << 16
"""A line of the driver of an export is cut here: what it says of itself takes some hundred."""

EXPORT_SAID_BYTES_MAX = 4_096
"""What is kept of the errors that the driver of an export tells."""


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
            async with _driver(
                f"export-{folder}", topic, str(directory / folder), *options
            ) as driver:
                await _heard(driver, say)
        except OSError as failed:
            raise TaskFailed(task=NAME, why=f"it cannot begin: {failed.strerror}.") from failed

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


def _driver(*arguments: str) -> AbstractAsyncContextManager[Program]:
    """The driver, in a session of its own."""
    # -P: nothing of the working directory is loaded
    return started([sys.executable, "-P", "-m", PROGRAM, *arguments], errors_apart=True)


async def _heard(driver: Program, say: Say) -> None:
    """Say what the driver says, until it has ended.

    Raises:
        TaskFailed: it did not end well.
    """
    async with asyncio.TaskGroup() as tasks:
        errors = tasks.create_task(_errors(driver), name="what a driver says of errors")
        await _lines(driver, say)
    code = await driver.code()
    if code:
        why = _reason(errors.result()) or f"its driver ended with {code}."
        raise TaskFailed(task=NAME, why=why)


async def _lines(driver: Program, say: Say) -> None:
    rest = b""
    async with aclosing(driver.said()) as pieces:
        async for piece in pieces:
            *lines, rest = (rest + piece).split(b"\n")
            rest = rest[:EXPORT_LINE_BYTES_MAX]
            for line in lines:
                _hear(line, say)
    if rest:
        _hear(rest, say)


def _hear(line: bytes, say: Say) -> None:
    """One line: what is to be kept, how far the driver is, or what is not its own word."""
    try:
        heard = json.loads(line)
        if "said" in heard:
            say(str(heard["said"]))
            return
        done = f"{heard['published']:,} of {heard['chunks']:,} chunks"
        say.now(f"{done}, {heard['records']:,} records")
    except (ValueError, KeyError, TypeError):  # of a library that writes to stdout
        say(line.decode(errors="replace"))


async def _errors(driver: Program) -> str:
    """What it says of its errors, up to a bound; the rest is read and dropped."""
    said = b""
    async with aclosing(driver.errors()) as pieces:
        async for piece in pieces:
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
