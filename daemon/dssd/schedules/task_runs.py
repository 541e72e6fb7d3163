"""Runs tasks as operations: plans and applies them, keeps their output, stops them.

Invariant: a run of a previous daemon counts as failed, because its progress is unknown. If a task
must run alone, a second run is refused with the number of the first. This module does not know of
schedules.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from dss_core.changes import RunTask
from dss_core.errors import DssError, IllegalArgument
from dss_core.times import text_of_span
from dssd.events.model import Note
from dssd.operations.kinds.final import Final
from dssd.operations.plans import EVERYTHING, Begun, KindTable, Made, Plan, Worked
from dssd.schedules.limits import RUN_TIMEOUT_MS_MAX, RUN_TIMEOUT_MS_MIN
from dssd.schedules.run_output import RunOutput
from dssd.schedules.tasks.model import Given, Say, Task, Tasks
from dssd.store.rows import OperationRow
from dssd.supervision.containment import contain

TASK_STOP_S = 10.0
"""How long a stopped task may clean up before its run counts as ended."""


RUN_TASK = "tasks.run"
"""The kind of the operation."""

OUTPUT = "output"
"""What a run said, in ``after`` of its operation."""

INTERRUPTED = "the daemon ended while it ran"


class TaskRuns:
    """The runs that are under way."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._under_way: dict[int, asyncio.Task[None]] = {}
        """By the number of the operation."""
        self._outputs: dict[int, RunOutput] = {}
        """What they said so far."""
        self._stopped: dict[int, str] = {}
        """Reasons of stopped runs; empty: an operator cancelled the run."""
        self._given_up: set[int] = set()
        """Operations that were cancelled before their work was done."""

    def stop(self, number: int, why: str) -> None:
        """End a run; it fails for that reason. One that has ended is left alone."""
        task = self._under_way.get(number)
        if task is not None:
            self._stopped[number] = why
            task.cancel()

    def said(self, number: int) -> list[str]:
        """What a run that is under way said so far, and how far it is."""
        output = self._outputs.get(number)
        if output is None:
            return []
        return [*output.lines, *([output.standing] if output.standing else [])]

    def is_under_way(self, number: int) -> bool:
        """Whether a run has not ended."""
        return number in self._under_way

    def take_given_up(self, number: int) -> bool:
        """Whether it was cancelled before its work was done; asked once."""
        given_up = number in self._given_up
        self._given_up.discard(number)
        return given_up

    async def work(self, task: Task, change: RunTask, number: int) -> Worked:
        """Run it, as the operation of that number."""
        output = RunOutput()
        given = task.given(change.arguments)
        running = asyncio.create_task(_run(task, given, output), name=f"task {task.name}")
        self._under_way[number] = running
        self._outputs[number] = output
        try:
            failure = await self._failure(running, change, number)
        finally:
            running.cancel()
            await asyncio.wait({running}, timeout=TASK_STOP_S)
            self._under_way.pop(number, None)
            self._outputs.pop(number, None)
            self._stopped.pop(number, None)
        return Worked({OUTPUT: output.lines}, failure)

    async def _failure(self, running: "asyncio.Task[None]", change: RunTask, number: int) -> str:
        """Why a run failed, once it has ended; empty where it did not."""
        timeout_ms = change.timeout_ms or RUN_TIMEOUT_MS_MAX
        done, _ = await asyncio.wait({running}, timeout=timeout_ms / 1_000)
        if not done:
            self.stop(number, f"it took longer than {text_of_span(timeout_ms)}")
            await asyncio.wait({running}, timeout=TASK_STOP_S)
        if not running.done():
            return self._stopped[number]
        try:
            running.result()
        except DssError as failed:
            return self._stopped.get(number) or failed.message
        except asyncio.CancelledError:
            why = self._stopped.get(number, "it was cancelled")
            if not why:
                self._given_up.add(number)
            return why
        except Exception as error:  # noqa: BLE001 - it ends the run alone
            return contain(f"task {change.task}", error, self._note).message
        return self._stopped.get(number, "")


class TaskRunKind(Final):
    """The kind of operations that run tasks."""

    def __init__(self, tasks: Tasks, runs: TaskRuns) -> None:
        self._tasks = tasks
        self._runs = runs

    def kinds(self) -> KindTable:
        """As operations look kinds up."""
        return KindTable({RunTask: self}, {RUN_TASK: self})

    async def plan(self, change: RunTask) -> Plan:
        """What running the task would do.

        Raises:
            TaskNotFound, DssError: it cannot be run.
        """
        task = self._tasks.get(change.task)
        task.given(change.arguments)
        timeout_ms = change.timeout_ms
        if timeout_ms is not None and not RUN_TIMEOUT_MS_MIN <= timeout_ms <= RUN_TIMEOUT_MS_MAX:
            most = text_of_span(RUN_TIMEOUT_MS_MAX)
            raise IllegalArgument(argument=f"timeout {timeout_ms} ms", rule=f"it is 1s to {most}")
        given = "".join(f" {name}={value}" for name, value in sorted(change.arguments.items()))
        return Plan(
            change=change,
            kind=RUN_TASK,
            subject=f"task/{task.name}",
            revision=0,
            summary=f"run {task.name}{given}",
            effects=(task.meaning,),
            not_undoable_because="what a task did stays done",
            beside=frozenset() if task.alone else EVERYTHING,
        )

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The run, as work."""
        change = plan.change
        assert isinstance(change, RunTask)
        task = self._tasks.get(change.task)
        return Begun(work=partial(self._runs.work, task, change, number))

    def cancellation(self, row: OperationRow) -> Callable[[], None] | None:
        """What stops the task; None where it has ended."""
        if not self._runs.is_under_way(row.number):
            return None
        return partial(self._runs.stop, row.number, "")

    async def made(self, row: OperationRow) -> Made:
        """All of it, or nothing that could be counted."""
        return Made(0 if self._runs.take_given_up(row.number) else 1, 1)

    async def resumed(self, row: OperationRow) -> Begun:
        """A task is not restarted: a caller has to ask for a new run."""
        return Begun(work=_interrupted)


async def _run(task: Task, given: Given, say: Say) -> None:
    await task.work(given, say)


async def _interrupted() -> Worked:
    return Worked({OUTPUT: []}, INTERRUPTED)
