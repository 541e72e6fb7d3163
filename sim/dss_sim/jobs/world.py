"""A replay from one topic to another, driven through as many lives of the daemon as it takes.

Invariant: the same plan gives the same outcome. The end is judged by what the target holds, never
by what anybody was told.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

from dss_core.build import build_frame, partition_columns
from dss_core.changes import CreateJob
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import DssError, JobFenced, JobLeased, Stopping
from dss_core.ids import StreamId
from dss_core.producer_ids import NO_PRODUCER
from dss_core.routing import Router
from dss_core.staged import StagedFile, StagedFor, StagedWriter
from dss_sim.jobs.dying import Death, Died, DyingStore, threads_die
from dssd.clock import Clock
from dssd.jobs.held_job import Granting, JobChunk
from dssd.jobs.jobs import Jobs
from dssd.jobs.model import ChunkInput
from dssd.jobs.staging import Staging
from dssd.leaders.dead_letters import DeadLetterPlaces
from dssd.log.port import Append
from dssd.log.segment_log import SegmentLog
from dssd.log.settings import LogSettings
from dssd.machines.job import ENDED, JOB_LEASE_MS, Phase
from dssd.operations.kinds.jobs import JobCreations
from dssd.store.paging import scan_all
from dssd.store.rows import StorageTopicRow
from dssd.topics.catalogue import Catalogue, NewTopic

NO_GROUPS = cast("DeadLetterPlaces", None)
"""The job reads a topic, so nobody asks for dead letters."""

JOB = "copy"
RECORDS = 40
KEYS = 7
CHUNK_BYTES = 64 << 10
PAYLOAD_BYTES = 4_400
LIVES_MAX = 40
EFFECTS_MAX = 60
"""An upper bound: no plan needs more lives."""


class MovedClock(Clock):
    """The machine's clock, moved forward so that leases end."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        """The clock of leases."""
        return super().now_ms() + self.ahead_ms


@dataclass(frozen=True, slots=True)
class Plan:
    """When each life ends, counted in effects, and whether its last effect happens. The last life
    does not end."""

    deaths: tuple[int, ...] = ()
    happens: bool = True
    repeats: bool = False
    """Each commit is sent twice at once, and once more afterwards."""
    appends: bool = False
    """Producers write to the target at the same time."""

    @classmethod
    def of_seed(cls, seed: int) -> "Plan":
        """What a seed has drawn."""
        chance = Random(seed)
        deaths = tuple(chance.randrange(1, 45) for _ in range(chance.randrange(1, 5)))
        flips = [chance.random() < 0.5 for _ in range(3)]
        return cls(deaths, *flips)


@dataclass(slots=True)
class _Life:
    log: SegmentLog
    catalogue: Catalogue
    jobs: Jobs
    failures: list[BaseException]


