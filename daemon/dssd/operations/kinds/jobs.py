"""Bulk jobs as operators change them: made, paused, resumed, cancelled, removed.

One commit makes a job: its row, its manifest, and its holds on the streams that it reads.
Invariant: the job is made exactly as planned; its ranges are resolved when it is planned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dss_core.changes import CancelJob, CreateJob, PauseJob, RemoveJob, ResumeJob, SourceRange
from dss_core.counted import counted
from dss_core.errors import (
    CopyLoop,
    IllegalJob,
    JobExists,
    JobNotFound,
    JobNotInState,
    OffsetOutOfRange,
    SourceGone,
    TooManyJobs,
)
from dss_core.filters import TopicFilter, check_name
from dss_core.ids import StreamId
from dss_core.limits import COPY_HOPS_MAX
from dss_core.progress import Range
from dssd.clock import Clock
from dssd.jobs.held_job import JobView, ended
from dssd.jobs.jobs import Jobs
from dssd.jobs.limits import HOPS_DEFAULT, RATE_BYTES_S_MIN
from dssd.jobs.model import ChunkInput, JobKind, PlannedChunk, Spec
from dssd.jobs.planner import Measured, cut
from dssd.leaders.dead_letters import DeadLetterPlaces
from dssd.log.port import BulkLog
from dssd.loop_yield import LoopTurn
from dssd.machines.job import ENDED, Phase
from dssd.operations.kinds.dead_letters_read import DeadLettersOfJobs, effects_on_dead_letters
from dssd.operations.kinds.final import Final
from dssd.operations.plans import EVERYTHING, Begun, Plan
from dssd.store.job_rows import ChunkRow, JobNameRow, JobProgressRow, JobRow
from dssd.store.paging import scan_all
from dssd.store.port import Absent, Delete, Put, Store, VersionIs, Write
from dssd.store.rows import OperationRow
from dssd.topics.catalogue import Catalogue, Topic
from dssd.topics.located import located

JOBS_MAX = 512
"""How many jobs are kept, ended ones included: each has a manifest in the store."""

CHUNKS_MAX = 8_192
"""How many chunks a job may have: they are made in one commit."""

CHUNK_BYTES_USUAL = 32 << 20
"""The default size of a chunk: publishing it holds producers of the target up for some tens of
milliseconds."""

CHUNK_PLANNED_BYTES_MAX = 128 << 20
"""Half of what a chunk may publish: copies have more headers than their originals."""

CHUNK_BYTES_MIN = 64 << 10

CHUNK_INPUT_BYTES_MAX = 8 << 10
"""The bound on the description of a chunk by another source: some files and rows of them."""

INPUTS_BYTES_MAX = 2 << 20
"""The bound on all such descriptions of a job: they come in one message."""

PARAMS_BYTES_MAX = 64 << 10
"""The bound on further parameters for its driver."""

STATED_BYTES_S = 64 << 20
"""The rate that a plan assumes if none is given: what two cores publish (measured)."""


@dataclass(frozen=True, slots=True)
class _Manifest:
    """The ranges and chunks that a plan of a job found."""

    source: Topic | None
    target: Topic | None
    chunks: tuple[PlannedChunk, ...]

    @property
    def records(self) -> int:
        """How many records it reads, at most."""
        return sum(chunk.records for chunk in self.chunks)

    @property
    def bytes(self) -> int:
        """About how many bytes it reads."""
        return sum(chunk.bytes for chunk in self.chunks)


class JobCreations(Final):
    """New jobs."""

    def __init__(
        self,
        jobs: Jobs,
        catalogue: Catalogue,
        log: BulkLog,
        store: Store,
        clock: Clock,
        dead_letters: DeadLetterPlaces,
    ) -> None:
        self._jobs = jobs
        self._catalogue = catalogue
        self._log = log
        self._store = store
        self._clock = clock
        self._dead_letters = DeadLettersOfJobs(dead_letters, log)

    async def plan(self, change: CreateJob) -> Plan:
        """What the job would read, in how many chunks, and what order holds.

        Raises:
            IllegalJob, IllegalName, IllegalFilter, JobExists, TopicNotFound, CopyLoop, SourceGone,
                TooManyJobs: it cannot be made.
            GroupNotFound, GroupAmbiguous, NoneIsDead, NothingDead, TopicNotInGroup,
                DeadLettersScattered: it cannot be made of dead letters.
        """
        self._check(change)
        kind = JobKind(change.kind)
        source = self._catalogue.get(change.source) if kind.reads_topic else None
        target = self._catalogue.get(change.target) if kind.writes_topic else None
        if source is not None and source is target and not change.allow_loop:
            raise CopyLoop(job=change.name, topic=source.name)
        if source is None:
            resolved, chunks = change, _chunks_of_inputs(change)
        else:
            if change.dead_letters:
                resolved, measured = await self._dead_letters.resolved(change, source)
            else:
                ranges = change.ranges or await self._ranges(change, source)
                resolved = replace(change, ranges=ranges, start_us=None, end_us=None)
                measured = await self._measured(resolved, source)
            chunks = _chunks(resolved, measured)
        manifest = _Manifest(source, target, chunks)
        size = counted(manifest.records, "record")
        return Plan(
            change=resolved,
            kind="jobs.create",
            subject=change.name,
            revision=0,
            summary=f"make the {kind} {change.name}: {size} in {counted(len(chunks), 'chunk')}",
            effects=tuple(_effects(resolved, manifest)),
            not_undoable_because=f"cancel the job instead: dssctl jobs cancel {change.name}",
            found=manifest,
            touches=() if target is None else (target.name,),
        )

    def _check(self, change: CreateJob) -> None:
        check_name(change.name)
        if change.kind not in {kind.value for kind in JobKind}:
            rule = f"its kind is one of {', '.join(JobKind)}"
            raise IllegalJob(job=change.name, rule=rule)
        if self._jobs.find(change.name) is not None:
            raise JobExists(job=change.name)
        if len(self._jobs.all()) >= JOBS_MAX:
            raise TooManyJobs(limit=JOBS_MAX)
        if change.filter:
            TopicFilter.parse(change.filter)
        rule = _broken_rule(change)
        if rule:
            raise IllegalJob(job=change.name, rule=rule)

    async def _ranges(self, change: CreateJob, source: Topic) -> tuple[SourceRange, ...]:
        """The offset ranges of the given times; never empty, which would mean all records."""
        found = [
            SourceRange(
                str(self._catalogue.name_of(each.stream)), *each.stream, each.start, each.end
            )
            async for each in located(self._log, source, change.start_us, change.end_us)
        ]
        return tuple(each for each in found if each.start < each.end) or tuple(found[:1])

    async def _measured(self, change: CreateJob, source: Topic) -> list[Measured]:
        measured: list[Measured] = []
        streams = dict.fromkeys(source.streams())
        turn = LoopTurn()
        # Callers need not name ranges in order: older storage topics, of lower ids, come first.
        for each in sorted(change.ranges, key=lambda each: (each.storage_topic_id, each.partition)):
            await turn.give_way()
            stream = StreamId(each.storage_topic_id, each.partition)
            if stream not in streams:
                rule = f"{each.stream} is no stream of {source.name}, or is read twice"
                raise IllegalJob(job=change.name, rule=rule)
            del streams[stream]
            bounds = self._log.bounds(stream)
            if not bounds.start <= each.start <= each.end <= bounds.end:
                raise SourceGone(
                    job=change.name, stream=each.stream, start=each.start, end=each.end
                )
            records = max(1, bounds.end - bounds.start)
            measured.append(Measured(each, bounds.bytes * (each.end - each.start) // records))
        return measured

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The rows of the job, and its holds."""
        change, manifest = plan.change, plan.found
        assert isinstance(change, CreateJob)
        assert isinstance(manifest, _Manifest)
        held: dict[StreamId, Range] = {}
        for each in change.ranges:
            stream = StreamId(each.storage_topic_id, each.partition)
            start, end = held.get(stream, (each.start, each.end))
            held[stream] = min(start, each.start), max(end, each.end)
        # Before the hold, so that the hold ends if the answer to the commit is lost.
        self._jobs.pending(number)
        try:
            holds = await self._log.hold(number, held) if manifest.chunks else []
        except OffsetOutOfRange as gone:
            fields = gone.fields
            raise SourceGone(
                job=change.name, stream=fields["stream"], start=fields["offset"], end="?"
            ) from gone
        row = replace(self._row(change, manifest, number), principal=plan.principal)
        progress = JobProgressRow(number, 0, 0, 0, 0, "")
        chunks = [
            ChunkRow(number, at, chunk.input.to_json(), chunk.records, chunk.bytes, 0, "", None)
            for at, chunk in enumerate(manifest.chunks)
        ]
        rows = (row, progress, JobNameRow(change.name, number), *chunks)
        return Begun(
            writes=[*(Put(each) for each in rows), *holds],
            preconditions=[Absent(JobNameRow, (change.name,))],
            committed=lambda: self._jobs.made(row, progress),
            after={"job_id": number, "chunks": len(chunks), "records": manifest.records},
        )

    def _row(self, change: CreateJob, manifest: _Manifest, number: int) -> JobRow:
        now_ms = self._clock.wall_ms()
        source, target = manifest.source, manifest.target
        hops_max = change.hops_max or HOPS_DEFAULT
        spec = Spec(
            change.source,
            change.target,
            change.filter,
            hops_max,
            change.params,
            change.ranges,
            change.dead_letters,
        )
        is_empty = not manifest.chunks
        return JobRow(
            job_id=number,
            name=change.name,
            kind=change.kind,
            engine=change.engine,
            state=(Phase.DONE if is_empty else Phase.ACTIVE).value,
            spec=spec.to_json(),
            source_topic_id=0 if source is None else source.topic_id,
            target_topic_id=0 if target is None else target.topic_id,
            target_storage_topic_id=0 if target is None else target.producing.storage_topic_id,
            chunks=len(manifest.chunks),
            rate_bytes_s=change.rate_bytes_s,
            created_at_ms=now_ms,
            ended_at_ms=now_ms if is_empty else None,
            failure="",
            revision=1,
        )

    async def resumed(self, row: OperationRow) -> Begun:
        """Nothing is left to do: the commit did all of it."""
        return Begun()


