"""The operations that are kept: as rows, and the same in memory.

Invariant: memory equals the committed rows, but holds only the *head* of old operations: a row
without its details, which are what was asked, and what changed, before and after. Operations that
ended longer ago than `OPERATIONS_KEPT_MS` are removed, with the rows that their undo needs; running
ones never are. If there are too many, those that changed nothing, or that schedules began, go
first.
"""

import asyncio
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace

from dss_core.errors import OperationNotFound
from dssd.leaders.takeover import CANCELLING
from dssd.operations.plans import done_or_undone
from dssd.store.keys import key_of
from dssd.store.paging import scan_all
from dssd.store.port import Delete, Key, Precondition, Put, Store, Write
from dssd.store.rows import EventRow, MadeMoveRow, OperationIdRow, OperationRow, PendingMoveRow
from dssd.store.uninterrupted import finished

OPERATIONS_KEPT_MS = 90 * 24 * 3_600 * 1_000
"""How long operations are kept: an operator looks for a change, or undoes it, within a quarter."""

OPERATIONS_KEPT_MAX = 10_000
"""How many operations are kept: their heads are in memory, some 20 MB. Beyond this the oldest ended
ones are removed early, those that changed nothing first: so a script that finds nothing to do each
minute costs nobody an undo."""

OPERATIONS_SURPLUS_MAX = 100
"""How far the bound may be exceeded before some are removed at once: a search takes 10 ms."""

OPERATION_DETAILS_BYTES_MAX = 16_000_000
"""The bytes of details, as JSON, of ended operations in memory: a move of 10,000 cursors has some
1.4 MB. Beyond this the oldest are read from the store when somebody looks at them."""

OPERATIONS_READ_ROWS = 16
"""How many rows one read at a start gets: a row may have megabytes."""


RUNNING, DONE, CANCELLED, FAILED = "running", "done", "cancelled", "failed"
"""The states of an operation."""

SCHEDULE_PREFIX = "schedule:"
"""The prefix of the principal of operations that a schedule began; the schedule's name follows."""

NOTHING = "{}"
"""``before`` and ``after`` of an operation that had nothing to do."""

UNENDED = frozenset({RUNNING, CANCELLING})


def undo_ends_ms(applied_at_ms: int) -> int:
    """Until when an operation applied at that time is kept, and can be undone."""
    return applied_at_ms + OPERATIONS_KEPT_MS