@dataclass(slots=True)
class World:
    """What outlives the processes. `run` is called once."""

    root: Path
    plan: Plan
    store: DyingStore = field(default_factory=DyingStore)
    clock: MovedClock = field(default_factory=MovedClock)
    appended: int = 0
    effects: int = 0
    """The effects of the life that had most."""
    violations: list[str] = field(default_factory=list)

    async def run(self) -> list[str]:
        """Run lives until the job is done; returns what is wrong."""
        await self._live(None, self._prepare)
        for number in range(LIVES_MAX):
            after = self.plan.deaths[number] if number < len(self.plan.deaths) else None
            await self._live(after, partial(self._work, f"driver {number}"))
            if after is None:
                break
        await self._live(None, self._check)
        return self.violations

    async def _live(self, after: int | None, act: Callable[[_Life], Awaitable[None]]) -> None:
        death = self.store.death = Death(after, happens=self.plan.happens)
        with threads_die(death):
            try:
                life = await self._opened([])
            except Died:
                return
            try:
                await act(life)
            except (Died, Stopping):
                if not death.dead:
                    raise
            self.effects = max(self.effects, death.effects)
            if not death.dead:
                # A death while it closes is the log simulator's.
                death.put_off()
                await life.log.close()
                return
        await _abandon(life.log)

    async def _work(self, driver: str, life: _Life) -> None:
        await self._make_unless_made(life)
        await self._drive(life, driver)

    async def _opened(self, failures: list[BaseException]) -> _Life:
        rows = [found.row for found in await scan_all(self.store, StorageTopicRow)]
        log = await SegmentLog.open(
            self.root / "log",
            self.store,
            storage_topics=rows,
            on_failure=failures.append,
            settings=LogSettings(run_bytes_max=8 << 10),
        )
        try:
            catalogue = await Catalogue.open(self.store, log)
            staging = Staging(self.root / "staging")
            jobs = await Jobs.open(
                self.store, catalogue, log, staging, self.clock, lambda _event: None
            )
        except BaseException:
            await _abandon(log)
            raise
        return _Life(log, catalogue, jobs, failures)

    async def _prepare(self, life: _Life) -> None:
        await life.catalogue.create(NewTopic("source", 2))
        await life.catalogue.create(NewTopic("target", 3))
        for first in range(0, RECORDS, 10):
            await self._publish(life, "source", range(first, first + 10))

    async def _publish(self, life: _Life, name: str, numbers: Sequence[int]) -> None:
        topic = life.catalogue.get(name)
        part = topic.producing
        columns = _columns(numbers, name)
        routed = partition_columns(
            columns, Router.BLOCK, part.partitions, part.factor, keyless_start=0
        )
        appends = [
            Append(
                StreamId(part.storage_topic_id, partition),
                build_frame(own, partition=partition, producer_id=NO_PRODUCER, sequence=0),
                topic.topic_epoch,
            )
            for partition, own in routed.items()
        ]
        await life.log.append(appends)

    # The job

    async def _make_unless_made(self, life: _Life) -> None:
        if life.jobs.find(JOB) is not None:
            return
        parts = (life.jobs, life.catalogue, life.log, self.store, self.clock)
        kind = JobCreations(*parts, NO_GROUPS)
        change = CreateJob(JOB, "replay", source="source", target="target", chunk_bytes=CHUNK_BYTES)
        number = await self.store.next_id()
        begun = await kind.begin(await kind.plan(change), number)
        await self.store.commit(begun.writes, begun.preconditions)
        assert begun.committed is not None
        begun.committed()

    async def _drive(self, life: _Life, driver: str) -> None:
        if Phase(life.jobs.get(JOB).row.state) in ENDED:
            return
        # The driver of the life before gets time to be heard again.
        self.clock.ahead_ms += JOB_LEASE_MS
        granted = await life.jobs.acquire(JOB, driver, driver.encode())
        try:
            await life.jobs.acquire(JOB, "another", b"another")
            self.violations.append("two drivers have the job")
        except JobLeased:
            pass
        first = granted.progress.published
        await self._come_back(life, JobChunk(first, granted.progress.epoch - 1, (), ""))
        for row in await life.jobs.chunks(JOB, first - 1, granted.row.chunks):
            file = await self._staged(life, granted, row.chunk, ChunkInput.from_json(row.input))
            chunk = JobChunk(row.chunk, granted.progress.epoch, (file,), "")
            await self._commit(life, chunk)

    async def _come_back(self, life: _Life, chunk: JobChunk) -> None:
        """The earlier driver, which hung, tries to go on."""
        try:
            life.jobs.renew(JOB, chunk.epoch, "")
            self.violations.append("a driver of before keeps its lease")
        except JobFenced:
            pass
        try:
            await life.jobs.commit(JOB, chunk)
            self.violations.append("a driver of before publishes")
        except JobFenced:
            pass

    async def _commit(self, life: _Life, chunk: JobChunk) -> None:
        commits = [self._begun(life.jobs.commit(JOB, chunk), "commit")]
        if self.plan.repeats:
            commits.append(self._begun(life.jobs.commit(JOB, chunk), "repeated commit"))
        beside: list[asyncio.Task[object]] = []
        if self.plan.appends:
            numbers = range(RECORDS + self.appended, RECORDS + self.appended + 3)
            self.appended += 3
            beside.append(self._begun(self._publish(life, "target", numbers), "appends"))
        done, waiting = await asyncio.wait([*commits, *beside], return_when=asyncio.FIRST_EXCEPTION)
        for task in waiting:
            # Nothing is answered after a death; whoever waits gets no answer.
            task.cancel()
        answers = [task.result() for task in commits if task in done]
        if self.plan.repeats:
            answers.append(await life.jobs.commit(JOB, chunk))
        if any(answer != answers[0] for answer in answers):
            self.violations.append(f"chunk {chunk.chunk} is answered otherwise when repeated")

    def _begun(self, work: Coroutine[Any, Any, object], name: str) -> "asyncio.Task[object]":
        return asyncio.create_task(work, name=name)

    async def _staged(
        self, life: _Life, granted: Granting, number: int, reads: ChunkInput
    ) -> StagedFile:
        assert granted.target is not None
        _, part = granted.target
        numbers: list[int] = []
        for each in reads.ranges:
            stream = StreamId(each.storage_topic_id, each.partition)
            numbers += await _numbers(life.log, stream, each.start, each.end)
        columns = _columns(numbers, "target")
        routed = partition_columns(
            columns, Router.BLOCK, part.partitions, part.factor, keyless_start=0
        )
        staged_for = StagedFor(granted.row.job_id, number, part.storage_topic_id)
        with StagedWriter(Path(granted.staging), staged_for) as writer:
            for partition, own in routed.items():
                writer.add(own, partition)
            return writer.finish()

    # The rules

    async def _check(self, life: _Life) -> None:
        say = self.violations.append
        view = life.jobs.get(JOB)
        if view.row.state != Phase.DONE or view.progress.published != view.row.chunks:
            say(f"the job is {view.row.state} with {view.progress.published} chunks")
        there: Counter[int] = Counter()
        for stream in life.catalogue.get("target").streams():
            start, end = life.log.span(stream)
            numbers = await _numbers(life.log, stream, start, end)
            if len(numbers) != end - start:
                say(f"{stream} has {len(numbers)} records of {end - start}")
            there.update(numbers)
            by_key: defaultdict[int, list[int]] = defaultdict(list)
            for number in numbers:
                if number < RECORDS:
                    by_key[number % KEYS].append(number)
            for key, own in by_key.items():
                if own != sorted(own):
                    say(f"records of key {key} are out of order: {own}")
        copies = Counter({number: count for number, count in there.items() if number < RECORDS})
        if copies != Counter(range(RECORDS)):
            say(f"not each record is there once: {copies}")
        if view.progress.records != RECORDS:
            say(f"the job counts {view.progress.records} records")
        await life.jobs.settle()
        self._check_files(life)

    def _check_files(self, life: _Life) -> None:
        left = [path.name for path in (self.root / "staging").rglob("*") if path.is_file()]
        marks = [
            path.name
            for path in (self.root / "log").iterdir()
            if path.suffix in (".adopting", ".tmp")
        ]
        if left or marks:
            self.violations.append(f"files are left: {left + marks}")
        if life.log.quarantined():
            self.violations.append(f"set aside: {life.log.quarantined()}")
        held = {part.storage_topic_id for part in life.catalogue.get("source").storage_topics}
        if any(life.log.holders(topic) for topic in held):
            self.violations.append("something is still held")


