"""The driver of one job: takes its lease, and works off its chunks in their order.

::

    drive ─Acquire─► work ─chunk─► commit ─► chunk ─► ... ─► the daemon says done
                       └ DssError ─► GiveUp: the job failed, with the sentence of the error
                       └ a full disk: again, once there is room
                       └ the daemon is away: again, once it is there
                       └ any other error: a crash. Again, some times; then GiveUp
    killed anywhere: nobody says anything; the lease runs out, and another driver goes on

An engine says how the work of a chunk is done, here or on a cluster, and on how many chunks at
once; commits stay in their order. This module knows none of them, and loads nothing of theirs.

Invariant: what was committed is never worked on again. A driver that lost its lease stops and
says so; it gives up nothing that is another one's.
"""

import asyncio
import errno
import json
import logging
import os
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from dss_bulk.work import ChunkDone, Work
from dss_client import Client
from dss_client.job_values import Granted, Job, JobChunk
from dss_client.jobs import Lease
from dss_core.errors import (
    PASSING,
    DiskFull,
    DriverCrashed,
    DssError,
    EngineLost,
    ExecutorIncomplete,
    JobFenced,
    JobNotFound,
    JobNotInState,
)

DRIVER_ATTEMPTS_MAX = 3
"""Of a driver that crashes: what came from beside the work, want of memory for one, may have
passed; what comes again ends the job."""

CRASH_SAID_CHARACTERS_MAX = 500
"""Of the reason of a crash beside the progress of a driver: the log has all of it."""

FULL_DISK_S = 600.0
"""How long a driver waits for room. Then it ends, and the job waits for the next driver."""

FULL_DISK_REST_S = 1.0
"""Between two tries: what was staged is kept, so a try of a commit costs little."""


ENDED = (JobNotInState, JobNotFound)
"""The job was cancelled, or removed."""

LEFT_OPEN = (*PASSING, EngineLost, ExecutorIncomplete, DiskFull)
"""The daemon or the engine is away or not whole, or there is no room: another driver may go on
later."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

_LOG = logging.getLogger("dss_bulk")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a driver is."""

    chunks: int
    published: int
    records: int
    """That this driver published."""


OnProgress = Callable[[Progress], None]


class Engine(Protocol):
    """How the work of chunks is done."""

    @property
    def name(self) -> str:
        """The name of the engine, for operators."""
        ...

    @property
    def chunks_at_once(self) -> int:
        """How many chunks are worked on while the first of them waits for its commit."""
        ...

    def opened(self, job: Job) -> AbstractAsyncContextManager[None]:
        """What it needs while a job is driven.

        Raises:
            DssError: it cannot be had; the job waits for another driver.
        """
        ...

    def work_of(self, client: Client, granted: Granted) -> Work:
        """The work of a job's kind.

        Raises:
            DssError: its parameters cannot be followed.
        """
        ...


async def drive(
    client: Client, job: str, on_progress: OnProgress | None = None, *, engine: Engine
) -> Job:
    """Work off a job; returns it as it stands at the end.

    Raises:
        JobNotFound, JobNotInState, JobLeased: it cannot be driven.
        JobFenced: another driver took it.
        DriverCrashed: it failed, by an error that nobody expected.
        DssError: it failed, and was given up; or the daemon is away, and it was not.
    """
    async with client.jobs.drive(job, driver=whoami(engine)) as lease:
        for attempt in range(1, DRIVER_ATTEMPTS_MAX + 1):
            try:
                async with engine.opened(lease.job):
                    return await _attempt(client, lease, engine, on_progress or _silent)
            except (DssError, OSError):
                raise
            except Exception as crash:  # noqa: BLE001 -- whatever it is, the job must not hang
                await _crashed(lease, attempt, crash)
    raise AssertionError("the last attempt raises")


async def _attempt(client: Client, lease: Lease, engine: Engine, on_progress: OnProgress) -> Job:
    """Work off the chunks that are not published, to the end of the job.

    Raises:
        DssError, OSError: as of `drive`; the job was given up where it cannot be done.
    """
    try:
        work = engine.work_of(client, lease.granted)
    except DssError as error:
        await lease.give_up(error.message)
        raise
    try:
        await _work_off(work, lease, on_progress, engine.chunks_at_once)
    except (JobFenced, *LEFT_OPEN):
        raise
    except ENDED:
        work.discard()
        raise
    except (DssError, OSError) as error:
        work.discard()
        # Where the job is not its own any more, that is why, and there is nothing to give up.
        await lease.renew()
        await lease.give_up(_sentence(error))
        raise
    return await client.jobs.get(str(lease.job.job_id))