Edit = PauseJob | ResumeJob | CancelJob


class JobEdits(Final):
    """Jobs that are paused, resumed or cancelled."""

    def __init__(self, jobs: Jobs, log: BulkLog, store: Store, clock: Clock) -> None:
        self._jobs = jobs
        self._log = log
        self._store = store
        self._clock = clock

    async def plan(self, change: Edit) -> Plan:
        """What it would do to the job in its present state.

        Raises:
            JobNotFound, JobNotInState: it cannot be done.
        """
        view = self._jobs.get(change.job)
        row = view.row
        done = _NAMES[type(change)]
        if Phase(row.state) in ENDED:
            raise JobNotInState(job=row.name, state=row.state, asked=f"be {done}")
        return Plan(
            change=replace(change, job=row.name),
            kind=f"jobs.{_VERBS[type(change)]}",
            subject=row.name,
            revision=row.revision,
            summary=f"{_VERBS[type(change)]} the {row.kind} {row.name}",
            effects=tuple(_effects_of_edit(change, view)),
            not_undoable_because="what it published stays"
            if isinstance(change, CancelJob)
            else "resume or pause it instead",
            nothing_to_do=row.state == _STATES[type(change)],
            beside=EVERYTHING,
        )

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The row as the change leaves it."""
        change = plan.change
        assert isinstance(change, PauseJob | ResumeJob | CancelJob)
        key = (self._jobs.get(change.job).row.job_id,)
        found = await self._store.read(JobRow, key)
        if found is None:
            raise JobNotFound(job=change.job)
        if Phase(found.row.state) in ENDED:
            asked = f"be {_NAMES[type(change)]}"
            raise JobNotInState(job=change.job, state=found.row.state, asked=asked)
        row = replace(found.row, state=_STATES[type(change)].value, revision=found.row.revision + 1)
        writes: list[Write] = []
        if isinstance(change, CancelJob):
            row = ended(row, Phase.CANCELLED, plan.reason, self._clock.wall_ms())
            writes += self._log.release(row.job_id)
        return Begun(
            writes=[Put(row), *writes],
            preconditions=[VersionIs(JobRow, key, found.version)],
            committed=lambda: self._jobs.changed(row),
            before={"state": found.row.state},
            after={"state": row.state},
        )

    async def resumed(self, row: OperationRow) -> Begun:
        """Nothing is left to do: the commit did all of it."""
        return Begun()


class JobRemovals(Final):
    """Removals of jobs that have ended."""

    def __init__(self, jobs: Jobs, store: Store) -> None:
        self._jobs = jobs
        self._store = store

    async def plan(self, change: RemoveJob) -> Plan:
        """What goes with the job.

        Raises:
            JobNotFound, JobNotInState: it cannot be removed.
        """
        row = self._jobs.get(change.job).row
        if Phase(row.state) not in ENDED:
            raise JobNotInState(job=row.name, state=row.state, asked="be removed; cancel it first")
        return Plan(
            change=RemoveJob(row.name),
            kind="jobs.rm",
            subject=row.name,
            revision=row.revision,
            summary=f"remove the {row.kind} {row.name}",
            effects=("Its manifest goes. What it published stays.",),
            not_undoable_because="its manifest is deleted",
        )

    async def begin(self, plan: Plan, number: int) -> Begun:
        """Delete all its rows."""
        view = self._jobs.get(plan.subject)
        job_id = view.row.job_id
        chunks = await scan_all(self._store, ChunkRow, (job_id,))
        writes: list[Write] = [
            Delete(JobRow, (job_id,)),
            Delete(JobProgressRow, (job_id,)),
            Delete(JobNameRow, (view.row.name,)),
            *(Delete(ChunkRow, (job_id, each.row.chunk)) for each in chunks),
        ]
        return Begun(
            writes=writes,
            committed=lambda: self._jobs.removed(job_id),
            before={"job_id": job_id, "state": view.row.state},
        )

    async def resumed(self, row: OperationRow) -> Begun:
        """Nothing is left to do: the commit did all of it."""
        return Begun()


_VERBS = {PauseJob: "pause", ResumeJob: "resume", CancelJob: "cancel"}
_NAMES = {PauseJob: "paused", ResumeJob: "resumed", CancelJob: "cancelled"}
_STATES = {PauseJob: Phase.PAUSED, ResumeJob: Phase.ACTIVE, CancelJob: Phase.CANCELLED}


def _broken_rule(change: CreateJob) -> str:
    """The rule that a number or text of a job breaks; empty: none."""
    kind = JobKind(change.kind)
    inputs = sum(len(each.text.encode()) for each in change.inputs)
    rules = {
        f"a {kind} reads a topic": kind.reads_topic and not change.source,
        f"a {kind} reads no topic": not kind.reads_topic and bool(change.source),
        f"a {kind} writes to a topic": kind.writes_topic and not change.target,
        f"a {kind} writes to no topic": not kind.writes_topic and bool(change.target),
        f"a {kind} has no chunks of its own": kind.reads_topic and bool(change.inputs),
        f"it has {len(change.inputs):,} chunks of {CHUNKS_MAX:,}": len(change.inputs) > CHUNKS_MAX,
        f"its chunks are described in {inputs:,} of {INPUTS_BYTES_MAX:,} bytes": (
            inputs > INPUTS_BYTES_MAX
            or any(len(each.text.encode()) > CHUNK_INPUT_BYTES_MAX for each in change.inputs)
        ),
        f"its params have at most {PARAMS_BYTES_MAX:,} bytes": (
            len(change.params.encode()) > PARAMS_BYTES_MAX
        ),
        f"its rate is at least {RATE_BYTES_S_MIN:,} bytes a second": (
            0 < change.rate_bytes_s < RATE_BYTES_S_MIN
        ),
        f"a chunk reads {CHUNK_BYTES_MIN:,} to {CHUNK_PLANNED_BYTES_MAX:,} bytes": bool(
            change.chunk_bytes
        )
        and not CHUNK_BYTES_MIN <= change.chunk_bytes <= CHUNK_PLANNED_BYTES_MAX,
        f"hops are at most {COPY_HOPS_MAX}": change.hops_max > COPY_HOPS_MAX,
        "only a replay, an export or a transform reads dead letters": bool(change.dead_letters)
        and kind not in (JobKind.REPLAY, JobKind.EXPORT, JobKind.TRANSFORM),
    }
    return next((rule for rule, broken in rules.items() if broken), "")


def _chunks(change: CreateJob, measured: Sequence[Measured]) -> tuple[PlannedChunk, ...]:
    total = sum(one.bytes for one in measured)
    wanted = max(change.chunk_bytes or CHUNK_BYTES_USUAL, -(-total // (CHUNKS_MAX // 2)))
    if wanted > CHUNK_PLANNED_BYTES_MAX:
        rule = f"it reads {counted(total, 'byte')}: make several, of a part of the time each"
        raise IllegalJob(job=change.name, rule=rule)
    return tuple(cut(measured, wanted))


def _chunks_of_inputs(change: CreateJob) -> tuple[PlannedChunk, ...]:
    return tuple(
        PlannedChunk(ChunkInput(text=each.text), each.records, each.bytes) for each in change.inputs
    )


_PUBLISHES = ", and publishes them in their order"
_THEN = {
    JobKind.AUDIT: "",
    JobKind.EXPORT: ", and writes them to files, those of each stream in order",
    JobKind.BACKFILL: _PUBLISHES,
    JobKind.REPLAY: _PUBLISHES,
    JobKind.TRANSFORM: _PUBLISHES,
}
"""What a job does with the records that it reads."""


def _effects(change: CreateJob, manifest: _Manifest) -> Sequence[str]:
    chunks = counted(len(manifest.chunks), "chunk")
    size = f"{counted(manifest.records, 'record')}, about {counted(manifest.bytes, 'byte')}"
    effects = [f"It reads at most {size}, in {chunks}{_THEN[JobKind(change.kind)]}."]
    speed = change.rate_bytes_s or STATED_BYTES_S
    seconds = -(-manifest.bytes // speed)
    least = "at least" if change.rate_bytes_s else "about"
    effects.append(f"At {counted(speed, 'byte')} a second that takes {least} {seconds:,} s.")
    if change.dead_letters:
        effects += effects_on_dead_letters(change)
    elif manifest.source is not None:
        effects.append("Retention keeps the records that it reads until the job has ended.")
    if manifest.target is not None:
        effects += _effects_on_target(manifest, manifest.target)
    return effects


def _effects_on_target(manifest: _Manifest, target: Topic) -> Sequence[str]:
    order = "Records of one key keep the order in which they are read, and come behind what is in "
    effects = [f"{order}{target.name} when their chunk is published."]
    limit = target.retention_bytes
    if limit is not None and manifest.bytes > limit:
        effects.append(
            f"{target.name} keeps {counted(limit, 'byte')}: retention will delete older records, "
            "and some of the copies."
        )
    if target.retention_ms is not None:
        effects.append("Their age counts from when they are published.")
    return effects


def _effects_of_edit(change: Edit, view: JobView) -> Sequence[str]:
    left = view.row.chunks - view.progress.published
    chunks = counted(left, "chunk")
    match change:
        case PauseJob():
            return (f"{chunks} wait until it is resumed. What it reads stays held.",)
        case ResumeJob():
            return (f"{chunks} are left.",)
        case CancelJob():
            done = counted(view.progress.records, "record")
            return (f"{chunks} are not published; {done} that were stay.",)