def _columns(numbers: Sequence[int], subject: str) -> Columns:
    payloads = [f"{number}".encode().ljust(PAYLOAD_BYTES, b".") for number in numbers]
    keys = [f"key {number % KEYS}".encode() for number in numbers]
    return Columns(payloads, keys, subject, None, 1)


async def _numbers(log: SegmentLog, stream: StreamId, start: int, end: int) -> list[int]:
    """The numbers of the records in a range."""
    found: list[int] = []
    at = start
    while at < end:
        chunk = await log.read(stream, at, bytes_max=1 << 20)
        if chunk.frames:
            batch = decode(chunk.frames, chunk.mask)
            numbered = zip(batch.offsets, batch.payloads, strict=True)
            found += [int(text.rstrip(b".")) for offset, text in numbered if start <= offset < end]
        at = chunk.next
    return found


async def _abandon(log: SegmentLog) -> None:
    """What the end of a process does to its threads and descriptors."""
    await log._housekeeper.abandon()
    await log._writer.stop()
    log._files.close()


def judged(root: Path, plan: Plan) -> tuple[list[str], int]:
    """What is wrong after the plan has run, and how many effects its last life took."""
    world = World(root, plan)

    async def run() -> list[str]:
        try:
            return await world.run()
        except DssError as error:
            return [f"it raised {error!r}"]

    return asyncio.run(run()), world.effects
