"""The log of a bulk job: drivers write files on this machine, the daemon tells events.

A driver writes its log by itself, whoever else runs. If another driver is started and the log is
large, it becomes the older one of two. Invariant: a line is printed once, a driver's lines in their
order.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dss_core.errors import JobNotFound
from dssctl.output import Column, Instant, Item, Kind

if TYPE_CHECKING:
    from dss_client import Client, Event, Job

JOB_LOG_BYTES_MAX = 1 << 20
"""The size at which a log becomes the older one when another driver is started; so there are at
most two of this size, plus the output of one driver: a line for each chunk."""

JOB_LOG_LINE_BYTES_MAX = 64 << 10
"""The longest line that is printed."""

JOB_LOG_LOOK_S = 0.5
"""How soon `jobs logs -f` prints a driver's lines."""

JOB_LOG_END_S = 3.0
"""How long the last events of a job that has ended are awaited: the daemon writes its events once a
second."""


_ENDS = ("job.ended", "job.failed")
"""The last event of a job; a cancelled job has none."""

JOB_LOG_KIND = Kind(
    "JobLogLine",
    (
        Column("at", "AGE", right=True, width=8),
        Column("by", "BY", width=6, styles={"daemon": "cyan"}),
        Column("text", "WHAT"),
    ),
    lambda item: str(item["text"]),
)


def log_path(job: str) -> Path:
    """The log file of a job's driver that was started on this machine."""
    from platformdirs import user_state_path

    return user_state_path("dssctl", appauthor=False) / "jobs" / f"{job}.log"


def older(log: Path) -> Path:
    """The older log, from a time when the log was large."""
    return log.with_suffix(".log.1")


def begin_log(log: Path, job: "Job") -> None:
    """Prepare the log for a driver that is about to be started.

    Raises:
        OSError: the folder cannot be written to.
    """
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if job.epoch == 0:
        # Another job had the name.
        older(log).unlink(missing_ok=True)
        log.unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        if log.stat().st_size > JOB_LOG_BYTES_MAX:
            log.rename(older(log))


class DriversLog:
    """Reads the log of a job's drivers, from the beginning, as it grows."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._file: int | None = None
        self._at = 0
        self._rest = b""
        self._last_us = 0

    def items(self) -> Iterator[Item]:
        """Complete lines that were not printed yet."""
        if self._at == 0 and self._file is None:
            yield from self._of(older(self._log))
        yield from self._of(self._log)

    def _of(self, path: Path) -> Iterator[Item]:
        try:
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                if found.st_ino != self._file or found.st_size < self._at:
                    # The file was begun anew: its earlier lines were printed, or are gone.
                    self._file, self._at, self._rest = found.st_ino, 0, b""
                self._last_us = self._last_us or found.st_mtime_ns // 1_000
                file.seek(self._at)
                while piece := file.read(JOB_LOG_LINE_BYTES_MAX):
                    self._at += len(piece)
                    *lines, self._rest = (self._rest + piece).split(b"\n")
                    yield from map(self._item, lines)
        except FileNotFoundError:
            return

    def _item(self, line: bytes) -> Item:
        text = line[:JOB_LOG_LINE_BYTES_MAX].decode(errors="replace")
        said: object = None
        with suppress(ValueError):
            said = json.loads(text)
        if isinstance(said, dict) and isinstance(said.get("at"), str):
            with suppress(ValueError):
                moment = datetime.fromisoformat(said.pop("at"))
                self._last_us = round(moment.timestamp() * 1_000_000)
            text = ", ".join(f"{name} {value}" for name, value in said.items())
        # A line without a time of its own, such as one of an error, follows the line before it.
        return {"at": Instant(self._last_us), "by": "driver", "text": text}


def event_line(event: "Event") -> Item:
    """The line of an event."""
    return {
        "at": Instant.of_ms(event.last_at_ms),
        "by": "daemon",
        "text": f"{event.code}: {event.sentence}",
    }


class JobTold:
    """The lines of a job's drivers and of the daemon, as they come."""

    def __init__(self, job: "Job") -> None:
        self._job = job
        self._log = DriversLog(log_path(job.name))
        self._after = 0
        self.is_ended = False
        """Whether the daemon has told its end."""

    async def more(self, client: "Client") -> list[Item]:
        """Lines that were not printed yet, by time.

        Raises:
            DssError: the daemon does not answer.
        """
        page = await client.events.list(subject=self._job.name, after=self._after)
        self._after = max([self._after, *(each.number for each in page.events)])
        events = [each for each in page.events if _is_of(each, self._job)]
        self.is_ended |= any(each.code in _ENDS for each in events)
        return sorted([*self._log.items(), *map(event_line, events)], key=_at_us)


async def told(client: "Client", job: "Job") -> list[Item]:
    """All kept lines of a job, by time."""
    return await JobTold(job).more(client)


async def follow(client: "Client", job: "Job", add: Callable[[Item], None]) -> None:
    """Print the kept lines, and new ones, until the job has ended."""
    told = JobTold(job)
    until_s, last = None, False
    while until_s is None or time.monotonic() < until_s:
        # Asked for before the events, which the daemon writes a little later.
        if until_s is None and await _has_ended(client, job):
            until_s = time.monotonic() + JOB_LOG_END_S
        for item in await told.more(client):
            add(item)
        if last:
            return
        # Once more after the end, because its driver also writes a last line.
        last = told.is_ended
        await asyncio.sleep(JOB_LOG_LOOK_S)


async def _has_ended(client: "Client", job: "Job") -> bool:
    try:
        return (await client.jobs.get(str(job.job_id))).has_ended
    except JobNotFound:
        return True


def _is_of(event: "Event", job: "Job") -> bool:
    """Whether an event is about the job, not about an earlier one of its name."""
    known = event.subject == job.name and event.code.startswith("job.")
    return known and event.last_at_ms >= job.created_at_ms


def _at_us(item: Item) -> int:
    at = item["at"]
    assert isinstance(at, Instant)
    return at.us
