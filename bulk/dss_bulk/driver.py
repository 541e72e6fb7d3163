"""The driver of one job: takes its lease, and works off its chunks in their order.

::

    drive ─Acquire─► work ─chunk─► commit ─► chunk ─► ... ─► the daemon says done
                       └ DssError ─► GiveUp: the job failed, with the sentence of the error
    killed anywhere: nobody says anything; the lease runs out, and another driver goes on

Invariant: what was committed is never worked on again. A driver that lost its lease stops and
says so; it gives up nothing that is another one's.
"""

import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

from dss_bulk.audit_work import AuditWork
from dss_bulk.backfill_work import BackfillWork
from dss_bulk.export_work import ExportWork
from dss_bulk.replay_work import ReplayWork
from dss_bulk.work import Work
from dss_client import Client
from dss_client.job_values import Granted, Job
from dss_client.jobs import Lease
from dss_core.errors import (
    DssError,
    IllegalJob,
    JobFenced,
    JobNotFound,
    JobNotInState,
    OutcomeUnknown,
    Unreachable,
)

ENDED = (JobNotInState, JobNotFound)
"""The job was cancelled, or removed."""

PASSING = (OutcomeUnknown, Unreachable)
"""The daemon is away: another driver may go on later."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a driver is."""

    chunks: int
    published: int
    records: int
    """That this driver published."""


OnProgress = Callable[[Progress], None]


async def drive(client: Client, job: str, on_progress: OnProgress | None = None) -> Job:
    """Work off a job; returns it as it stands at the end.

    Raises:
        JobNotFound, JobNotInState, JobLeased: it cannot be driven.
        JobFenced: another driver took it.
        DssError: it failed, and was given up; or the daemon is away, and it was not.
    """
    async with client.jobs.drive(job, driver=whoami()) as lease:
        try:
            work = work_of(client, lease.granted)
        except DssError as error:
            await lease.give_up(error.message)
            raise
        try:
            await _work_off(work, lease, on_progress or _silent)
        except (JobFenced, *PASSING):
            raise
        except ENDED:
            work.discard()
            raise
        except (DssError, OSError) as error:
            work.discard()
            await lease.give_up(_sentence(error))
            raise
        return await client.jobs.get(str(lease.job.job_id))


def whoami() -> str:
    """What operators read of this driver."""
    return f"local engine, host {socket.gethostname()}, pid {os.getpid()}"


def _sentence(error: DssError | OSError) -> str:
    """Why the job failed, as operators read it."""
    if isinstance(error, DssError):
        return error.message
    return f"{error.strerror or error}: {error.filename or 'the disk'}"


async def _work_off(work: Work, lease: Lease, on_progress: OnProgress) -> None:
    chunks, records = lease.job.chunks, 0
    on_progress(Progress(chunks, lease.job.published, 0))
    async for chunk in lease.open_chunks():
        if lease.lost is not None:
            raise lease.lost
        done = await work.chunk(chunk, last=chunk.number == chunks - 1)
        await lease.commit(chunk.number, done.files, output=done.output)
        records += done.records
        lease.said = json.dumps({"records": records})
        on_progress(Progress(chunks, chunk.number + 1, records))


def work_of(client: Client, granted: Granted) -> Work:
    """The work of a job's kind.

    Raises:
        DssError: its parameters cannot be followed.
    """
    match granted.job.kind:
        case "replay":
            return ReplayWork(client, granted)
        case "export":
            return ExportWork(client, granted)
        case "backfill":
            return BackfillWork(granted)
        case "audit":
            return AuditWork(client, granted)
        case kind:
            raise IllegalJob(job=granted.job.name, rule=f"the local engine makes no {kind}")


def _silent(_progress: Progress) -> None:
    """Nobody wants to know."""
