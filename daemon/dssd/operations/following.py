"""Follows operations that were applied, to their ends.

An operation with an instruction for a leader ends when the leader concludes it; one with work of
its own ends when the work returns, whatever a leader concludes meanwhile. Invariant: an operation
that has not ended is followed, also by the next daemon. Its end is stored, is told as an event, and
wakes those who wait. This module does not know what is planned or refused (`operations`).
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import NoReturn

from dss_core.errors import DiskFull, DssError
from dss_core.sentences import as_sentence
from dssd.clock import Clock
from dssd.events.kinds import OPERATION_ENDED
from dssd.events.model import Event
from dssd.events.teller import Teller
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.leaders.takeover import CANCELLING
from dssd.limits import FULL_DISK_RETRY_S
from dssd.operations.history import CANCELLED, DONE, FAILED, SCHEDULE_PREFIX, History
from dssd.operations.plans import Begun, Cancellation, FallsShort, KindTable, Made, Worked
from dssd.store.port import Store
from dssd.store.rows import EventRow, GroupRow, MadeMoveRow, OperationRow
from dssd.supervision.containment import contain, kept

OPERATIONS_TRIM_EVERY_S = 3_600.0
"""The pause between removals of old operations."""


DONE_AS_ASKED = Worked({})
GROUP_REMOVED = Worked({}, "the group was removed")
ENDS = "ends of operations"
STREAMS_MISSED = (
    "{made:,} of {moves:,} streams did it: the others are gone, or were read to the end meanwhile, "
    "and what waited in them is with streams of the next storage topic; the same command finds it"
)


class Following:
    """Within `running` it resumes operations that had not ended; those that are still running at
    its end are left to the next daemon."""

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
        self.moved = asyncio.Event()
        """Set and replaced at each progress of an operation."""
        self._concluded: asyncio.Queue[tuple[int, Worked]] = asyncio.Queue()
        """Bounded by the operations that run: a leader concludes each once or twice."""
        self._works: dict[int, asyncio.Task[None]] = {}
        """The tasks of operations with work of their own, by number."""

    @asynccontextmanager
    async def running(self, kinds: KindTable) -> AsyncIterator[None]:
        """Follow operations of these kinds; those that had not ended go on."""
        self._kinds = kinds
        self._registry.watch_concluded(self._note_concluded)
        stop_watching = self._groups.watch_removed(self._group_removed)
        async with asyncio.TaskGroup() as self._tasks:
            standing = [
                self._tasks.create_task(kept(name, run, self._teller.note), name=name)
                for name, run in (
                    ("moves of operations", self._watch_moves),
                    (ENDS, self._note_ends),
                    ("trim operations", self._trim),
                )
            ]
            try:
                for row in self._history.unended():
                    await self._resume(row)
                yield
            finally:
                stop_watching()
                for task in (*standing, *self._works.values()):
                    task.cancel()

    def follow(self, row: OperationRow, begun: Begun) -> None:
        """Carry out what an operation began, and note its end."""
        if begun.instruction is not None and not self._groups.has(row.group_id):
            # The group was removed just now, so nobody would conclude the operation.
            self._concluded.put_nowait((row.number, GROUP_REMOVED))
            return
        if begun.instruction is not None:
            self._registry.instruct(row.group_id, begun.instruction)
        if begun.work is not None:
            work = self._do(row, begun)
            name = f"operation {row.number}"
            self._works[row.number] = self._tasks.create_task(work, name=name)

    def _note_concluded(self, number: int) -> None:
        if number not in self._works:
            self._concluded.put_nowait((number, DONE_AS_ASKED))

    async def _do(self, row: OperationRow, begun: Begun) -> None:
        assert begun.work is not None
        try:
            worked = await begun.work() or DONE_AS_ASKED
        except DssError as error:
            worked = Worked({}, error.message)
        except Exception as error:  # noqa: BLE001 - it ends the operation alone
            worked = self._failed(row, error)
        finally:
            self._works.pop(row.number, None)
        self._concluded.put_nowait((row.number, worked))

    def _failed(self, row: OperationRow, error: Exception) -> Worked:
        """The end of an operation that met an unexpected error."""
        return Worked({}, contain(f"operation {row.kind}", error, self._teller.note).message)

    def give_up(self, row: OperationRow, cancellation: Cancellation) -> None:
        """Stop the remaining work of an operation."""
        if callable(cancellation):
            cancellation()
        else:
            self._registry.instruct(row.group_id, cancellation)

    def ring(self) -> None:
        """An operation made progress: wake those who wait."""
        moved, self.moved = self.moved, asyncio.Event()
        moved.set()

    async def _resume(self, row: OperationRow) -> None:
        if row.group_id and not self._groups.has(row.group_id):
            self._concluded.put_nowait((row.number, GROUP_REMOVED))
            return
        kind = self._kinds.of_operation(row)
        try:
            begun = await kind.resumed(row)
        except Exception as error:  # noqa: BLE001 - one operation must not keep a daemon down
            self._concluded.put_nowait((row.number, self._failed(row, error)))
            return
        if begun.instruction is None and begun.work is None:
            self._concluded.put_nowait((row.number, DONE_AS_ASKED))
        self.follow(row, begun)
        cancellation = kind.cancellation(row) if row.state == CANCELLING else None
        if cancellation is not None:
            self.give_up(row, cancellation)

    async def _note_ends(self) -> NoReturn:
        while True:
            number, worked = await self._concluded.get()
            try:
                await self._end(number, worked)
            except Exception as error:  # noqa: BLE001 - it ends as failed; the next daemon sees to the rest
                why = contain(ENDS, error, self._teller.note).message
                if not worked.failure:
                    self._concluded.put_nowait((number, Worked({}, why)))

    async def _end(self, number: int, worked: Worked) -> None:
        if not worked.failure:
            worked = await self._missed(number) or await self._fell_short(number) or worked
        made = await self._made(number) if not worked.failure else None

        def ended(row: OperationRow) -> OperationRow:
            state, why = FAILED if worked.failure else DONE, worked.failure
            if made is not None and made.done < made.of:
                state = CANCELLED
                why = row.failure + (
                    f"; {made.done:,} of {made.of:,} {made.what}" if made.what else ""
                )
            after = json.dumps(worked.after, sort_keys=True) if worked.after else row.after
            return replace(
                row,
                state=state,
                failure=why,
                after=after,
                not_undoable_because="" if worked.is_undoable else row.not_undoable_because,
                ended_at_ms=self._clock.wall_ms(),
            )

        draft: EventRow | None = None

        def drafted(row: OperationRow) -> EventRow | None:
            nonlocal draft
            draft = self._teller.draft(_ended(row), draft) if is_told(row) else None
            return draft

        while True:
            try:
                changed = await self._history.change(number, ended, drafted)
                break
            except DiskFull:
                await asyncio.sleep(FULL_DISK_RETRY_S)
        if changed is None:
            return
        if is_told(changed):
            self._teller.note(_ended(changed), draft)
        self.ring()

    async def _made(self, number: int) -> Made | None:
        """What it did, if the rest was cancelled; None if all of it was done.

        A cancellation after this finds nothing left to stop.
        """
        row = self._history.unended_of(number)
        if row is None or row.state != CANCELLING:
            return None
        return await self._kinds.of_operation(row).made(row)

    async def _missed(self, number: int) -> Worked | None:
        """The end of an operation on queues if some streams did nothing: between its plan and its
        turn, their entries were re-homed to a later storage topic, or were gone."""
        row = self._history.unended_of(number)
        if row is None or row.state == CANCELLING or not row.after:
            return None
        after = json.loads(row.after)
        if not {"moves", "records"} <= after.keys():
            return None
        made = len(await self._history.made_moves(number))
        if made >= after["moves"]:
            return None
        return Worked({}, STREAMS_MISSED.format(made=made, moves=after["moves"]))

    async def _fell_short(self, number: int) -> Worked | None:
        row = self._history.unended_of(number)
        if row is None or row.state == CANCELLING or not row.after:
            return None
        kind = self._kinds.of_operation(row)
        return await kind.fell_short(row) if isinstance(kind, FallsShort) else None

    def _group_removed(self, group: GroupRow) -> None:
        for row in self._history.unended():
            if row.group_id == group.group_id and row.number not in self._works:
                self._concluded.put_nowait((row.number, GROUP_REMOVED))

    async def _watch_moves(self) -> None:
        async for _ in self._store.watch(MadeMoveRow):
            self.ring()

    async def _trim(self) -> None:
        while True:
            with suppress(DiskFull):  # the next time will do
                await self._history.trim(self._clock.wall_ms())
            await asyncio.sleep(OPERATIONS_TRIM_EVERY_S)


def _ended(row: OperationRow) -> Event:
    took_ms = (row.ended_at_ms or row.applied_at_ms) - row.applied_at_ms
    failure = f": {row.failure}" if row.failure else ""
    what = f"Operation {row.number}, {row.kind}, is {row.state} after {took_ms} ms{failure}"
    return Event(OPERATION_ENDED, row.subject, as_sentence(what), fields_of(row))


def is_told(row: OperationRow) -> bool:
    """Whether there are events about it. Not if a schedule began it, which tells of failures.

    Its row says who and when. Events of a schedule that runs every minute would flood all others.
    """
    return not row.principal.startswith(SCHEDULE_PREFIX)


def fields_of(row: OperationRow) -> dict[str, str]:
    """The fields of an operation in events."""
    return {
        "operation": str(row.number),
        "kind": row.kind,
        "principal": row.principal,
        "origin": row.origin,
        "reason": row.reason,
        "state": row.state,
    }
