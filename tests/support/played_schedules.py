"""Schedules over operations, with a task and clocks that a test plays."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from dss_core.changes import CreateSchedule, Rebalance
from dss_core.errors import OwnerRefused, TaskFailed
from dssd.clock import Clock
from dssd.operations.plans import KindTable
from dssd.schedules.book import Book
from dssd.schedules.definition_kinds import DefinitionKinds
from dssd.schedules.schedules import Schedules
from dssd.schedules.task_runs import TaskRunKind, TaskRuns
from dssd.schedules.tasks.model import Argument, Given, Say, Task, Tasks
from dssd.store.port import Store
from dssd.store.rows import OperationRow
from dssd.store.schedule_rows import ScheduleRow, ScheduleRunRow
from support.operated_groups import ANA, Works

PATIENCE_S = 60.0
SUNDAY_NOON_MS = 1_795_348_800_000
"""2026-11-22T12:00:00Z."""
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


class TwoClocks(Clock):
    """Two clocks that stand until they are moved."""

    __slots__ = ("at_ms", "passed_ms")

    def __init__(self) -> None:
        self.passed_ms = 0
        self.at_ms = SUNDAY_NOON_MS

    def now_ms(self) -> int:
        return self.passed_ms

    def wall_ms(self) -> int:
        return self.at_ms

    def wall_us(self) -> int:
        return self.at_ms * 1_000


class Heard(list[str]):
    """The reports of a task."""

    def __call__(self, line: str, /) -> None:
        self.append(line)

    def now(self, line: str, /) -> None:
        pass


class PlayedTask:
    """The task ``work``: waits at its gate, then ends as the test says."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.fails = ""
        self.mistake: Callable[[], object] | None = None
        self.begun: list[Given] = []
        self.stopped = 0
        self.task = Task("work", "Does as it is told.", self.run, (Argument("how", "?", str),))

    async def run(self, given: Given, say: Say) -> None:
        self.begun.append(given)
        say(f"it begins for the {len(self.begun)}. time")
        say.now("half of it is done")
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        if self.mistake is not None:
            self.mistake()
        if self.fails:
            raise TaskFailed(task="work", why=self.fails)


class ScheduledWorks(Works):
    """A plant with operations and schedules; `stop` and `start` make another daemon of it."""

    def __init__(self, directory: Path, store: Store) -> None:
        super().__init__(directory, store)
        self.clock = TwoClocks()
        self.plant.clock = self.clock  # type: ignore[assignment] # a clock of its own
        self.work = PlayedTask()
        self.ana = ANA
        self.schedules: Schedules
        self.owner_refused = False
        """Whether the principals of schedules have lost their rights."""

    def check(self, row: ScheduleRow) -> None:
        """The check that the daemon makes before each run."""
        if self.owner_refused:
            raise OwnerRefused(what="It", principal=row.principal, why="who may not", how="?")

    async def kinds(self) -> KindTable:
        tasks = Tasks([self.work.task])
        self._book = await Book.open(self.plant.store)
        self._runs = TaskRuns(self.told.append)
        definitions = DefinitionKinds(self.plant.store, self._book, tasks, self.clock)
        return (
            (await super().kinds())
            .joined(TaskRunKind(tasks, self._runs).kinds())
            .joined(definitions.kinds())
        )

    async def start(self) -> None:
        await super().start()
        self.schedules = Schedules(
            self.plant.store,
            self._book,
            self.operations,
            self._runs,
            self.clock,
            self.told.append,
            self.check,
        )
        await self._running.enter_async_context(self.schedules)
        running = asyncio.create_task(self.schedules.run())
        self._running.callback(running.cancel)

    async def rebalanced(self, change: Rebalance) -> OperationRow | None:
        """Apply it as the daemon's task does."""
        if (await self.operations.plan(change)).nothing_to_do:
            return None
        return await self.apply(change)

    async def scheduled(self, cron: str = "0 * * * *", **rules: object) -> None:
        """Make the schedule ``s`` of the task ``work``."""
        await self.apply(CreateSchedule("s", "work", cron, **rules))  # type: ignore[arg-type] # of a schedule

    def pass_(self, minutes: float) -> None:
        """Let time pass."""
        self.clock.passed_ms += int(minutes * MINUTE_MS)
        self.clock.at_ms += int(minutes * MINUTE_MS)

    async def runs(self) -> list[ScheduleRunRow]:
        """The runs of ``s``, the oldest first."""
        return (await self.schedules.runs("s"))[::-1]

    async def states(self, *wanted: str) -> list[ScheduleRunRow]:
        """The runs, once they have these states."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                rows = await self.runs()
                if [row.state for row in rows] == list(wanted):
                    return rows
                await asyncio.sleep(0.001)

    async def under_way(self) -> None:
        """Return once the task has begun."""
        await self.until(lambda: bool(self.work.begun))

    @property
    def next_ms(self) -> int | None:
        """When ``s`` is due next."""
        return self.schedules.view("s").next_ms

    async def ended_run(self, run: int) -> None:
        """Return once the run of ``s`` is the newest that ended."""

        def has_ended() -> bool:
            last = self.schedules.view("s").last
            return last is not None and last.run == run

        await self.until(has_ended)

    def events(self, code: str) -> list[str]:
        """The events of a kind."""
        return [event.sentence for event in self.told if event.kind.code == code]
