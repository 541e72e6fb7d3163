"""All bulk jobs: runs the machine of each job, and carries out its effects.

::

    drivers ─▶ acquire, renew, commit, give up ─▶ step ─▶ store, log, staging
    operators ─▶ operations: rows ─▶ `changed` ─▶ step
    time ─▶ leases

Invariant: a job in memory equals its rows. One commit publishes a chunk. Its preconditions are the
versions of the job's row and progress row that the epoch was checked against, so a fenced driver
and a paused job publish nothing.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn, assert_never

from dss_core.errors import (
    IllegalArgument,
    JobNotFound,
)
from dssd.clock import Clock
from dssd.events.kinds import JOB_SILENT, JOB_TAKEN
from dssd.events.model import Event, Note
from dssd.jobs.held_job import (
    Granting,
    HeldJob,
    JobChunk,
    JobView,
    asked_for,
    check_length,
    end_of,
    ended,
    refusal,
)
from dssd.jobs.limits import ACQUIRE_TOKEN_BYTES_MAX, TICK_S
from dssd.jobs.model import ChunkResult, JobKind, Spec
from dssd.jobs.pacing import Pace
from dssd.jobs.publish_once import ChunkPublisher
from dssd.jobs.staging import Staging
from dssd.log.port import BulkLog
from dssd.machines.job import (
    ENDED,
    JOB_LEASE_MS,
    Acquire,
    AnswerFirst,
    Commit,
    Effect,
    EpochNotStored,
    EpochStored,
    GiveUp,
    Input,
    JobGranted,
    JobState,
    Join,
    Lease,
    NotPublished,
    Phase,
    PhaseStored,
    Publish,
    Published,
    Refuse,
    Renew,
    StoreFailed,
    SweepAll,
    SweepChunk,
    SweepEpochsBelow,
    TakeEpoch,
    TellSilent,
    Tick,
    step,
)
from dssd.store.job_rows import ChunkRow, JobProgressRow, JobRow
from dssd.store.paging import scan_all
from dssd.store.port import PreconditionFailed, Put, Store, VersionIs, Write
from dssd.store.uninterrupted import finished
from dssd.topics.catalogue import Catalogue

CHUNK_OUTPUT_BYTES_MAX = 64 << 10
"""Length of a driver's description of a chunk that it wrote elsewhere."""

DRIVER_BYTES_MAX = 256
SAID_BYTES_MAX = 4 << 10
"""Length of a driver's status in each renewal."""

PACE_LOOK_S = 1.0
"""How soon a waiting driver learns of a pause or a cancellation."""

HOLD_PENDING_MS = 60_000
"""How long records stay held for a job whose creation was not reported as committed."""

END_TOLD_LATE_MS = 60_000
"""A job that ended so long before the newest kept event has its own event already: events are
written in order, about a second after they come, or later if the store refuses."""


