"""Operations: changes by operators, planned first, applied as planned, and undone.

::

      plan ──► apply: one commit ──► running ──► done
                (the operation,        │  │
                 the group's new       │  └── cancel ──► cancelling ──► cancelled, or done
                 revision, what        └───────────────► failed
                 its kind needs)

Rules:

1. An operation counts from the commit of its row. The commit raises the revision of the group, with
   the precondition that the group is as planned; so of two operations on one revision one wins.
2. After the commit, the leader of the group or work of the kind's own carries the operation out. If
   the daemon ends before that is done, the next one goes on.
3. One operation at a time runs on a subject. Another one is refused until that has ended, unless
   its kind may run beside it: a resume does not wait for the pause that it ends. An operation that
   depends on further subjects is refused while operations run on these: a job depends on the
   storage topic that its topic writes to.
4. A repeated call with the same operation id changes nothing; it gets the first answer again.

This module does not know what any kind does: that is in `kinds`.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Container, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from dss_core.changes import Change, Undo
from dss_core.errors import (
    DssError,
    GroupDestroyed,
    GrowthOfNoUse,
    IllegalArgument,
    NotCancellable,
    NothingToSwitchTo,
    NotUndoable,
    OperationEnded,
    OperationIdReused,
    OperationInProgress,
    OperationNotFound,
    RevisionMoved,
    StorageTopicWaits,
)
from dss_core.ids import StreamId
from dss_core.sentences import as_sentence
from dssd.clock import Clock
from dssd.events.kinds import OPERATION_APPLIED
from dssd.events.model import Event
from dssd.events.teller import Teller
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.leaders.takeover import CANCELLING
from dssd.operations.following import Following, fields_of, is_told
from dssd.operations.hand_skips import told_of_hand_skips
from dssd.operations.history import (
    DONE,
    RUNNING,
    UNENDED,
    History,
    changed_nothing,
)
from dssd.operations.plans import (
    Begun,
    Cancellation,
    CountsRecords,
    KindTable,
    Made,
    Plan,
    change_text,
    done_or_undone,
)
from dssd.store.along import along
from dssd.store.port import Precondition, PreconditionFailed, Put, Store, VersionIs, Write
from dssd.store.rows import GroupRow, MadeMoveRow, OperationRow, PendingMoveRow
from dssd.store.uninterrupted import finished
from dssd.supervision.containment import between_store_and_memory

RECORDS_LOOK_S = 1.0
"""The pause between looks at how many records came back: a person reads no faster, and each look
surveys the group, some milliseconds."""

OPERATION_WATCH_REST_S = 0.05
"""The pause between two answers of such a call: streams that are done together are one answer."""

REASON_BYTES_MAX = 1_000
"""The bound on a reason: a few sentences and a ticket."""

OPERATION_ID_BYTES_MAX = 100
"""The bound on an operation id: a UUID has 36 bytes, a ticket with a host name some 60."""


OWN_ID_PREFIX = "dssd-"
CHANGED_NOTHING = "it changed nothing"
"""Why an operation that found nothing to do cannot be undone."""
"""The prefix of the ids of operations that were applied without one."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who applies a change, and from where."""

    principal: str
    origin: str


