"""What is told of a bulk job: by drivers, in a log on this machine, and by the daemon, in events.

The driver writes its log by itself, whoever else runs. Where another one is started and the log is
large, the log becomes the older one of two. Invariant: a line is told once, the driver's in their
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
"""Of what the drivers of a job said. Where it is more when another one is started, it becomes the
older half; so there are two of these at most, and what one driver says: a line a chunk."""

JOB_LOG_LINE_BYTES_MAX = 64 << 10
"""Of a line that is printed."""

JOB_LOG_LOOK_S = 0.5
"""How soon `jobs logs -f` tells what a driver said."""

JOB_LOG_END_S = 3.0
"""How long the last events of a job that has ended are awaited: the daemon writes its events once a
second."""


_ENDS = ("job.ended", "job.failed")
"""What the daemon tells last of a job; of one that is cancelled it tells nothing."""

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
    """Where the driver of a job that was started on this machine says what it does."""
    from platformdirs import user_state_path

    return user_state_path("dssctl", appauthor=False) / "jobs" / f"{job}.log"


def older(log: Path) -> Path:
    """What was said before, where that was much."""
    return log.with_suffix(".log.1")


def begin_log(log: Path, job: "Job") -> None:
    """Make ready for a driver that is about to be started.

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
    """Reads what the drivers of a job say, from the beginning, as it grows."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._file: int | None = None
        self._at = 0
        self._rest = b""
        self._last_us = 0

    def items(self) -> Iterator[Item]:
        """Whole lines that were not told yet."""
        if self._at == 0 and self._file is None:
            yield from self._of(older(self._log))
        yield from self._of(self._log)

    def _of(self, path: Path) -> Iterator[Item]:
        try:
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                if found.st_ino != self._file or found.st_size < self._at:
                    # Begun anew: what was there before is told, or gone.
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
        # A line without a time of its own, of an error for one, comes behind the one before.
        return {"at": Instant(self._last_us), "by": "driver", "text": text}


def event_line(event: "Event") -> Item:
    """What the daemon told."""
    return {
        "at": Instant.of_ms(event.last_at_ms),
        "by": "daemon",
        "text": f"{event.code}: {event.sentence}",
    }


class JobTold:
    """What is told of a job by its drivers and the daemon, as it comes."""

    def __init__(self, job: "Job") -> None:
        self._job = job
        self._log = DriversLog(log_path(job.name))
        self._after = 0
        self.is_ended = False
        """Whether the daemon has told its end."""

    async def more(self, client: "Client") -> list[Item]:
        """What was not told yet, by time.

        Raises:
            DssError: the daemon does not answer.
        """
        page = await client.events.list(subject=self._job.name, after=self._after)
        self._after = max([self._after, *(each.number for each in page.events)])
        events = [each for each in page.events if _is_of(each, self._job)]
        self.is_ended |= any(each.code in _ENDS for each in events)
        return sorted([*self._log.items(), *map(event_line, events)], key=_at_us)


async def told(client: "Client", job: "Job") -> list[Item]:
    """All that is kept of a job, by time."""
    return await JobTold(job).more(client)


async def follow(client: "Client", job: "Job", add: Callable[[Item], None]) -> None:
    """Tell what is kept, and what comes, until the job has ended."""
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
        # Once more behind the end: its driver says something last, too.
        last = told.is_ended
        await asyncio.sleep(JOB_LOG_LOOK_S)


async def _has_ended(client: "Client", job: "Job") -> bool:
    try:
        return (await client.jobs.get(str(job.job_id))).has_ended
    except JobNotFound:
        return True


def _is_of(event: "Event", job: "Job") -> bool:
    """Of the job, and of none that had its name before."""
    known = event.subject == job.name and event.code.startswith("job.")
    return known and event.last_at_ms >= job.created_at_ms


def _at_us(item: Item) -> int:
    at = item["at"]
    assert isinstance(at, Instant)
    return at.us