class Jobs:
    """Built by `open`; `run` is a task."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        log: BulkLog,
        staging: Staging,
        clock: Clock,
        note: Note,
    ) -> None:
        self._store = store
        self._log = log
        self._staging = staging
        self._publisher = ChunkPublisher(store, catalogue, log, staging, clock)
        self._clock = clock
        self._note = note
        self._jobs: dict[int, HeldJob] = {}
        self._pending: dict[int, int] = {}
        """Jobs under creation that hold records, with their start times."""
        self._sweeping: set[asyncio.Future[None]] = set()

    @classmethod
    async def open(
        cls,
        store: Store,
        catalogue: Catalogue,
        log: BulkLog,
        staging: Staging,
        clock: Clock,
        note: Note,
    ) -> "Jobs":
        """Read the jobs, and sweep staged files that no job needs."""
        jobs = cls(store, catalogue, log, staging, clock, note)
        progress = {one.row.job_id: one.row for one in await scan_all(store, JobProgressRow)}
        for found in await scan_all(store, JobRow):
            jobs._enter(found.row, progress[found.row.job_id])
        running = {
            job_id: job.progress.epoch
            for job_id, job in jobs._jobs.items()
            if job.state.phase not in ENDED
        }
        await asyncio.to_thread(staging.sweep, running)
        return jobs

    def tell_ends(self, since_ms: int) -> None:
        """Tell the ends of jobs since about this time: a kill may have come before their events.

        Events that are kept already are not kept again.
        """
        for job in self._jobs.values():
            if (job.row.ended_at_ms or 0) > since_ms - END_TOLD_LATE_MS:
                self._tell_end(job)

    def _tell_end(self, job: HeldJob) -> None:
        event = end_of(job)
        if event is not None:
            self._note(event)

    def _enter(self, row: JobRow, progress: JobProgressRow) -> None:
        # A driver from before the restart has a full lease to report again. One from before a
        # restore is fenced, and no longer named.
        is_driven = progress.epoch and progress.driver
        lease = Lease(b"", self._clock.now_ms() + JOB_LEASE_MS) if is_driven else None
        phase = Phase(row.state)
        state = JobState(
            row.chunks, progress.published, progress.epoch, phase, None if phase in ENDED else lease
        )
        self._jobs[row.job_id] = HeldJob(row, progress, state, Pace(row.rate_bytes_s))

    # What is asked

    def all(self) -> list[JobView]:
        """All jobs, the oldest first."""
        return [self._view(job) for job in self._jobs.values()]

    def get(self, name: str) -> JobView:
        """A job by its name, or by its number.

        Raises:
            JobNotFound: there is none.
        """
        return self._view(self._named(name))

    def topics_of(self, name: str) -> tuple[str, str] | None:
        """Source and target of a job, each perhaps empty; None where there is no such job."""
        try:
            spec = Spec.from_json(self._named(name).row.spec)
        except JobNotFound:
            return None
        return spec.source, spec.target

    def dead_letters_of(self, name: str) -> str:
        """The group whose dead letters a job reads; empty: none, or there is no such job."""
        try:
            return Spec.from_json(self._named(name).row.spec).dead_letters
        except JobNotFound:
            return ""

    def find(self, name: str) -> JobView | None:
        """A job by its name, if there is one."""
        found = (job for job in self._jobs.values() if job.row.name == name)
        job = next(found, None)
        return None if job is None else self._view(job)

    def using(self, topic_id: int) -> list[str]:
        """Names of the jobs that have not ended and read or write a topic."""
        return [
            job.row.name
            for job in self._jobs.values()
            if job.state.phase not in ENDED
            and topic_id in (job.row.source_topic_id, job.row.target_topic_id)
        ]

    def reading_dead(self, group: str) -> list[str]:
        """Names of the jobs that have not ended and read dead letters of a group."""
        return [
            job.row.name
            for job in self._jobs.values()
            if job.state.phase not in ENDED and Spec.from_json(job.row.spec).dead_letters == group
        ]

    def writing(self, topic_id: int) -> list[str]:
        """Names of the jobs that have not ended and write a topic."""
        return [
            job.row.name
            for job in self._jobs.values()
            if job.state.phase not in ENDED and job.row.target_topic_id == topic_id
        ]

    async def chunks(self, name: str, after: int, limit: int) -> list[ChunkRow]:
        """Chunks of a job with numbers above ``after``.

        Raises:
            JobNotFound: there is none.
        """
        job_id = self._named(name).row.job_id
        key = (job_id, after) if after >= 0 else None
        found = await self._store.scan(ChunkRow, (job_id,), after=key, limit=limit)
        return [each.row for each in found]

    def _view(self, job: HeldJob) -> JobView:
        lives = job.state.lease is not None and self._clock.now_ms() < job.state.lease.until_ms
        return JobView(job.row, job.progress, lives, job.said, job.said_at_ms)

    def _named(self, name: str) -> HeldJob:
        for job in self._jobs.values():
            if name in (job.row.name, str(job.row.job_id)):
                return job
        raise JobNotFound(job=name)

    # What operators change

    def pending(self, job_id: int) -> None:
        """Note a job under creation that holds records."""
        self._pending[job_id] = self._clock.now_ms()

    def made(self, row: JobRow, progress: JobProgressRow) -> None:
        """The commit of a new job is done."""
        self._pending.pop(row.job_id, None)
        self._enter(row, progress)
        self._tell_end(self._jobs[row.job_id])

    def changed(self, row: JobRow) -> None:
        """The commit of a change of the row is done."""
        job = self._jobs[row.job_id]
        job.row = row
        self._do_later(job, self._step(job, PhaseStored(Phase(row.state))))

    def removed(self, job_id: int) -> None:
        """The commit that removes the job is done."""
        self._log.released(job_id)
        self._jobs.pop(job_id, None)

    # What drivers ask

    async def acquire(self, name: str, driver: str, token: bytes) -> Granting:
        """Give the job to a driver; repeated with the same token, it answers the same.

        Raises: JobNotFound, JobNotInState, JobLeased: it cannot have it.
        """
        check_length("driver", driver.encode(), DRIVER_BYTES_MAX)
        check_length("token", token, ACQUIRE_TOKEN_BYTES_MAX)
        if not token:
            raise IllegalArgument(argument="the token", rule="it is not empty")
        job = self._named(name)
        # A cancelled caller must not leave an epoch that is stored but unknown in memory.
        return await finished(self._acquire(job, driver, token), name=f"acquire job {name}")

    async def _acquire(self, job: HeldJob, driver: str, token: bytes) -> Granting:
        effects = self._step(job, Acquire(token, self._clock.now_ms()))
        if effects and isinstance(effects[0], TakeEpoch):
            self._do_later(job, effects[1:])
            effects = await self._take(job, effects[0].epoch, driver)
        self._raise_refusal(job, effects, "be taken by a driver")
        epoch = job.state.epoch
        folder = await asyncio.to_thread(self._staging.prepare, job.row.job_id, epoch)
        return self._granting(job, str(folder))

    async def _take(self, job: HeldJob, epoch: int, driver: str) -> tuple[Effect, ...]:
        async with job.storing:
            progress = replace(job.progress, epoch=epoch, driver=driver)
            try:
                await self._store.commit([Put(progress)])
            except BaseException:
                self._step(job, EpochNotStored())
                raise
            job.progress = progress
        effects = self._step(job, EpochStored(epoch, self._clock.now_ms()))
        sentence = f"{driver} works on the job, as its driver number {epoch}."
        self._note(Event(JOB_TAKEN, job.row.name, sentence, {"epoch": str(epoch)}))
        return effects

    def renew(self, name: str, epoch: int, said: str) -> JobView:
        """Renew the lease of a driver, and keep its status.

        Raises:
            JobNotFound, JobNotInState, JobFenced: it has to stop.
        """
        check_length("progress", said.encode(), SAID_BYTES_MAX)
        job = self._named(name)
        effects = self._step(job, Renew(epoch, self._clock.now_ms()))
        self._raise_refusal(job, effects, "go on", epoch)
        job.said, job.said_at_ms = said, self._clock.wall_ms()
        return self._view(job)

    def staging_of(self, name: str, epoch: int) -> Path:
        """The staging directory of the driver of an epoch. An upload counts as a sign of life.

        Raises:
            JobNotFound, JobNotInState, JobFenced: it has to stop.
        """
        job = self._named(name)
        effects = self._step(job, Renew(epoch, self._clock.now_ms()))
        self._raise_refusal(job, effects, "go on", epoch)
        return self._staging.of_epoch(job.row.job_id, epoch)

    async def give_up(self, name: str, epoch: int, why: str) -> JobView:
        """End the job as failed, as its driver says.

        Raises:
            JobNotFound, JobNotInState, JobFenced: it has no say.
        """
        check_length("reason", why.encode(), SAID_BYTES_MAX)
        job = self._named(name)
        effects = self._step(job, GiveUp(epoch))
        self._raise_refusal(job, effects, "fail", epoch)
        await finished(self._fail(job, why), name=f"fail job {name}")
        return self._view(job)

    async def _fail(self, job: HeldJob, why: str) -> None:
        while True:
            found = await self._store.read(JobRow, (job.row.job_id,))
            if found is None or Phase(found.row.state) in ENDED:
                return
            row = ended(found.row, Phase.FAILED, why, self._clock.wall_ms())
            writes: list[Write] = [Put(row), *self._log.release(row.job_id)]
            try:
                await self._store.commit(writes, [VersionIs(JobRow, (row.job_id,), found.version)])
            except PreconditionFailed:
                continue
            self.changed(row)
            self._tell_end(job)
            return

    # Publishing

    async def commit(self, name: str, chunk: JobChunk) -> ChunkResult:
        """Publish a staged chunk once; a repeated call gets the first answer.

        Raises:
            JobNotFound, ChunkNotFound, JobNotInState, JobFenced: it is not published.
            StagedFileRefused, DiskFull, Overloaded, StorageTopicSealed, TopicNotFound: as before.
        """
        check_length("output", chunk.output.encode(), CHUNK_OUTPUT_BYTES_MAX)
        job = self._named(name)
        await self._turn_of(job, chunk)
        effects = self._step(job, Commit(chunk.chunk, chunk.epoch))
        match effects[0]:
            case Publish():
                job.outcome = asyncio.get_running_loop().create_future()
                work = self._publish(job, chunk, job.outcome)
                return await finished(work, name=f"publish chunk {chunk.chunk} of {name}")
            case Join():
                assert job.outcome is not None
                return await asyncio.shield(job.outcome)
            case AnswerFirst():
                return await self._first_answer(job, chunk.chunk)
            case effect:
                assert isinstance(effect, Refuse), effect
                raise refusal(
                    job,
                    effect.why,
                    asked_for(job, chunk),
                    chunk.epoch,
                    self._clock.now_ms(),
                    chunk.chunk,
                )

    async def _turn_of(self, job: HeldJob, chunk: JobChunk) -> None:
        """Wait until the rate of the job allows the chunk, or the chunk would be refused anyway."""
        while True:
            _, effects = step(job.state, Commit(chunk.chunk, chunk.epoch))
            wait_ms = job.pace.wait_ms(self._clock.now_ms())
            if not isinstance(effects[0], Publish) or not wait_ms:
                return
            await asyncio.sleep(min(PACE_LOOK_S, wait_ms / 1_000))

    async def _first_answer(self, job: HeldJob, chunk: int) -> ChunkResult:
        found = await self._store.read(ChunkRow, (job.row.job_id, chunk))
        assert found is not None, "its manifest has it"
        return ChunkResult.from_json(found.row.result)

    async def _publish(
        self, job: HeldJob, chunk: JobChunk, outcome: "asyncio.Future[ChunkResult]"
    ) -> ChunkResult:
        try:
            result = await self._published(job, chunk)
        except BaseException as error:
            self._step(job, NotPublished(chunk.chunk))
            outcome.set_exception(error)
            outcome.exception()  # marks it as retrieved: perhaps no repeated call waits for it
            raise
        outcome.set_result(result)
        return result

    async def _published(self, job: HeldJob, chunk: JobChunk) -> ChunkResult:
        began_ms = self._clock.now_ms()
        async with job.storing:
            rows = await self._publisher.publish(job, chunk)
            job.progress = rows.progress
            if rows.row.state == Phase.DONE:
                job.row = rows.row
        result = rows.result
        assert result is not None
        job.pace.spend(result.bytes, began_ms)
        self._do_later(job, self._step(job, Published(chunk.chunk)))
        self._tell_end(job)
        return result

    def _granting(self, job: HeldJob, folder: str) -> Granting:
        target = None
        if JobKind(job.row.kind).writes_topic:
            target = self._publisher.target(job.row)
        return Granting(job.row, job.progress, JOB_LEASE_MS, folder, target)

    # The machine

    def _step(self, job: HeldJob, given: Input) -> tuple[Effect, ...]:
        job.state, effects = step(job.state, given)
        return effects

    def _do_later(self, job: HeldJob, effects: Sequence[Effect]) -> None:
        """Carry out effects that no caller waits for."""
        staging, job_id = self._staging, job.row.job_id
        for effect in effects:
            match effect:
                case SweepAll():
                    self._log.released(job_id)
                    self._sweep(partial(staging.sweep_job, job_id))
                case SweepChunk(chunk):
                    epoch = job.progress.epoch
                    self._sweep(partial(staging.sweep_chunk, job_id, epoch, chunk))
                case TellSilent():
                    driver = job.progress.driver
                    sentence = f"Its driver {driver} is silent: another one may go on."
                    self._note(Event(JOB_SILENT, job.row.name, sentence))
                case SweepEpochsBelow():
                    pass  # preparing an epoch sweeps the lower ones
                case (
                    TakeEpoch()
                    | JobGranted()
                    | Publish()
                    | AnswerFirst()
                    | Join()
                    | StoreFailed()
                    | Refuse()
                ):
                    raise AssertionError(f"somebody waits for {effect}")
                case _:
                    assert_never(effect)

    def _sweep(self, sweep: Callable[[], None]) -> None:
        """Sweep in a thread, without waiting; the next start sweeps what remains."""
        sweeping = asyncio.get_running_loop().run_in_executor(None, sweep)
        self._sweeping.add(sweeping)
        sweeping.add_done_callback(self._sweeping.discard)

    async def settle(self) -> None:
        """Wait until all sweeps are done."""
        await asyncio.gather(*self._sweeping)

    def _raise_refusal(
        self, job: HeldJob, effects: Sequence[Effect], asked: str, epoch: int = 0
    ) -> None:
        for effect in effects:
            if isinstance(effect, Refuse):
                raise refusal(job, effect.why, asked, epoch, self._clock.now_ms())

    async def run(self) -> NoReturn:
        """Check leases and abandoned holds, again and again."""
        while True:
            await asyncio.sleep(TICK_S)
            self.tick()

    def tick(self) -> None:
        """One look."""
        now_ms = self._clock.now_ms()
        for job in self._jobs.values():
            self._do_later(job, self._step(job, Tick(now_ms)))
        for job_id, since_ms in list(self._pending.items()):
            if now_ms - since_ms > HOLD_PENDING_MS:
                del self._pending[job_id]
                self._log.released(job_id)
