"""Operations: what operators change, planned first, applied as planned, taken back.

::

      plan ──► apply: one commit ──► running ──► done
                (the operation,        │  │
                 the group's new       │  └── cancel ──► cancelling ──► cancelled, or done
                 revision, what        └───────────────► failed
                 its kind needs)

Rules:

1. The commit of its row is the point from which an operation counts. It raises the revision of its
   group on the condition that the group is as it was planned for, so of two operations on one
   revision one wins.
2. What follows the commit is done by the leader of the group, or by work of the kind's own. What a
   daemon that ends does not do, the next one does.
3. One operation at a time runs on a subject. The next one is refused until that has ended.
4. A repeated call with the same operation id does nothing again; it gets the first one's answer.

This module does not know what any kind does: that is in `kinds`.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import NoReturn, Self

from dss_core.errors import (
    DiskFull,
    DssError,
    IllegalArgument,
    NotCancellable,
    NotUndoable,
    OperationEnded,
    OperationIdReused,
    OperationInProgress,
    RevisionMoved,
)
from dssd.clock import Clock
from dssd.events.kinds import OPERATION_APPLIED, OPERATION_ENDED
from dssd.events.model import Event, Note
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.limits import FULL_DISK_RETRY_S
from dssd.operations.changes import Change, Undo, to_json
from dssd.operations.history import (
    CANCELLED,
    CANCELLING,
    DONE,
    FAILED,
    RUNNING,
    UNENDED,
    History,
)
from dssd.operations.limits import (
    OPERATION_ID_BYTES_MAX,
    OPERATIONS_TRIM_EVERY_S,
    REASON_BYTES_MAX,
)
from dssd.operations.plans import Begun, Kind, Plan
from dssd.store.port import Precondition, PreconditionFailed, Put, Store, VersionIs, Write
from dssd.store.rows import GroupRow, MadeMoveRow, OperationRow, PendingMoveRow

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who applies a change, and from where."""

    principal: str
    origin: str


@dataclass(frozen=True, slots=True)
class KindTable:
    """Which kind plans a change, and which one takes an operation back."""

    by_change: Mapping[type[Change], Kind]
    by_name: Mapping[str, Kind]
    """By the part of an operation's kind before the dot, or by all of it."""

    def of_operation(self, row: OperationRow) -> Kind:
        """The kind of an operation that was applied."""
        name = row.kind
        return self.by_name.get(name) or self.by_name[name.partition(".")[0]]