class Operations:
    """Built by `open`; from then on, kept operations can be read. Changes are planned and applied
    within `running`; operations that still run at its end are left to the next daemon."""

    def __init__(
        self,
        store: Store,
        groups: Groups,
        registry: Registry,
        clock: Clock,
        history: History,
        teller: Teller,
    ) -> None:
        self._store = store
        self._groups = groups
        self._registry = registry
        self._clock = clock
        self._history = history
        self._teller = teller
        self._applying = asyncio.Lock()
        self._following = Following(store, groups, registry, clock, history, teller)

    @asynccontextmanager
    async def running(self, kinds: KindTable) -> AsyncIterator[None]:
        """Apply operations of these kinds; those that had not ended go on.

        Kinds are given only here, as operations of one kind apply others.
        """
        self._kinds = kinds
        async with self._following.running(kinds):
            yield

    @classmethod
    async def open(
        cls,
        store: Store,
        groups: Groups,
        registry: Registry,
        clock: Clock,
        teller: Teller,
    ) -> "Operations":
        """Read what is kept."""
        history = await History.open(store)
        return cls(store, groups, registry, clock, history, teller)

    # What operators ask

    async def plan(self, change: Change) -> Plan:
        """What the change would do now.

        Raises:
            DssError: it cannot be done.
        """
        if isinstance(change, Undo):
            plan = await self._plan_undo(change.number)
        else:
            try:
                plan = await self._kinds.by_change[type(change)].plan(change)
            except (StorageTopicWaits, NothingToSwitchTo, GrowthOfNoUse) as refused:
                # Name the running growth as the reason, rather than work of an operator.
                self._refuse_beside_running(str(refused.fields["topic"]))
                raise
        return await told_of_hand_skips(plan, self._history)

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
        if operation_id.startswith(OWN_ID_PREFIX):
            raise IllegalArgument(
                argument=f"the operation id {operation_id}",
                rule=f"{OWN_ID_PREFIX}N is of the daemon itself",
            )
        return await self._apply(change, caller, if_revision, reason, operation_id)

    async def apply_part(
        self, whole: int, part: int, change: Change, *, if_revision: int
    ) -> OperationRow:
        """Apply a change that is a part of a running operation, in the name of its caller.

        Repeating it, even in the next daemon, changes nothing more.

        Raises:
            OperationNotFound: there is no such operation.
            DssError: as of `apply`.
        """
        row = self._history.get(whole)
        caller = Caller(row.principal, f"operation {whole}")
        operation_id = f"{OWN_ID_PREFIX}{whole}.{part}"
        return await self._apply(change, caller, if_revision, row.reason, operation_id, whole)

    async def _apply(
        self,
        change: Change,
        caller: Caller,
        if_revision: int | None,
        reason: str,
        operation_id: str,
        whole: int = 0,
    ) -> OperationRow:
        async with self._applying:
            known = self._history.named(operation_id) if operation_id else None
            if known is not None:
                return _repeated(await self._history.whole(known), change)
            plan = await self.plan(change)
            if if_revision is not None and plan.revision != if_revision:
                raise self.moved_since(plan.subject, if_revision, plan.revision)
            for subject in (plan.subject, *plan.touches):
                self._refuse_beside_running(subject, plan.beside, whole)
            # A caller that goes away must not leave it committed and not followed.
            beginning = self._begin(change, plan, caller, reason, operation_id)
            return await finished(beginning, name=f"begin {plan.kind}")

    def get(self, number: int) -> OperationRow:
        """One operation; of an old one perhaps without its details.

        Raises:
            OperationNotFound: there is none.
        """
        return self._history.get(number)

    def kind_of(self, number: int) -> str:
        """The kind of an operation; empty if it is not kept any more."""
        try:
            return self._history.get(number).kind
        except OperationNotFound:
            return ""

    async def whole(self, number: int) -> OperationRow:
        """One operation, with what was asked and changed.

        Raises:
            OperationNotFound: there is none.
        """
        return await self._history.whole(number)

    def unended(self) -> list[OperationRow]:
        """Those that have not ended, the oldest first."""
        return self._history.unended()

    def newest(self, operation_id: str = "") -> Iterable[OperationRow]:
        """All operations, the newest first, or the one that an id names."""
        if not operation_id:
            return self._history.newest()
        number = self._history.named(operation_id)
        return () if number is None else (self._history.get(number),)

    async def made_moves(self, number: int) -> list[MadeMoveRow]:
        """The moves of cursors that it made."""
        return await self._history.made_moves(number)

    async def undo_refusal(self, number: int) -> str:
        """Why the operation cannot be undone now; empty: it can."""
        try:
            await self._plan_undo(number)
        except NotUndoable as refused:
            return str(refused.fields["why"])
        except DssError as failed:
            return failed.message
        return ""

    async def pending_moves(self, row: OperationRow) -> list[PendingMoveRow]:
        """The moves of cursors that it waits to make."""
        return await self._history.pending_moves(row)

    async def records_made(self, row: OperationRow) -> Made | None:
        """How many records it has dealt with; None where it has ended, or counts none."""
        kind = self._kinds.of_operation(row)
        runs = row.state in UNENDED and self._groups.has(row.group_id)
        if not (runs and isinstance(kind, CountsRecords)):
            return None
        return await kind.records_made(await self._history.whole(row.number))

    def holders(self, row: OperationRow) -> dict[StreamId, str]:
        """The holder of each stream of its group, by client id: it may wait for these."""
        live = self._registry.snapshot(row.group_id)
        return {each.stream: each.client_id for each in live.streams} if live else {}

    def now_ms(self) -> int:
        """By the wall clock, for plans."""
        return self._clock.wall_ms()

    async def watch(self, number: int) -> AsyncGenerator[OperationRow, None]:
        """The operation now and after each progress, until it has ended.

        Progress of single records wakes nobody, so operations on records are polled.

        Raises:
            OperationNotFound: there is none.
        """
        while True:
            moved = self._following.moved
            row = self._history.get(number)
            yield row
            if row.state not in UNENDED:
                return
            counts = await self.records_made(row) is not None
            with suppress(TimeoutError):
                async with asyncio.timeout(RECORDS_LOOK_S if counts else None):
                    await moved.wait()
            await asyncio.sleep(OPERATION_WATCH_REST_S)

    async def ended(self, number: int) -> OperationRow:
        """The whole operation, as soon as it has ended.

        Raises:
            OperationNotFound: there is none.
        """
        while True:
            moved = self._following.moved
            if self._history.get(number).state not in UNENDED:
                return await self._history.whole(number)
            await moved.wait()

    async def cancel(self, number: int, *, caller: Caller, reason: str = "") -> OperationRow:
        """Stop the rest of an operation; what it did stays done.

        Raises:
            OperationNotFound: there is none.
            OperationEnded: nothing of it is left.
            NotCancellable: it cannot be stopped.
        """
        _check_text("reason", reason, REASON_BYTES_MAX)
        why = f"{caller.principal} cancelled it{f': {reason}' if reason else ''}"
        async with self._applying:
            row = self._history.get(number)
            if row.state not in UNENDED:
                raise OperationEnded(number=number, kind=row.kind, state=row.state)
            cancellation = self._kinds.of_operation(row).cancellation(row)
            if cancellation is None:
                raise NotCancellable(number=number, kind=row.kind)
            # A caller that goes away must not leave it committed and no leader told.
            cancelling = self._cancel(row, why, cancellation)
            return await finished(cancelling, name=f"cancel operation {number}")

    async def _cancel(
        self, row: OperationRow, why: str, cancellation: Cancellation
    ) -> OperationRow:
        cancelling = await self._history.change(
            row.number, lambda known: replace(known, state=CANCELLING, failure=why)
        )
        if cancelling is None:
            ended = self._history.get(row.number)
            raise OperationEnded(number=ended.number, kind=ended.kind, state=ended.state)
        self._following.give_up(row, cancellation)
        return cancelling

    # Applying

    async def _plan_undo(self, number: int) -> Plan:
        row = await self._history.whole(number)
        if row.state in UNENDED:
            raise OperationInProgress(subject=row.subject, number=number, kind=row.kind)
        if row.undone_by:
            why = f"operation {row.undone_by} took it back already"
            raise NotUndoable(number=number, kind=row.kind, why=why)
        why_not = CHANGED_NOTHING if changed_nothing(row) else row.not_undoable_because
        if why_not:
            raise NotUndoable(number=number, kind=row.kind, why=why_not)
        if row.group_id and not self._groups.has(row.group_id):
            raise NotUndoable(number=number, kind=row.kind, why="its group was removed")
        plan = await self._kinds.of_operation(row).plan_undo(row)
        return replace(plan, kind=_kind_of_undo(row.kind), undoes=number)

    def moved_since(self, subject: str, planned: int, found: int) -> RevisionMoved:
        """The exception for a subject that was changed since the plan."""
        later = [
            row
            for row in self._history.newest()
            if row.subject == subject and row.revision > planned
        ]
        last = "it was edited"
        if later:
            last = f"operation {later[0].number} applied {later[0].kind}"
        return RevisionMoved(subject=subject, planned=planned, found=found, last=last)

    def _refuse_beside_running(
        self, subject: str, beside: Container[str] = frozenset(), whole: int = 0
    ) -> None:
        """Refuse a change on a subject with a running operation, unless it is a part of that."""
        row = self._history.running_on(subject, beside=beside)
        if row is not None and row.number != whole:
            raise OperationInProgress(subject=row.subject, number=row.number, kind=row.kind)

    async def _begin(
        self, asked: Change, plan: Plan, caller: Caller, reason: str, operation_id: str
    ) -> OperationRow:
        if self._history.has_many():
            await self._history.trim(self._clock.wall_ms())
        number = await self._store.next_id()
        plan = replace(plan, reason=reason, principal=caller.principal)
        begun = Begun() if plan.nothing_to_do else await self._begun(plan, number)
        goes_on = begun.instruction is not None or begun.work is not None
        now_ms = self._clock.wall_ms()
        is_late = plan.group is not None and begun.group is None and not begun.writes
        if is_late and not goes_on and not plan.nothing_to_do:
            # Since the plan was made, the members came to the same result.
            plan = replace(plan, nothing_to_do=True, summary=f"{plan.summary}: not any more")
            begun = Begun()
        revision = plan.revision + (not plan.nothing_to_do)
        row = OperationRow(
            number=number,
            operation_id=operation_id or f"{OWN_ID_PREFIX}{number}",
            kind=plan.kind,
            subject=plan.subject,
            group_id=plan.group.group_id if plan.group else 0,
            state=RUNNING if goes_on else DONE,
            asked=change_text(asked),
            change=change_text(plan.change),
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
            not_undoable_because=(
                CHANGED_NOTHING if plan.nothing_to_do else plan.not_undoable_because
            ),
        )
        group = None if begun.group is None else replace(begun.group, revision=revision)
        event = _applied(row)
        draft = self._teller.draft(event) if is_told(row) else None
        with along(draft):
            await self._commit(row, begun, group)
        if is_told(row):
            self._teller.note(event, draft)
        self._following.follow(row, begun)
        return await self._history.whole(number)

    async def _begun(self, plan: Plan, number: int) -> Begun:
        if plan.undoes:
            undone = await self._history.whole(plan.undoes)
            return await self._kinds.of_operation(undone).begin_undo(undone, plan, number)
        return await self._kinds.by_change[type(plan.change)].begin(plan, number)

    async def _commit(self, row: OperationRow, begun: Begun, group: GroupRow | None) -> None:
        writes: list[Write] = list(begun.writes)
        conditions: list[Precondition] = list(begun.preconditions)
        if group is not None:
            found = await self._store.read(GroupRow, (group.group_id,))
            if found is None:
                raise GroupDestroyed(group=group.name)
            if found.row.revision >= group.revision:
                # An edit of its queues ended in between.
                planned, last = group.revision - 1, "it was edited"
                now = found.row.revision
                raise RevisionMoved(subject=row.subject, planned=planned, found=now, last=last)
            conditions.append(VersionIs(GroupRow, (group.group_id,), found.version))
            writes.append(Put(group))
        try:
            await self._history.begin(row, writes, conditions)
        except PreconditionFailed as failed:
            if group is not None and failed.precondition.kind is GroupRow:
                raise GroupDestroyed(group=group.name) from failed
            raise
        with between_store_and_memory():
            if group is not None:
                self._groups.note_changed(group)
            if begun.committed is not None:
                begun.committed()
        self._following.ring()


def _applied(row: OperationRow) -> Event:
    reason = f": {row.reason}" if row.reason else ""
    what = f"{row.principal} applied operation {row.number}, {row.summary}{reason}"
    return Event(OPERATION_APPLIED, row.subject, as_sentence(what), fields_of(row))


def _repeated(known: OperationRow, change: Change) -> OperationRow:
    if known.asked != change_text(change):
        raise OperationIdReused(
            operation_id=known.operation_id, number=known.number, kind=known.kind
        )
    return known


def _kind_of_undo(kind: str) -> str:
    """offsets.rewind is undone by offsets.rewind.undo, and that by offsets.rewind.redo."""
    done = done_or_undone(kind)
    return f"{done}.redo" if kind.endswith(".undo") else f"{done}.undo"


def _check_text(name: str, text: str, bytes_max: int) -> None:
    if len(text.encode()) > bytes_max:
        long = f"it has {len(text.encode()):,} bytes"
        raise IllegalArgument(
            argument=f"this {name}", rule=f"{long}, at most {bytes_max:,} are kept"
        )