class History:
    """Built by `open`; lives as long as the daemon."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changing = asyncio.Lock()
        """One change at a time: a cancellation and an end do not overwrite each other."""
        self._by_number: dict[int, OperationRow] = {}
        self._by_id: dict[str, int] = {}
        self._detailed: dict[int, int] = {}
        """Operations with details in memory, the oldest first, and their bytes."""
        self._details_bytes = 0
        self._idle: set[int] = set()
        """Operations that changed nothing, or that a schedule began."""

    @classmethod
    async def open(cls, store: Store) -> "History":
        """Read what is kept."""
        history = cls(store)
        after: Key | None = None
        while page := await store.scan(OperationRow, after=after, limit=OPERATIONS_READ_ROWS):
            for found in page:
                history._enter(found.row)
            after = key_of(page[-1].row)
        return history

    def get(self, number: int) -> OperationRow:
        """The operation of that number; perhaps its head alone.

        Raises:
            OperationNotFound: there is none, or it is not kept any more.
        """
        row = self._by_number.get(number)
        if row is None:
            raise OperationNotFound(number=number)
        return row

    async def whole(self, number: int) -> OperationRow:
        """The operation with its details.

        Raises:
            OperationNotFound: there is none, or it is not kept any more.
        """
        row = self.get(number)
        if row.asked:
            return row
        found = await self._store.read(OperationRow, (number,))
        if found is None:
            raise OperationNotFound(number=number)
        return found.row

    def named(self, operation_id: str) -> int | None:
        """The number of the operation that an operator's own id names."""
        return self._by_id.get(operation_id)

    def newest(self) -> Iterator[OperationRow]:
        """The heads of all of them, the newest first; of some with details."""
        for number in sorted(self._by_number, reverse=True):
            yield self._by_number[number]

    def unended(self) -> list[OperationRow]:
        """Those that have not ended, the oldest first."""
        rows = (self._by_number[number] for number in sorted(self._by_number))
        return [row for row in rows if row.state in UNENDED]

    def unended_of(self, number: int) -> OperationRow | None:
        """The operation of that number, unless it has ended."""
        row = self._by_number.get(number)
        return row if row is not None and row.state in UNENDED else None

    def running_on(
        self, subject: str, *, beside: Container[str] = frozenset()
    ) -> OperationRow | None:
        """The first running operation on a subject, except for some kinds."""
        rows = (row for row in self.unended() if row.subject == subject)
        return next((row for row in rows if done_or_undone(row.kind) not in beside), None)

    async def begin(
        self,
        row: OperationRow,
        writes: Sequence[Write],
        preconditions: Sequence[Precondition],
    ) -> None:
        """Commit a new operation together with its other writes.

        Raises:
            PreconditionFailed: nothing was written.
        """
        rows = [row]
        if row.undoes:
            rows.append(replace(await self.whole(row.undoes), undone_by=row.number))
        own = [Put(each) for each in rows]
        own_id = Put(OperationIdRow(row.operation_id, row.number))
        work = self._store.commit([*own, own_id, *writes], preconditions)
        await finished(work, name=f"begin operation {row.number}")
        for each in rows:
            self._enter(each)

    async def change(
        self,
        number: int,
        changed: Callable[[OperationRow], OperationRow],
        draft: Callable[[OperationRow], EventRow | None] = lambda _: None,
    ) -> OperationRow | None:
        """Commit a change of an operation, with the draft of the event about it.

        None if it had ended: then nothing is changed.
        """
        work = self._change(number, changed, draft)
        return await finished(work, name=f"change operation {number}")

    async def _change(
        self,
        number: int,
        changed: Callable[[OperationRow], OperationRow],
        draft: Callable[[OperationRow], EventRow | None],
    ) -> OperationRow | None:
        async with self._changing:
            known = self.unended_of(number)
            if known is None:
                return None
            row = changed(known)
            rows = [row]
            if row.undoes in self._by_number and row.state in (CANCELLED, FAILED):
                # The undo failed, or was incomplete: it may be tried again.
                rows.append(replace(await self.whole(row.undoes), undone_by=0))
            told = draft(row)
            beside = [] if told is None else [Put(told)]
            await self._store.commit([*(Put(each) for each in rows), *beside])
            for each in rows:
                self._enter(each)
            return row

    async def made_moves(self, number: int) -> list[MadeMoveRow]:
        """The moves of cursors that an operation made."""
        return [found.row for found in await scan_all(self._store, MadeMoveRow, (number,))]

    async def pending_moves(self, row: OperationRow) -> list[PendingMoveRow]:
        """The moves of cursors that an operation waits to make."""
        if row.state not in UNENDED:
            return []
        found = await scan_all(self._store, PendingMoveRow, (row.group_id,))
        return [each.row for each in found if each.row.number == row.number]

    def has_many(self) -> bool:
        """Whether `trim` is to run at once."""
        return len(self._by_number) > OPERATIONS_KEPT_MAX + OPERATIONS_SURPLUS_MAX

    async def trim(self, wall_ms: int) -> None:
        """Remove the operations that are too old, or too many."""
        wanted = {row.undoes for row in self.unended()}
        ended = [
            row
            for row in self._by_number.values()
            if row.state not in UNENDED and row.number not in wanted
        ]
        ended.sort(key=lambda row: (row.number not in self._idle, row.number))
        surplus = max(0, len(self._by_number) - OPERATIONS_KEPT_MAX)
        oldest_ms = wall_ms - OPERATIONS_KEPT_MS
        for at, row in enumerate(ended):
            if at < surplus or (row.ended_at_ms or 0) < oldest_ms:
                await finished(self._remove(row), name=f"remove operation {row.number}")

    async def _remove(self, row: OperationRow) -> None:
        deletes: list[Write] = [
            Delete(OperationRow, (row.number,)),
            Delete(OperationIdRow, (row.operation_id,)),
        ]
        moves = await scan_all(self._store, MadeMoveRow, (row.number,))
        deletes += [Delete(MadeMoveRow, key_of(found.row)) for found in moves]
        await self._store.commit(deletes)
        del self._by_number[row.number]
        self._by_id.pop(row.operation_id, None)
        self._idle.discard(row.number)
        self._details_bytes -= self._detailed.pop(row.number, 0)

    def _enter(self, row: OperationRow) -> None:
        self._by_number[row.number] = row
        self._by_id[row.operation_id] = row.number
        if changed_nothing(row) or row.principal.startswith(SCHEDULE_PREFIX):
            self._idle.add(row.number)
        size = sum(len(text) for text in (row.asked, row.change, row.before, row.after))
        self._details_bytes += size - self._detailed.get(row.number, 0)
        self._detailed[row.number] = size
        if self._details_bytes > OPERATION_DETAILS_BYTES_MAX:
            self._shed()

    def _shed(self) -> None:
        """Drop the oldest details of ended operations from memory."""
        surplus = self._details_bytes - OPERATION_DETAILS_BYTES_MAX
        for number in list(self._detailed):
            row = self._by_number[number]
            if surplus <= 0:
                return
            if row.state not in UNENDED:
                surplus -= self._detailed[number]
                self._details_bytes -= self._detailed.pop(number)
                self._by_number[number] = replace(row, asked="", change="", before="", after="")


def changed_nothing(row: OperationRow) -> bool:
    """Whether the operation had nothing to do; the row must have its details."""
    return row.state == DONE and row.before == row.after == NOTHING
