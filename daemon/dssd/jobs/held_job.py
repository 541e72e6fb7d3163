"""A bulk job in memory, and the conditions that refuse a request to it.

Invariant: values and functions of values; nothing here changes a job or knows the store.
"""

import asyncio
from dataclasses import dataclass, field, replace
from typing import NamedTuple, assert_never

from dss_core.counted import counted
from dss_core.errors import (
    ChunkNotFound,
    DssError,
    IllegalArgument,
    JobFenced,
    JobLeased,
    JobNotInState,
    JobRestored,
)
from dss_core.limits import RESTORE_EPOCHS_RAISED
from dss_core.sentences import as_sentence
from dss_core.staged import StagedFile
from dss_core.times import text_of_span
from dssd.events.kinds import JOB_ENDED, JOB_FAILED
from dssd.events.model import Event
from dssd.jobs.model import ChunkResult
from dssd.jobs.pacing import Pace
from dssd.machines.job import JobState, Phase, Why
from dssd.store.job_rows import JobProgressRow, JobRow
from dssd.topics.model import StorageTopic, Topic


class Granting(NamedTuple):
    """The answer to a driver that acquired the job."""

    row: JobRow
    progress: JobProgressRow
    lease_ms: int
    staging: str
    target: tuple[Topic, StorageTopic] | None


class JobChunk(NamedTuple):
    """What a driver commits."""

    chunk: int
    epoch: int
    files: tuple[StagedFile, ...]
    output: str
    records: int = 0
    """The count of records by its driver, if the job writes to no topic."""


class JobView(NamedTuple):
    """A job as it stands, for operators."""

    row: JobRow
    progress: JobProgressRow
    driver_lives: bool
    said: str
    """The latest status that its driver reported."""
    said_at_ms: int | None


@dataclass(slots=True, eq=False)
class HeldJob:
    """One job, in memory."""

    row: JobRow
    progress: JobProgressRow
    state: JobState
    pace: Pace
    said: str = ""
    said_at_ms: int | None = None
    outcome: "asyncio.Future[ChunkResult] | None" = None
    """Of the chunk that is being published."""
    storing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while this process changes its rows."""


def ended(row: JobRow, phase: Phase, failure: str, now_ms: int) -> JobRow:
    """The row of a job that has ended."""
    return replace(row, state=phase.value, failure=failure, ended_at_ms=now_ms)


def end_of(job: HeldJob) -> Event | None:
    """The event of the end of a job; None if it has not ended, or an operation cancelled it, which
    has its own event.

    Told again, for instance after a restart, it is the same event.
    """
    row, fields = job.row, {"job": str(job.row.job_id)}
    match Phase(row.state):
        case Phase.DONE:
            sentence = f"{counted(job.progress.records, 'record')}: all of its chunks are done."
            return Event(JOB_ENDED, row.name, sentence, fields)
        case Phase.FAILED:
            return Event(
                JOB_FAILED, row.name, as_sentence(f"Its driver gave up: {row.failure}"), fields
            )
        case Phase.ACTIVE | Phase.PAUSED | Phase.CANCELLED:
            return None
        case phase:
            assert_never(phase)


def refusal(
    job: HeldJob, why: Why, asked: str, epoch: int, now_ms: int, chunk: int = 0
) -> DssError:
    """The condition that tells a caller why."""
    name, state = job.row.name, job.state
    match why:
        case Why.FENCED:
            return fenced(job, epoch)
        case Why.LEASED:
            until_ms = state.lease.until_ms if state.lease else now_ms
            left_ms = max(0, until_ms - now_ms)
            left = text_of_span(left_ms)
            return JobLeased(job=name, driver=job.progress.driver, left=left, left_ms=left_ms)
        case Why.NO_CHUNK:
            return ChunkNotFound(job=name, chunk=chunk, chunks=state.chunks)
        case Why.NOT_IN_PHASE | Why.OUT_OF_TURN:
            return JobNotInState(job=name, state=state.phase, asked=asked)
        case _:
            assert_never(why)


def asked_for(job: HeldJob, chunk: JobChunk) -> str:
    """What the commit of a chunk asks, for people."""
    asked = f"publish chunk {chunk.chunk}"
    if job.state.phase is not Phase.ACTIVE:
        return asked
    return f"{asked} before chunk {job.state.published}"


def moved(row: JobRow, progress: JobProgressRow, chunk: JobChunk) -> DssError | None:
    """The condition that keeps a chunk from being published under the present rows of its job;
    None: it may be."""
    if progress.epoch != chunk.epoch:
        return _fenced(row.name, chunk.epoch, progress.epoch)
    if row.state == Phase.ACTIVE:
        return None
    return JobNotInState(job=row.name, state=row.state, asked=f"publish chunk {chunk.chunk}")


def fenced(job: HeldJob, epoch: int) -> JobFenced:
    """The condition for a driver whose epoch is too low, or is from before a restore."""
    return _fenced(job.row.name, epoch, job.state.epoch)


def _fenced(name: str, epoch: int, newest: int) -> JobFenced:
    condition = JobRestored if newest - epoch >= RESTORE_EPOCHS_RAISED else JobFenced
    return condition(job=name, epoch=epoch, newest=newest)


def check_length(name: str, text: bytes, bytes_max: int) -> None:
    """Check a text of a driver.

    Raises:
        IllegalArgument: it is too long.
    """
    if len(text) > bytes_max:
        rule = f"it has {len(text):,} bytes, at most {bytes_max:,} are taken"
        raise IllegalArgument(argument=f"the {name}", rule=rule)
