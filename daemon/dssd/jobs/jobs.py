"""All bulk jobs: runs the machine of each, and the effects that come out of it.

::

    drivers ─▶ acquire, renew, commit, give up ─▶ step ─▶ store, log, staging
    operators ─▶ operations: rows ─▶ `changed` ─▶ step
    time ─▶ leases

Invariant: a job in memory is as its rows are. A chunk is published by one commit, which is on the
condition that neither its job nor the progress of that moved since the epoch was looked at; so a
driver that was fenced, and a job that was paused, publish nothing.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, NoReturn, assert_never

from dss_core.errors import (
    ChunkNotFound,
    DssError,
    IllegalArgument,
    JobFenced,
    JobLeased,
    JobNotFound,
    JobNotInState,
    TopicNotFound,
)
from dss_core.staged import StagedFile, StagedFor
from dssd.clock import Clock
from dssd.events.kinds import JOB_ENDED, JOB_FAILED, JOB_SILENT, JOB_TAKEN
from dssd.events.model import Event, Note
from dssd.jobs.frame_check import FrameCheck
from dssd.jobs.limits import (
    ACQUIRE_TOKEN_BYTES_MAX,
    CHUNK_OUTPUT_BYTES_MAX,
    DRIVER_BYTES_MAX,
    HOLD_PENDING_MS,
    PACE_LOOK_S,
    SAID_BYTES_MAX,
    TICK_S,
)
from dssd.jobs.model import ChunkResult, JobKind, Spec
from dssd.jobs.pacing import Pace
from dssd.jobs.staging import Staging, checked_frames
from dssd.log.port import Adopted, BulkLog, Publication
from dssd.log.port import Publish as PublishRows
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
    Granted,
    Input,
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
    Why,
    step,
)
from dssd.store.paging import scan_all
from dssd.store.port import Precondition, PreconditionFailed, Put, Store, VersionIs, Write
from dssd.store.rows import ChunkRow, JobProgressRow, JobRow
from dssd.store.uninterrupted import finished
from dssd.topics.catalogue import Catalogue
from dssd.topics.model import StorageTopic, Topic


class Granting(NamedTuple):
    """What a driver is told of its lease."""

    row: JobRow
    progress: JobProgressRow
    lease_ms: int
    staging: str
    target: tuple[Topic, StorageTopic] | None


class Chunk(NamedTuple):
    """What a driver commits."""

    chunk: int
    epoch: int
    files: tuple[StagedFile, ...]
    output: str


class JobView(NamedTuple):
    """A job as it stands, for operators."""

    row: JobRow
    progress: JobProgressRow
    driver_lives: bool
    said: str
    """What its driver said last of itself."""
    said_at_ms: int | None


@dataclass(slots=True, eq=False)
class _Job:
    row: JobRow
    progress: JobProgressRow
    state: JobState
    pace: Pace
    said: str = ""
    said_at_ms: int | None = None
    outcome: "asyncio.Future[ChunkResult] | None" = None
    """Of the chunk that is being published."""
    storing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while its rows change here."""


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
        self._catalogue = catalogue
        self._log = log
        self._staging = staging
        self._clock = clock
        self._note = note
        self._jobs: dict[int, _Job] = {}
        self._pending: dict[int, int] = {}
        """Jobs that are being made and hold something, and since when."""
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
        """Read what is kept, and sweep what is of no use."""
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

    def _enter(self, row: JobRow, progress: JobProgressRow) -> None:
        # A driver of before has as long to be heard again as any other has.
        lease = Lease(b"", self._clock.now_ms() + JOB_LEASE_MS) if progress.epoch else None
        phase = Phase(row.state)
        state = JobState(
            row.chunks, progress.published, progress.epoch, phase, None if phase in ENDED else lease
        )
        self._jobs[row.job_id] = _Job(row, progress, state, Pace(row.rate_bytes_s))

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

    async def chunks(self, name: str, after: int, limit: int) -> list[ChunkRow]:
        """Chunks of a job with numbers above ``after``.

        Raises:
            JobNotFound: there is none.
        """
        job_id = self._named(name).row.job_id
        key = (job_id, after) if after >= 0 else None
        found = await self._store.scan(ChunkRow, (job_id,), after=key, limit=limit)
        return [each.row for each in found]

    def _view(self, job: _Job) -> JobView:
        lives = job.state.lease is not None and self._clock.now_ms() < job.state.lease.until_ms
        return JobView(job.row, job.progress, lives, job.said, job.said_at_ms)

    def _named(self, name: str) -> _Job:
        for job in self._jobs.values():
            if name in (job.row.name, str(job.row.job_id)):
                return job
        raise JobNotFound(job=name)

    # What operators change

    def pending(self, job_id: int) -> None:
        """A job is being made, and holds something."""
        self._pending[job_id] = self._clock.now_ms()

    def made(self, row: JobRow, progress: JobProgressRow) -> None:
        """The commit of a new job is done."""
        self._pending.pop(row.job_id, None)
        self._enter(row, progress)

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

        Raises:
            JobNotFound, JobNotInState, JobLeased: it cannot have it.
        """
        _check_length("driver", driver.encode(), DRIVER_BYTES_MAX)
        _check_length("token", token, ACQUIRE_TOKEN_BYTES_MAX)
        if not token:
            raise IllegalArgument(argument="the token", rule="it is not empty")
        job = self._named(name)
        # A caller that goes away must not leave an epoch stored and not known here.
        return await finished(self._acquire(job, driver, token), name=f"acquire job {name}")

    async def _acquire(self, job: _Job, driver: str, token: bytes) -> Granting:
        effects = self._step(job, Acquire(token, self._clock.now_ms()))
        if effects and isinstance(effects[0], TakeEpoch):
            effects = await self._take(job, effects[0].epoch, driver)
        self._raise_refusal(job, effects, "be taken by a driver")
        epoch = job.state.epoch
        folder = await asyncio.to_thread(self._staging.prepare, job.row.job_id, epoch)
        return self._granting(job, str(folder))

    async def _take(self, job: _Job, epoch: int, driver: str) -> tuple[Effect, ...]:
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
        """Keep the lease of a driver, and what it says of itself.

        Raises:
            JobNotFound, JobNotInState, JobFenced: it has to stop.
        """
        _check_length("progress", said.encode(), SAID_BYTES_MAX)
        job = self._named(name)
        effects = self._step(job, Renew(epoch, self._clock.now_ms()))
        self._raise_refusal(job, effects, "go on", epoch)
        job.said, job.said_at_ms = said, self._clock.wall_ms()
        return self._view(job)

    async def give_up(self, name: str, epoch: int, why: str) -> JobView:
        """End the job as failed, as its driver says.

        Raises:
            JobNotFound, JobNotInState, JobFenced: it has no say.
        """
        _check_length("reason", why.encode(), SAID_BYTES_MAX)
        job = self._named(name)
        effects = self._step(job, GiveUp(epoch))
        self._raise_refusal(job, effects, "fail", epoch)
        await finished(self._fail(job, why), name=f"fail job {name}")
        return self._view(job)

    async def _fail(self, job: _Job, why: str) -> None:
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
            self._note(Event(JOB_FAILED, row.name, f"Its driver gave up: {why}."))
            self.changed(row)
            return

    # Publishing

    async def commit(self, name: str, chunk: Chunk) -> ChunkResult:
        """Publish a staged chunk, once; repeated, it answers what it answered first.

        Raises:
            JobNotFound, ChunkNotFound, JobNotInState, JobFenced: it is not published.
            StagedFileRefused, DiskFull, Overloaded, StorageTopicSealed, TopicNotFound: as before.
        """
        _check_length("output", chunk.output.encode(), CHUNK_OUTPUT_BYTES_MAX)
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
                raise self._refusal(job, effect.why, _asked(job, chunk), chunk.epoch, chunk.chunk)

    async def _turn_of(self, job: _Job, chunk: Chunk) -> None:
        """Return when the pace of the job lets the chunk be published, or it is refused anyway."""
        while True:
            _, effects = step(job.state, Commit(chunk.chunk, chunk.epoch))
            wait_ms = job.pace.wait_ms(self._clock.now_ms())
            if not isinstance(effects[0], Publish) or not wait_ms:
                return
            await asyncio.sleep(min(PACE_LOOK_S, wait_ms / 1_000))

    async def _first_answer(self, job: _Job, chunk: int) -> ChunkResult:
        found = await self._store.read(ChunkRow, (job.row.job_id, chunk))
        assert found is not None, "its manifest has it"
        return ChunkResult.from_json(found.row.result)

    async def _publish(
        self, job: _Job, chunk: Chunk, outcome: "asyncio.Future[ChunkResult]"
    ) -> ChunkResult:
        try:
            result = await self._published(job, chunk)
        except BaseException as error:
            self._step(job, NotPublished(chunk.chunk))
            if isinstance(error, PreconditionFailed):
                error = self._moved(job, chunk)
            outcome.set_exception(error)
            outcome.exception()  # nobody need have joined
            raise error from None
        outcome.set_result(result)
        return result

    def _moved(self, job: _Job, chunk: Chunk) -> Exception:
        """Why the rows of a job are not as they were when its chunk was begun."""
        if job.state.epoch != chunk.epoch:
            return _fenced(job, chunk.epoch)
        asked = f"publish chunk {chunk.chunk}"
        return JobNotInState(job=job.row.name, state=job.state.phase, asked=asked)

    async def _published(self, job: _Job, chunk: Chunk) -> ChunkResult:
        async with job.storing:
            publishing, conditions = await self._publishing(job, chunk)

            def publish(adopted: Adopted) -> Publication:
                return Publication(publishing.writes(adopted, self._clock.wall_ms()), conditions)

            if JobKind(job.row.kind).writes_topic:
                await self._adopt(job.row, chunk, publish)
            else:
                await self._store.commit(*publish(Adopted({}, 0, 0, 0, 0)))
            job.progress = publishing.progress
            if publishing.row.state == Phase.DONE:
                job.row = publishing.row
        result = publishing.result
        assert result is not None
        job.pace.spend(result.bytes, self._clock.now_ms())
        self._do_later(job, self._step(job, Published(chunk.chunk)))
        if job.state.phase is Phase.DONE:
            sentence = f"{job.progress.records:,} records were published."
            self._note(Event(JOB_ENDED, job.row.name, sentence))
        return result

    async def _publishing(
        self, job: _Job, chunk: Chunk
    ) -> tuple["_Publishing", Sequence[Precondition]]:
        """The rows to be written, and the condition that nobody has written them meanwhile."""
        key = (job.row.job_id,)
        row = await self._store.read(JobRow, key)
        progress = await self._store.read(JobProgressRow, key)
        found = await self._store.read(ChunkRow, (*key, chunk.chunk))
        if row is None or progress is None or found is None:
            raise JobNotFound(job=job.row.name)
        if progress.row.epoch != chunk.epoch or row.row.state != Phase.ACTIVE:
            raise self._moved(job, chunk)
        conditions = [
            VersionIs(JobRow, key, row.version),
            VersionIs(JobProgressRow, key, progress.version),
        ]
        return _Publishing(self._log, found.row, row.row, progress.row, chunk), conditions

    async def _adopt(self, row: JobRow, chunk: Chunk, publish: PublishRows) -> None:
        topic, part = self._target(row)
        folder = self._staging.of_epoch(row.job_id, chunk.epoch)
        staged_for = StagedFor(row.job_id, chunk.chunk, part.storage_topic_id)
        check = FrameCheck(topic, part)
        frames = partial(checked_frames, folder, row.name, chunk.files, staged_for, check)
        await self._log.adopt(
            part.storage_topic_id, frames, topic_epoch=topic.topic_epoch, publish=publish
        )

    def _target(self, row: JobRow) -> tuple[Topic, StorageTopic]:
        spec = Spec.from_json(row.spec)
        topic = self._catalogue.find(spec.target)
        if topic is None or topic.topic_id != row.target_topic_id:
            raise TopicNotFound(topic=spec.target)
        for part in topic.storage_topics:
            if part.storage_topic_id == row.target_storage_topic_id:
                return topic, part
        raise TopicNotFound(topic=spec.target)

    def _granting(self, job: _Job, folder: str) -> Granting:
        target = None
        if JobKind(job.row.kind).writes_topic:
            target = self._target(job.row)
        return Granting(job.row, job.progress, JOB_LEASE_MS, folder, target)

    # The machine

    def _step(self, job: _Job, given: Input) -> tuple[Effect, ...]:
        job.state, effects = step(job.state, given)
        return effects

    def _do_later(self, job: _Job, effects: Sequence[Effect]) -> None:
        """The effects that nobody waits for."""
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
                    pass  # whoever prepares an epoch sweeps those below
                case (
                    TakeEpoch()
                    | Granted()
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
        """Sweep in a thread; nobody waits, and what is left over the next start sweeps."""
        sweeping = asyncio.get_running_loop().run_in_executor(None, sweep)
        self._sweeping.add(sweeping)
        sweeping.add_done_callback(self._sweeping.discard)

    async def settle(self) -> None:
        """Return once nothing is being swept."""
        await asyncio.gather(*self._sweeping)

    def _raise_refusal(
        self, job: _Job, effects: Sequence[Effect], asked: str, epoch: int = 0
    ) -> None:
        for effect in effects:
            if isinstance(effect, Refuse):
                raise self._refusal(job, effect.why, asked, epoch)

    def _refusal(self, job: _Job, why: Why, asked: str, epoch: int, chunk: int = 0) -> DssError:
        name, state = job.row.name, job.state
        match why:
            case Why.FENCED:
                return _fenced(job, epoch)
            case Why.LEASED:
                until_ms = state.lease.until_ms if state.lease else self._clock.now_ms()
                left_ms = max(0, until_ms - self._clock.now_ms())
                return JobLeased(job=name, driver=job.progress.driver, left_ms=left_ms)
            case Why.NO_CHUNK:
                return ChunkNotFound(job=name, chunk=chunk, chunks=state.chunks)
            case Why.NOT_IN_PHASE | Why.OUT_OF_TURN:
                return JobNotInState(job=name, state=state.phase, asked=asked)
            case _:
                assert_never(why)

    async def run(self) -> NoReturn:
        """Look at leases, and at what is held for nobody, again and again."""
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


class _Publishing:
    """The rows of a chunk that is published."""

    def __init__(
        self, log: BulkLog, found: ChunkRow, row: JobRow, progress: JobProgressRow, chunk: Chunk
    ) -> None:
        self._log = log
        self._found = found
        self._chunk = chunk
        self.row = row
        self.progress = progress
        self.result: ChunkResult | None = None

    def writes(self, adopted: Adopted, now_ms: int) -> list[Write]:
        """What is committed with the records."""
        chunk, progress = self._chunk, self.progress
        self.result = ChunkResult(
            adopted.ranges, adopted.records, adopted.bytes, adopted.append_time_us, chunk.output
        )
        self.progress = replace(
            progress,
            published=progress.published + 1,
            records=progress.records + adopted.records,
            bytes=progress.bytes + adopted.bytes,
        )
        published = replace(
            self._found,
            epoch=chunk.epoch,
            result=self.result.to_json(),
            published_at_ms=now_ms,
        )
        writes: list[Write] = [Put(published), Put(self.progress)]
        if self.progress.published == self.row.chunks:
            self.row = ended(self.row, Phase.DONE, "", now_ms)
            writes += [Put(self.row), *self._log.release(self.row.job_id)]
        return writes


def ended(row: JobRow, phase: Phase, failure: str, now_ms: int) -> JobRow:
    """The row of a job that has ended."""
    return replace(row, state=phase.value, failure=failure, ended_at_ms=now_ms)


def _asked(job: _Job, chunk: Chunk) -> str:
    asked = f"publish chunk {chunk.chunk}"
    if job.state.phase is not Phase.ACTIVE:
        return asked
    return f"{asked} before chunk {job.state.published}"


def _fenced(job: _Job, epoch: int) -> JobFenced:
    return JobFenced(job=job.row.name, epoch=epoch, newest=job.state.epoch)


def _check_length(name: str, text: bytes, bytes_max: int) -> None:
    if len(text) > bytes_max:
        rule = f"it has {len(text):,} bytes, at most {bytes_max:,} are taken"
        raise IllegalArgument(argument=f"the {name}", rule=rule)