class Operations:
    """Built by `open`. ``async with operations:`` goes on with what had not ended; leaving it
    leaves what has not ended by then to the next daemon."""

    def __init__(
        self,
        store: Store,
        groups: Groups,
        registry: Registry,
        clock: Clock,
        kinds: KindTable,
        history: History,
        note: Note,
    ) -> None:
        self._store = store
        self._groups = groups
        self._registry = registry
        self._clock = clock
        self._kinds = kinds
        self._history = history
        self._note = note
        self._applying = asyncio.Lock()
        self._concluded: asyncio.Queue[tuple[int, str]] = asyncio.Queue()
        """Bounded by the operations that run: a leader concludes each once or twice."""
        self._moved = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        self._standing: list[asyncio.Task[None]] = []
        """The tasks that run as long as this does."""
        self._works: dict[int, asyncio.Task[None]] = {}
        """What is done of operations without a leader, by number."""

    @classmethod
    async def open(
        cls,
        store: Store,
        groups: Groups,
        registry: Registry,
        clock: Clock,
        kinds: KindTable,
        note: Note,
    ) -> "Operations":
        """Read what is kept."""
        history = await History.open(store)
        return cls(store, groups, registry, clock, kinds, history, note)

    async def __aenter__(self) -> Self:
        """Begin to follow operations, those that had not ended first."""
        await self._tasks.__aenter__()
        self._registry.watch_concluded(lambda number: self._concluded.put_nowait((number, "")))
        self._stop_watching = self._groups.watch_removed(self._group_removed)
        self._standing = [
            self._tasks.create_task(self._watch_moves(), name="moves of operations"),
            self._tasks.create_task(self._note_ends(), name="ends of operations"),
            self._tasks.create_task(self._trim(), name="trim operations"),
        ]
        for row in self._history.unended():
            self._resume(row)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop following; no operation ends any more."""
        self._stop_watching()
        for task in (*self._standing, *self._works.values()):
            task.cancel()
        await self._tasks.__aexit__(kind, error, trace)

    # What operators ask

    async def plan(self, change: Change) -> Plan:
        """What the change would do now.

        Raises:
            DssError: it cannot be done.
        """
        if isinstance(change, Undo):
            return await self._plan_undo(change.number)
        return await self._kinds.by_change[type(change)].plan(change)

    async def apply(
        self,
        change: Change,
        *,
        caller: Caller,
        if_revision: int | None = None,
        reason: str = "",
        operation_id: str = "",
    ) -> OperationRow:
        """Apply the change; returns once it counts, which may be before it has ended.

        Raises:
            RevisionMoved: its subject is not as it was when it was planned.
            OperationInProgress: another operation runs on its subject.
            OperationIdReused: the id names an operation of another change.
            DssError: it cannot be done.
        """
        _check_text("reason", reason, REASON_BYTES_MAX)
        _check_text("operation id", operation_id, OPERATION_ID_BYTES_MAX)
        async with self._applying:
            known = self._history.named(operation_id) if operation_id else None
            plan = None if known else await self.plan(change)
            if known is not None:
                return self._repeated(known, change)
            assert plan is not None
            if if_revision is not None and plan.revision != if_revision:
                raise self._moved_since(plan, if_revision)
            self._refuse_beside(plan)
            return await self._begin(change, plan, caller, reason, operation_id)

    def get(self, number: int) -> OperationRow:
        """One operation.

        Raises:
            OperationNotFound: there is none.
        """
        return self._history.get(number)

    def newest(self) -> Iterable[OperationRow]:
        """All operations, the newest first."""
        return self._history.newest()

    async def made_moves(self, number: int) -> list[MadeMoveRow]:
        """The moves of cursors that it made."""
        return await self._history.made_moves(number)

    async def pending_moves(self, row: OperationRow) -> list[PendingMoveRow]:
        """The moves of cursors that it waits to make."""
        return await self._history.pending_moves(row)

    def now_ms(self) -> int:
        """By the wall clock, for plans."""
        return self._clock.wall_ms()

    async def watch(self, number: int) -> AsyncGenerator[OperationRow, None]:
        """The operation now and each time that something of it is done, until it has ended.

        Raises:
            OperationNotFound: there is none.
        """
        while True:
            moved = self._moved
            row = self._history.get(number)
            yield row
            if row.state not in UNENDED:
                return
            await moved.wait()

    async def cancel(self, number: int) -> OperationRow:
        """Stop the rest of an operation; what it did stays done.

        Raises:
            OperationNotFound: there is none.
            OperationEnded: nothing of it is left.
            NotCancellable: it cannot be stopped.
        """
        async with self._applying:
            row = self._history.get(number)
            if row.state not in UNENDED:
                raise OperationEnded(number=number, kind=row.kind, state=row.state)
            instruction = self._kinds.of_operation(row).cancellation(row)
            if instruction is None:
                raise NotCancellable(number=number, kind=row.kind)
            await self._history.change(replace(row, state=CANCELLING))
            self._registry.instruct(row.group_id, instruction)
            return self._history.get(number)

    # Applying

    async def _plan_undo(self, number: int) -> Plan:
        row = self._history.get(number)
        if row.state in UNENDED:
            raise OperationInProgress(subject=row.subject, number=number, kind=row.kind)
        if row.undone_by:
            why = f"operation {row.undone_by} took it back already"
            raise NotUndoable(number=number, kind=row.kind, why=why)
        if row.not_undoable_because:
            raise NotUndoable(number=number, kind=row.kind, why=row.not_undoable_because)
        if row.group_id and not self._groups.has(row.group_id):
            raise NotUndoable(number=number, kind=row.kind, why="its group was removed")
        plan = await self._kinds.of_operation(row).plan_undo(row)
        return replace(plan, undoes=number)

    def _repeated(self, known: OperationRow, change: Change) -> OperationRow:
        if known.asked != to_json(change):
            raise OperationIdReused(
                operation_id=known.operation_id, number=known.number, kind=known.kind
            )
        return known

    def _moved_since(self, plan: Plan, planned: int) -> RevisionMoved:
        later = [
            row
            for row in self._history.newest()
            if row.subject == plan.subject and row.revision > planned
        ]
        last = "it was edited"
        if later:
            last = f"operation {later[0].number} applied {later[0].kind}"
        return RevisionMoved(subject=plan.subject, planned=planned, found=plan.revision, last=last)

    def _refuse_beside(self, plan: Plan) -> None:
        row = self._history.running_on(plan.subject)
        if row is not None:
            raise OperationInProgress(subject=row.subject, number=row.number, kind=row.kind)

    async def _begin(
        self, asked: Change, plan: Plan, caller: Caller, reason: str, operation_id: str
    ) -> OperationRow:
        number = await self._store.next_id()
        begun = Begun() if plan.nothing_to_do else await self._begun(plan, number)
        goes_on = begun.instruction is not None or begun.work is not None
        now_ms = self._clock.wall_ms()
        revision = plan.revision + (not plan.nothing_to_do)
        row = OperationRow(
            number=number,
            operation_id=operation_id or f"dssd-{number}",
            kind=plan.kind,
            subject=plan.subject,
            group_id=plan.group.group_id if plan.group else 0,
            state=RUNNING if goes_on else DONE,
            asked=to_json(asked),
            change=to_json(plan.change),
            summary=plan.summary,
            reason=reason,
            principal=caller.principal,
            origin=caller.origin,
            applied_at_ms=now_ms,
            ended_at_ms=None if goes_on else now_ms,
            revision=revision,
            before=json.dumps(begun.before, sort_keys=True),
            after=json.dumps(begun.after, sort_keys=True),
            failure="",
            undoes=plan.undoes,
            undone_by=0,
            not_undoable_because=plan.not_undoable_because,
        )
        group = None if begun.group is None else replace(begun.group, revision=revision)
        await self._commit(row, begun, group)
        self._note_applied(row)
        self._follow(row, begun)
        return self._history.get(number)

    async def _begun(self, plan: Plan, number: int) -> Begun:
        if plan.undoes:
            undone = self._history.get(plan.undoes)
            return await self._kinds.of_operation(undone).begin_undo(undone, plan, number)
        return await self._kinds.by_change[type(plan.change)].begin(plan, number)

    async def _commit(self, row: OperationRow, begun: Begun, group: GroupRow | None) -> None:
        writes: list[Write] = list(begun.writes)
        conditions: list[Precondition] = list(begun.preconditions)
        if group is not None:
            found = await self._store.read(GroupRow, (group.group_id,))
            if found is None:
                self._groups.get(group.group_id)
                raise AssertionError(f"group {group.group_id} has no row")
            conditions.append(VersionIs(GroupRow, (group.group_id,), found.version))
            writes.append(Put(group))
        try:
            await self._history.begin(row, writes, conditions)
        except PreconditionFailed:
            if group is not None:
                self._groups.get(group.group_id)  # it says that the group was removed
            raise
        if group is not None:
            self._groups.note_changed(group)
        self._ring()

    def _follow(self, row: OperationRow, begun: Begun) -> None:
        if begun.instruction is not None:
            self._registry.instruct(row.group_id, begun.instruction)
        if begun.work is not None:
            work = self._do(row, begun)
            name = f"operation {row.number}"
            self._works[row.number] = self._tasks.create_task(work, name=name)

    async def _do(self, row: OperationRow, begun: Begun) -> None:
        assert begun.work is not None
        failure = ""
        try:
            await begun.work()
        except DssError as error:
            failure = error.message
        finally:
            self._works.pop(row.number, None)
        self._concluded.put_nowait((row.number, failure))

    # Ending

    def _resume(self, row: OperationRow) -> None:
        if row.group_id and not self._groups.has(row.group_id):
            self._concluded.put_nowait((row.number, "the group was removed"))
            return
        kind = self._kinds.of_operation(row)
        self._follow(row, kind.resumed(row))
        cancellation = kind.cancellation(row) if row.state == CANCELLING else None
        if cancellation is not None:
            self._registry.instruct(row.group_id, cancellation)

    async def _note_ends(self) -> NoReturn:
        while True:
            number, failure = await self._concluded.get()
            await self._end(number, failure)

    async def _end(self, number: int, failure: str) -> None:
        row = self._history.get(number)
        if row.state not in UNENDED:
            return
        state = FAILED if failure else DONE
        if row.state == CANCELLING and not failure:
            made = len(await self._history.made_moves(number))
            state = DONE if made == json.loads(row.after).get("moves") else CANCELLED
        ended = replace(row, state=state, failure=failure, ended_at_ms=self._clock.wall_ms())
        while True:
            try:
                await self._history.change(ended)
                break
            except DiskFull:
                await asyncio.sleep(FULL_DISK_RETRY_S)
        self._note_ended(ended)
        self._ring()

    def _group_removed(self, group: GroupRow) -> None:
        for row in self._history.unended():
            if row.group_id == group.group_id and row.number not in self._works:
                self._concluded.put_nowait((row.number, "the group was removed"))

    async def _watch_moves(self) -> None:
        async for _ in self._store.watch(MadeMoveRow):
            self._ring()

    async def _trim(self) -> None:
        while True:
            with suppress(DiskFull):  # the next time will do
                await self._history.trim(self._clock.wall_ms())
            await asyncio.sleep(OPERATIONS_TRIM_EVERY_S)

    def _ring(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    # Telling

    def _note_applied(self, row: OperationRow) -> None:
        reason = f": {row.reason}" if row.reason else ""
        sentence = f"{row.principal} applied operation {row.number}, {row.summary}{reason}."
        self._note(Event(OPERATION_APPLIED, row.subject, sentence, _fields(row)))

    def _note_ended(self, row: OperationRow) -> None:
        took_ms = (row.ended_at_ms or row.applied_at_ms) - row.applied_at_ms
        failure = f": {row.failure}" if row.failure else ""
        sentence = (
            f"Operation {row.number}, {row.kind}, is {row.state} after {took_ms} ms{failure}."
        )
        self._note(Event(OPERATION_ENDED, row.subject, sentence, _fields(row)))


def _fields(row: OperationRow) -> dict[str, str]:
    return {
        "operation": str(row.number),
        "kind": row.kind,
        "principal": row.principal,
        "origin": row.origin,
        "reason": row.reason,
        "state": row.state,
    }


def _check_text(name: str, text: str, bytes_max: int) -> None:
    if len(text.encode()) > bytes_max:
        raise IllegalArgument(argument=f"the {name}", rule=f"at most {bytes_max} bytes")
