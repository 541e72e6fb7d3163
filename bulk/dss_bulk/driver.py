"""The driver of one job: takes its lease, and works through its chunks in order.

::

    drive ─Acquire─► work ─chunk─► commit ─► chunk ─► ... ─► the daemon says done
                       └ DssError ─► GiveUp: the job failed, with the sentence of the error
                       └ a full disk: again, once there is room
                       └ the daemon is away: again, once it is there
                       └ any other error: a crash. Again, some times; then GiveUp
    killed anywhere: nobody says anything; the lease runs out, and another driver goes on

An engine decides how the work of a chunk is done, here or on a cluster, and on how many chunks at
once; commits stay in order. This module knows and loads no engine.

Invariant: a committed chunk is never worked on again. A driver that lost its lease stops and says
so; it does not give up a job that another driver has.
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
"""How many crashes a driver survives: an outside cause, such as a lack of memory, may pass; a crash
that repeats ends the job."""

CRASH_SAID_CHARACTERS_MAX = 500
"""How much of a crash's reason is shown with the progress: the log has all of it."""

FULL_DISK_S = 600.0
"""How long a driver waits for room. After that it ends, and the job waits for the next driver."""

FULL_DISK_REST_S = 1.0
"""The pause between two tries: staged files are kept, so another try of a commit costs little."""


ENDED = (JobNotInState, JobNotFound)
"""The job was cancelled, or removed."""

LEFT_OPEN = (*PASSING, EngineLost, ExecutorIncomplete, DiskFull)
"""The daemon or the engine is away or incomplete, or there is no room: another driver may continue
later."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

_LOG = logging.getLogger("dss_bulk")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a driver."""

    chunks: int
    published: int
    records: int
    """Chunks that this driver published."""


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
        """Open what it needs while a job is driven.

        Raises:
            DssError: it is not available; the job waits for another driver.
        """
        ...

    def work_of(self, client: Client, granted: Granted) -> Work:
        """The work of a job's kind.

        Raises:
            DssError: its parameters are not usable.
        """
        ...


async def drive(
    client: Client, job: str, on_progress: OnProgress | None = None, *, engine: Engine
) -> Job:
    """Work through a job; returns its final state.

    Raises:
        JobNotFound, JobNotInState, JobLeased: it cannot be driven.
        JobFenced: another driver took it.
        DriverCrashed: it failed with an unexpected error.
        DssError: it failed and was given up; or the daemon is away, and it was not given up.
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
    """Work through the unpublished chunks, to the end of the job.

    Raises:
        DssError, OSError: as `drive`; the job was given up if it cannot be done.
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
        # If the lease is lost, that is the reason, and there is nothing to give up.
        await lease.renew()
        await lease.give_up(_sentence(error))
        raise
    return await client.jobs.get(str(lease.job.job_id))


async def _crashed(lease: Lease, attempt: int, crash: Exception) -> None:
    """Note an unexpected error; after the last attempt the job fails.

    Raises:
        DriverCrashed: it was the last attempt.
        JobFenced, JobNotInState, JobNotFound: the driver has lost the job.
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
    """The reason of the failure, for operators."""
    if isinstance(error, DssError):
        return error.message
    return f"{error.strerror or error}: {error.filename or 'the disk'}"


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A chunk under way."""

    number: int
    work: asyncio.Task[ChunkDone]


async def _work_off(work: Work, lease: Lease, on_progress: OnProgress, chunks_at_once: int) -> None:
    """Work on some chunks at once, and commit them in order."""
    # The last chunk of a job that writes elsewhere needs all others to be committed.
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
        # Writes of threads must end before their files are discarded.
        await asyncio.gather(*(each.work for each in under_way), return_exceptions=True)


async def _with_room(lease: Lease, act: Callable[[], Awaitable[T]]) -> T:
    """The result of the act, repeated while the disk has no room for it.

    Raises:
        DiskFull: there was no room for too long.
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
            # An act that took longer than the whole wait had room until then, or was paused.
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
        """The result of a chunk, or an error as soon as the lease is lost.

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
        """Publish a chunk, and report it."""
        lease = self._lease
        commit = partial(lease.commit, chunk, done.files, output=done.output, records=done.records)
        await _with_room(lease, commit)
        self._records += done.records
        lease.said = json.dumps({"records": self._records})
        self._tell(Progress(lease.job.chunks, chunk + 1, self._records))


def _silent(_progress: Progress) -> None:
    """Progress is not wanted."""
