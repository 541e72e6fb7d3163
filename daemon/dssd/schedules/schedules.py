"""The schedules of the daemon: runs due schedules and stores the outcomes.

`dssd.machines.schedule` decides; this module stores each decision, then carries it out. Each
attempt is an operation whose principal is the schedule. Invariant: a run is stored with its due
time before it begins, so no due time runs twice. A decision that cannot be stored does not count,
and is made again later. One decision is made at a time. This module does not know what a task does.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import NoReturn, Self

from dss_core.changes import RunTask
from dss_core.errors import (
    DiskFull,
    DssError,
    IllegalArgument,
    OperationInProgress,
    ScheduleBusy,
    ScheduleNotFound,
)
from dss_core.times import text_of_ms, text_of_span
from dssd.clock import Clock
from dssd.events.model import Note
from dssd.machines.schedule import (
    Begin,
    Effect,
    Ended,
    Input,
    Moment,
    Outcome,
    Queue,
    Refuse,
    Run,
    Stop,
    Triggered,
    step,
)
from dssd.operations.history import CANCELLED, DONE, SCHEDULE_PREFIX
from dssd.operations.operations import Caller, Operations
from dssd.schedules.book import Book
from dssd.schedules.definitions import arguments_of
from dssd.schedules.live import Live, begun
from dssd.schedules.run_rows import NOTHING_SAID, RUNNING, Said
from dssd.schedules.task_runs import INTERRUPTED, OUTPUT, TaskRuns
from dssd.schedules.telling import Telling
from dssd.schedules.views import ScheduleView, view_of
from dssd.store.paging import scan_all
from dssd.store.port import Put, Store
from dssd.store.rows import OperationRow
from dssd.store.schedule_rows import SchedulePositionRow, ScheduleRow, ScheduleRunRow
from dssd.store.uninterrupted import finished
from dssd.supervision.containment import contain

SCHEDULE_LOOK_S = 5.0
"""The clock is read at least this often, so that a change of the clock is noticed. A run that
begins within a minute does not count as caught up."""

SCHEDULE_LOOK_S_MIN = 0.02
"""The clock is read at most this often."""

SCHEDULE_REST_MS = 60_000
"""Pause of a schedule after an internal error in its decision."""

SCHEDULE_RETRY_S = 5.0
"""Retry interval after a decision could not be stored: a full disk takes longer to clear."""

TRIGGER_REASON_BYTES_MAX = 800
"""Length of an operator's reason for a run: with the run and its due time it fits into the reason
of an operation."""


ORIGIN = "the daemon itself"
PART = "schedules"
"""As what is told of mistakes has it."""


class Schedules:
    """Run `run` inside of ``async with schedules:``; leaving that interrupts what is under way."""

    def __init__(
        self,
        store: Store,
        book: Book,
        operations: Operations,
        task_runs: TaskRuns,
        clock: Clock,
        note: Note,
        check: Callable[[ScheduleRow], None],
    ) -> None:
        self._check = check
        """Raises if the owner of a schedule lacks a permission that the task needs."""
        self._store = store
        self._book = book
        self._operations = operations
        self._task_runs = task_runs
        self._clock = clock
        self._note = note
        self._telling = Telling(note, clock)
        self._lives: dict[int, Live] = {}
        """By schedule id."""
        self._changed = asyncio.Event()
        self._deciding = asyncio.Lock()
        self._begun: dict[tuple[int, int], asyncio.Future[None]] = {}
        """Attempts whose operation a caller waits for."""
        self._tasks = asyncio.TaskGroup()
        self._attempts: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Continue the runs of the previous daemon."""
        await self._tasks.__aenter__()
        for row in self._book.rows():
            await self._take_up(row)
        self._book.watch(self._note_changed)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Start no more runs; interrupt those under way."""
        for task in self._attempts:
            task.cancel()
        await self._tasks.__aexit__(kind, error, trace)

    # What operators ask

    def views(self) -> list[ScheduleView]:
        """How every schedule stands, by name."""
        return [self.view(row.name) for row in self._book.rows()]

    def view(self, name: str) -> ScheduleView:
        """How a schedule stands.

        Raises:
            ScheduleNotFound: there is none.
        """
        return view_of(self._live(name))

    def now_ms(self) -> int:
        """By the wall clock."""
        return self._clock.wall_ms()

    async def runs(self, name: str) -> list[ScheduleRunRow]:
        """The runs that are kept, the newest first.

        Raises:
            ScheduleNotFound: there is none.
        """
        schedule_id = self._book.get(name).schedule_id
        found = await scan_all(self._store, ScheduleRunRow, (schedule_id,))
        return [self._as_it_stands(each.row) for each in reversed(found)]

    def _as_it_stands(self, row: ScheduleRunRow) -> ScheduleRunRow:
        """The row of a run; with the present output if it is under way."""
        said = self._task_runs.said(row.operation) if row.state == RUNNING else []
        return replace(row, output="\n".join(said)) if said else row

    async def trigger(self, name: str, reason: str = "") -> ScheduleRunRow:
        """Run it now, whether it is paused or not; returns once the run has its operation.

        Raises:
            IllegalArgument: the reason is too long.
            ScheduleNotFound: there is none.
            ScheduleBusy: it has a run that has not ended, and none may run beside it.
            OwnerRefused: whom it acts for may not do what it does.
            DssError: it cannot be stored.
        """
        if len(reason.encode()) > TRIGGER_REASON_BYTES_MAX:
            rule = f"it has at most {TRIGGER_REASON_BYTES_MAX} bytes"
            raise IllegalArgument(argument="this reason", rule=rule)
        live = self._live(name)
        self._check(live.row)
        effects = await self._feed(live, Triggered(self._now(), reason))
        refused = next((each for each in effects if isinstance(each, Refuse)), None)
        if refused is not None:
            raise ScheduleBusy(schedule=name, run=refused.run)
        # Another run may have begun meanwhile, by the clock or by another caller.
        run = next(each.what.run for each in effects if isinstance(each, Begin | Queue))
        begun = self._begun.get((live.row.schedule_id, run))
        if begun is not None:
            await asyncio.shield(begun)
        found = await self._store.read(ScheduleRunRow, (live.row.schedule_id, run))
        if found is None:
            raise ScheduleNotFound(schedule=name)
        return found.row

    # Deciding

    def _live(self, name: str) -> Live:
        live = self._lives.get(self._book.get(name).schedule_id)
        if live is None:  # it was made in this moment
            row = self._book.get(name)
            live = self._lives[row.schedule_id] = begun(row, None, [], self._now())
        return live

    def _now(self) -> Moment:
        return Moment(self._clock.now_ms(), self._clock.wall_ms())

    def _note_changed(self, row: ScheduleRow, removed: bool) -> None:
        if removed:
            self._lives.pop(row.schedule_id, None)
        self._changed.set()

    async def _take_up(self, row: ScheduleRow) -> None:
        schedule_id = row.schedule_id
        position = await self._store.read(SchedulePositionRow, (schedule_id,))
        found = await scan_all(self._store, ScheduleRunRow, (schedule_id,))
        runs = [each.row for each in found]
        at = self._now()
        live = begun(row, position.row if position else None, runs, at)
        self._lives[schedule_id] = live
        self._telling.tell_broken(live)

    async def run(self) -> NoReturn:
        """Run due schedules until cancelled; run this as a task."""
        while True:
            self._changed.clear()
            try:
                for name in self._book.names():
                    await self._look_at(name)
            except DiskFull:
                await asyncio.sleep(SCHEDULE_RETRY_S)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rest_s()):
                    await self._changed.wait()

    def _rest_s(self) -> float:
        at = self._now()
        waits = [live.wait_ms(at) for live in self._lives.values() if not live.rests(at)]
        nearest_ms = min((wait for wait in waits if wait is not None), default=None)
        if nearest_ms is None:
            return SCHEDULE_LOOK_S
        return min(SCHEDULE_LOOK_S, max(SCHEDULE_LOOK_S_MIN, nearest_ms / 1_000))

    async def _look_at(self, name: str) -> None:
        """Decide about one schedule. An internal error pauses only this one."""
        row = self._book.find(name)
        if row is None:  # it was removed while others were looked at
            return
        live = self._live(name)
        if live.rests(self._now()):
            return
        try:
            await self._decide_about(live, row)
        except DiskFull:
            raise
        except Exception as error:  # noqa: BLE001 - it ends this look at one schedule
            contain(PART, error, self._note)
            live.rests_until_ms = self._clock.now_ms() + SCHEDULE_REST_MS

    async def _decide_about(self, live: Live, row: ScheduleRow) -> None:
        if live.row is not row:
            live.row = row
            await self._feed(live, live.defined(self._now()))
        for run in live.orphans():
            ended = Ended(self._now(), run, Outcome.INTERRUPTED)
            await self._feed(live, ended, Said(failure=INTERRUPTED))
        at = self._now()
        if live.is_due(at):
            await self._feed(live, live.looked(at))

    async def _feed(self, live: Live, given: Input, said: Said = NOTHING_SAID) -> list[Effect]:
        """Decide, store, then do.

        Raises:
            DiskFull: nothing was decided.
        """
        return await finished(self._decide(live, given, said), name="decide about a schedule")

    async def _decide(self, live: Live, given: Input, said: Said) -> list[Effect]:
        async with self._deciding:
            state, effects = step(live.state, given)
            found = [live.runs.written(each, given.at, said) for each in effects]
            rows = _latest([row for row in found if row is not None])
            if rows and live.row.schedule_id in self._lives:
                writes = [Put(live.position(state)), *live.runs.writes(rows)]
                await self._store.commit(writes)
            live.state = state
            live.runs.enter(rows)
        for effect in effects:
            self._do(live, effect)
            self._telling.tell(live, effect, said)
        return effects

    def _do(self, live: Live, effect: Effect) -> None:
        match effect:
            case Begin(what):
                key = live.row.schedule_id, what.run
                live.attempts.add((what.run, what.attempt))
                live.stops[what.run] = asyncio.Event()
                self._begun[key] = asyncio.get_running_loop().create_future()
                name = f"run {what.run} of {live.row.name}"
                attempt = self._tasks.create_task(self._attempt(live, what), name=name)
                self._attempts.add(attempt)
                attempt.add_done_callback(self._attempts.discard)
            case Stop(what):
                live.stops[what.run].set()
                self._stop(live, what.run)
            case _:  # the other effects are only stored
                pass

    def _stop(self, live: Live, run: int) -> None:
        number = live.operations.get(run)
        if number is not None:
            span = text_of_span(live.row.timeout_ms)
            self._task_runs.stop(number, f"it took longer than {span}")

    # Running

    async def _attempt(self, live: Live, what: Run) -> None:
        said, outcome = NOTHING_SAID, Outcome.FAILED
        try:
            ended = await self._operated(live, what)
            said, outcome = _said(ended), _outcome(ended)
        except DssError as refused:
            said = Said(failure=refused.message)
        except Exception as error:  # noqa: BLE001 - it ends the attempt alone
            said = Said(failure=contain(PART, error, self._note).message)
        finally:
            live.operations.pop(what.run, None)
            self._release(live, what)
        if live.stops.pop(what.run).is_set() and outcome is not Outcome.DONE:
            outcome = Outcome.TIMED_OUT
        try:
            await self._keep_end(live, what, outcome, said)
        except Exception as error:  # noqa: BLE001 - the next look takes it for interrupted
            contain(PART, error, self._note)
        live.attempts.discard((what.run, what.attempt))
        self._changed.set()

    async def _keep_end(self, live: Live, what: Run, outcome: Outcome, said: Said) -> None:
        while True:
            with suppress(DiskFull):
                await self._feed(live, Ended(self._now(), what.run, outcome), said)
                return
            await asyncio.sleep(SCHEDULE_RETRY_S)

    async def _operated(self, live: Live, what: Run) -> OperationRow:
        """The operation of an attempt, once it has ended."""
        row = await self._applied(live, what)
        live.operations[what.run] = row.number
        if live.stops[what.run].is_set():
            self._stop(live, what.run)
        await self._note_operation(live, what, row.number)
        self._release(live, what)
        return await self._operations.ended(row.number)

    async def _applied(self, live: Live, what: Run) -> OperationRow:
        """The applied operation of an attempt; it waits for an operation that runs the same task.

        Raises:
            OperationInProgress: that took too long.
            DssError: it cannot be applied.
        """
        while True:
            try:
                return await self._apply(live, what)
            except OperationInProgress as other:
                self._release(live, what)
                if not await self._awaited(live, what, int(other.fields["number"])):
                    raise

    async def _awaited(self, live: Live, what: Run, number: int) -> bool:
        """Whether an operation ended before the run was told to stop."""
        stopped = live.stops[what.run]
        async with asyncio.TaskGroup() as waits:
            ended = waits.create_task(self._operations.ended(number), name=f"end of {number}")
            stop = waits.create_task(stopped.wait(), name=f"stop of run {what.run}")
            await asyncio.wait({ended, stop}, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            stop.cancel()
        return not stopped.is_set()

    async def _apply(self, live: Live, what: Run) -> OperationRow:
        attempt = f", attempt {what.attempt}" if what.attempt > 1 else ""
        why = f": {what.reason}" if what.reason else ""
        self._check(live.row)
        whom = f", for {live.row.principal}" if live.row.principal else ""
        return await self._operations.apply(
            RunTask(live.row.task, arguments_of(live.row)),
            caller=Caller(f"{SCHEDULE_PREFIX}{live.row.name}", f"{ORIGIN}{whom}"),
            reason=f"run {what.run}, due at {text_of_ms(what.due_ms)}{attempt}{why}",
        )

    async def _note_operation(self, live: Live, what: Run, number: int) -> None:
        async with self._deciding:
            row = live.runs.unended.get(what.run)
            if row is None or live.row.schedule_id not in self._lives:
                return
            known = replace(row, operation=number)
            with suppress(DiskFull):  # the operation names the run too
                await self._store.commit([Put(known)])
            live.runs.enter([known])

    def _release(self, live: Live, what: Run) -> None:
        begun = self._begun.pop((live.row.schedule_id, what.run), None)
        if begun is not None and not begun.done():
            begun.set_result(None)


def _latest(rows: Sequence[ScheduleRunRow]) -> list[ScheduleRunRow]:
    return list({row.run: row for row in rows}.values())


def _said(ended: OperationRow) -> Said:
    lines = json.loads(ended.after).get(OUTPUT, [])
    return Said("\n".join(lines), ended.failure)


def _outcome(ended: OperationRow) -> Outcome:
    return {DONE: Outcome.DONE, CANCELLED: Outcome.CANCELLED}.get(ended.state, Outcome.FAILED)