async def _crashed(lease: Lease, attempt: int, crash: Exception) -> None:
    """Take note of an error that nobody expected; with the last attempt the job fails.

    Raises:
        DriverCrashed: it was the last.
        JobFenced, JobNotInState, JobNotFound: the job is not this driver's any more.
    """
    reason = f"{type(crash).__name__}: {crash}"
    _LOG.error("attempt %d of %d crashed", attempt, DRIVER_ATTEMPTS_MAX, exc_info=crash)
    lease.said = json.dumps({"attempt": attempt, "crashed": reason[:CRASH_SAID_CHARACTERS_MAX]})
    await lease.renew()
    if attempt == DRIVER_ATTEMPTS_MAX:
        crashed = DriverCrashed(job=lease.job.name, attempts=attempt, reason=reason)
        await lease.give_up(crashed.message)
        raise crashed from crash


def whoami(engine: Engine) -> str:
    """The name of this driver, for operators."""
    return f"{engine.name}, host {socket.gethostname()}, pid {os.getpid()}"


def _sentence(error: DssError | OSError) -> str:
    """Why the job failed, as operators read it."""
    if isinstance(error, DssError):
        return error.message
    return f"{error.strerror or error}: {error.filename or 'the disk'}"


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A chunk that is worked on."""

    number: int
    work: asyncio.Task[ChunkDone]


async def _work_off(work: Work, lease: Lease, on_progress: OnProgress, chunks_at_once: int) -> None:
    """Work on chunks, some at once, and commit them in their order."""
    # What ends the work of a job that writes elsewhere finds all of the rest done.
    ends_alone = lease.granted.target is None
    progress = _Published(lease, on_progress)
    under_way: deque[_UnderWay] = deque()
    try:
        async for chunk in lease.open_chunks():
            if ends_alone and chunk.number == lease.job.chunks - 1:
                await _commit_down_to(0, under_way, progress)
            under_way.append(_UnderWay(chunk.number, _begun(work, chunk, lease)))
            await _commit_down_to(chunks_at_once - 1, under_way, progress)
        await _commit_down_to(0, under_way, progress)
    finally:
        if under_way:
            work.stop()
        # What threads still write has to be done before it is discarded.
        await asyncio.gather(*(each.work for each in under_way), return_exceptions=True)


async def _with_room(lease: Lease, act: Callable[[], Awaitable[T]]) -> T:
    """What the act gives, which is done again while there is no room for it.

    Raises:
        DiskFull: there was none for too long.
    """
    loop = asyncio.get_running_loop()
    until_s: float | None = None
    while True:
        began_s = loop.time()
        try:
            return await act()
        except (DiskFull, OSError) as refused:
            if isinstance(refused, OSError) and refused.errno not in _NO_ROOM:
                raise
            if lease.lost is not None:
                raise lease.lost from refused
            now_s = loop.time()
            # What took longer than the whole wait had room until then, or was paused.
            if until_s is None or now_s - began_s > FULL_DISK_S:
                until_s = now_s + FULL_DISK_S
            if now_s >= until_s:
                raise DiskFull from refused
        lease.said = json.dumps({"waits": "the disk is full"})
        await asyncio.sleep(FULL_DISK_REST_S)


def _begun(work: Work, chunk: JobChunk, lease: Lease) -> asyncio.Task[ChunkDone]:
    reads = partial(work.chunk, chunk, last=chunk.number == lease.job.chunks - 1)
    act = partial(lease.over_restarts, reads)
    return asyncio.create_task(_with_room(lease, act), name=f"chunk {chunk.number}")


async def _commit_down_to(left: int, under_way: deque[_UnderWay], published: "_Published") -> None:
    while len(under_way) > left:
        first = under_way[0]
        await published.commit(first.number, await published.unless_lost(first.work))
        under_way.popleft()


class _Published:
    """The totals that this driver has published."""

    def __init__(self, lease: Lease, on_progress: OnProgress) -> None:
        self._lease = lease
        self._tell = on_progress
        self._records = 0
        on_progress(Progress(lease.job.chunks, lease.job.published, 0))

    async def unless_lost(self, work: asyncio.Task[ChunkDone]) -> ChunkDone:
        """What came of a chunk; at once an error where the lease is lost meanwhile.

        Raises:
            JobFenced, JobNotInState, JobNotFound: it is lost.
            DssError, OSError: the chunk failed.
        """
        lost = asyncio.create_task(self._lease.wait_until_lost(), name="lease is lost")
        try:
            await asyncio.wait({work, lost}, return_when=asyncio.FIRST_COMPLETED)
            if self._lease.lost is not None:
                raise self._lease.lost
            return await work
        finally:
            lost.cancel()

    async def commit(self, chunk: int, done: ChunkDone) -> None:
        """Publish a chunk, and say so."""
        lease = self._lease
        commit = partial(lease.commit, chunk, done.files, output=done.output, records=done.records)
        await _with_room(lease, commit)
        self._records += done.records
        lease.said = json.dumps({"records": self._records})
        self._tell(Progress(lease.job.chunks, chunk + 1, self._records))


def _silent(_progress: Progress) -> None:
    """Nobody wants to know."""
