"""The operations that create, edit, pause, resume and remove schedules.

Each is one commit of the schedule's row under its version, so it counts at once. An edit, a pause
and a resume are taken back field by field. Invariant: a plan checks the complete definition. A
schedule that was created again under the same name is a different one: an undo leaves it alone.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from dss_core.changes import (
    Change,
    CreateSchedule,
    EditSchedule,
    PauseSchedule,
    RemoveSchedule,
    ResumeSchedule,
    Undo,
)
from dss_core.counted import counted
from dss_core.errors import IllegalArgument, NotUndoable, ScheduleNotFound
from dss_core.times import text_of_span
from dssd.clock import Clock
from dssd.operations.kinds.edited_fields import fields_before, taken_back
from dssd.operations.kinds.final import Unstoppable
from dssd.operations.plans import Begun, KindTable, Plan
from dssd.schedules.book import Book
from dssd.schedules.definitions import checked, edited, made, times_of, wanted
from dssd.schedules.tasks.model import Tasks
from dssd.store.paging import scan_all
from dssd.store.port import Absent, Delete, Put, Store, VersionIs, Write
from dssd.store.rows import OperationRow
from dssd.store.schedule_rows import SchedulePositionRow, ScheduleRow, ScheduleRunRow

PLANNED_TIMES = 3
"""Due times that a plan names: enough to see what an expression means."""


SCHEDULE_ID = "schedule_id"
"""In ``before`` of an operation: one made anew under its name is another."""

CREATE, EDIT, REMOVE = "schedules.create", "schedules.edit", "schedules.rm"
PAUSE, RESUME = "schedules.pause", "schedules.resume"


class DefinitionKinds(Unstoppable):
    """Changes of schedules."""

    def __init__(self, store: Store, book: Book, tasks: Tasks, clock: Clock) -> None:
        self._store = store
        self._book = book
        self._tasks = tasks
        self._clock = clock

    def kinds(self) -> KindTable:
        """As operations look kinds up."""
        changes = (CreateSchedule, EditSchedule, RemoveSchedule, PauseSchedule, ResumeSchedule)
        return KindTable(dict.fromkeys(changes, self), {"schedules": self})

    async def plan(self, change: Any) -> Plan:  # noqa: ANN401 - of five kinds
        """What the change would do.

        Raises:
            DssError: it cannot be done.
        """
        match change:
            case CreateSchedule():
                return self._plan_creation(change)
            case RemoveSchedule():
                return await self._plan_removal(change)
            case EditSchedule():
                row = self._book.get(change.schedule)
                fields = wanted(row, change)
                if not fields:
                    rule = "name what is to change"
                    raise IllegalArgument(argument="an edit of nothing", rule=rule)
                return self._planned(change, EDIT, row, fields)
            case _:
                paused = isinstance(change, PauseSchedule)
                row = self._book.get(change.schedule)
                return self._planned(change, PAUSE if paused else RESUME, row, {"paused": paused})

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The rows as the change leaves them."""
        match plan.change:
            case CreateSchedule():
                return await self._begin_creation(plan.change, plan.principal)
            case RemoveSchedule():
                return await self._begin_removal(plan.change.schedule)
            case _:
                return await self._begin_edit(self._name_of(plan), plan.found, plan.principal)

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """What setting the fields back would do.

        Raises:
            NotUndoable: the schedule is gone, or a later operation changed the same.
        """
        fields = await fields_before(self._store, undone)
        row = self._of(undone)
        planned = self._planned(Undo(undone.number), undone.kind, row, fields)
        return taken_back(planned, undone)

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """As `begin`."""
        return await self._begin_edit(self._of(undone).name, plan.found, plan.principal)

    async def resumed(self, row: OperationRow) -> Begun:
        """Nothing is left: all of it was in one commit."""
        return Begun()

    def _of(self, undone: OperationRow) -> ScheduleRow:
        try:
            row = self._book.get(_name(undone.subject))
        except ScheduleNotFound:
            row = None
        if row is None or self._is_older(row, undone):
            why = "its schedule was removed"
            raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
        return row

    @staticmethod
    def _is_older(row: ScheduleRow, undone: OperationRow) -> bool:
        return row.created_at_ms > undone.applied_at_ms

    def _name_of(self, plan: Plan) -> str:
        return _name(plan.subject)

    # Creation

    def _plan_creation(self, change: CreateSchedule) -> Plan:
        self._book.require_room(change.schedule)
        row = checked(made(change, 0, self._clock.wall_ms()), self._tasks)
        effects = [self._tasks.get(row.task).meaning]
        if row.paused:
            effects.append("It is paused: nothing runs until it is resumed.")
        else:
            effects.append(self._next_times(row))
        return Plan(
            change=change,
            kind=CREATE,
            subject=_subject(row.name),
            revision=0,
            summary=f"schedule {row.task} as {row.name}, {row.cron} ({row.time_zone})",
            effects=tuple(effects),
            not_undoable_because=f"remove it instead: dssctl schedules rm {row.name}",
        )

    async def _begin_creation(self, change: CreateSchedule, principal: str) -> Begun:
        schedule_id = await self._store.next_id()
        row = checked(made(change, schedule_id, self._clock.wall_ms()), self._tasks)
        row = replace(row, principal=principal)
        return Begun(
            writes=[Put(row)],
            preconditions=[Absent(ScheduleRow, (row.name,))],
            committed=partial(self._book.note, row),
            after={SCHEDULE_ID: schedule_id, "cron": row.cron, "time_zone": row.time_zone},
        )

    def _next_times(self, row: ScheduleRow) -> str:
        times = times_of(row)
        due = islice(times.following(self._clock.wall_ms()), PLANNED_TIMES)
        return f"It is due at {', '.join(map(times.local, due))}, and so on."

    # Edits, pauses, resumes

    def _planned(
        self, change: Change, kind: str, row: ScheduleRow, fields: Mapping[str, Any]
    ) -> Plan:
        changed = {name: value for name, value in fields.items() if getattr(row, name) != value}
        after = checked(edited(row, changed, self._clock.wall_ms()), self._tasks)
        effects: list[str] = []
        if changed.get("paused"):
            effects.append("Due times pass without a run. A run that is under way goes on.")
        elif changed.keys() & {"cron", "time_zone", "jitter_ms", "paused"}:
            effects.append(self._next_times(after))
        return Plan(
            change=change,
            kind=kind,
            subject=_subject(row.name),
            revision=row.revision,
            summary=f"{_verb(kind)} {row.name}: {_written(row, changed)}",
            effects=tuple(effects),
            nothing_to_do=not changed,
            found=changed,
        )

    async def _begin_edit(self, name: str, changed: Mapping[str, Any], principal: str) -> Begun:
        """A mere pause does not make the caller the owner of later runs."""
        found = await self._store.read(ScheduleRow, (name,))
        if found is None:
            raise ScheduleNotFound(schedule=name)
        row = checked(edited(found.row, changed, self._clock.wall_ms()), self._tasks)
        if not changed.get("paused"):
            row = replace(row, principal=principal)
        return Begun(
            writes=[Put(row)],
            preconditions=[VersionIs(ScheduleRow, (name,), found.version)],
            committed=partial(self._book.note, row),
            before={field: getattr(found.row, field) for field in changed},
            after=dict(changed),
        )

    # Removal

    async def _plan_removal(self, change: RemoveSchedule) -> Plan:
        row = self._book.get(change.schedule)
        runs = await scan_all(self._store, ScheduleRunRow, (row.schedule_id,))
        effects = [f"The history of {counted(len(runs), 'run')} goes with it."]
        if any(found.row.ended_at_ms is None for found in runs):
            effects.append("A run that is under way goes on to its end.")
        return Plan(
            change=change,
            kind=REMOVE,
            subject=_subject(row.name),
            revision=row.revision,
            summary=f"remove the schedule {row.name}: {row.task}, {row.cron} ({row.time_zone})",
            effects=tuple(effects),
            not_undoable_because="its history is deleted; create it again",
        )

    async def _begin_removal(self, name: str) -> Begun:
        found = await self._store.read(ScheduleRow, (name,))
        if found is None:
            raise ScheduleNotFound(schedule=name)
        row = found.row
        runs = await scan_all(self._store, ScheduleRunRow, (row.schedule_id,))
        writes: list[Write] = [
            Delete(ScheduleRow, (name,)),
            Delete(SchedulePositionRow, (row.schedule_id,)),
        ]
        writes += [Delete(ScheduleRunRow, (row.schedule_id, each.row.run)) for each in runs]
        return Begun(
            writes=writes,
            preconditions=[VersionIs(ScheduleRow, (name,), found.version)],
            committed=partial(self._book.note_removed, row),
            before={
                SCHEDULE_ID: row.schedule_id,
                "cron": row.cron,
                "task": row.task,
                "arguments": row.arguments,
            },
        )


def _subject(name: str) -> str:
    return f"schedule/{name}"


def _name(subject: str) -> str:
    return subject.removeprefix("schedule/")


def _verb(kind: str) -> str:
    return kind.split(".")[1]


def _written(row: ScheduleRow, changed: Mapping[str, Any]) -> str:
    if not changed:
        return "nothing would change"
    if "paused" in changed:
        return "due times pass" if changed["paused"] else "due times count again"
    return ", ".join(
        f"{name.removesuffix('_ms').replace('_', ' ')} from "
        f"{_value(name, getattr(row, name))} to {_value(name, value)}"
        for name, value in changed.items()
    )


def _value(name: str, value: object) -> str:
    if name.endswith("_ms") and isinstance(value, int):
        return text_of_span(value)
    if name == "arguments":
        given = json.loads(str(value))
        return " ".join(f"{key}={text}" for key, text in given.items()) or "none"
    return f"'{value}'" if name == "cron" else str(value)
