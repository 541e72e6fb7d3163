"""The store in one SQLite database; the part that runs on the event loop.

Commits of one turn of the loop, and all that come while a transaction runs, share the next
transaction. Invariant: a commit returns after its sync; at most `STORE_COMMITS_WAITING_MAX` wait.
All SQL is behind `dssd.store.writer`; nothing here blocks the loop.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TypeVar, cast

from dss_core.errors import DssError, Stopping
from dssd.measuring.latencies import Latencies
from dssd.store.along import going
from dssd.store.commit_listeners import CommitListeners
from dssd.store.keys import check_commit, check_key, check_scan, key_of
from dssd.store.port import Change, Key, Precondition, Put, Versioned, Write
from dssd.store.rows import Row
from dssd.store.transactions import Applied, CommitRequest, IdRequest
from dssd.store.writer import (
    Answers,
    Close,
    Copy,
    Job,
    Open,
    Question,
    StoreWriter,
    Task,
    WriteBack,
)

STORE_COMMITS_WAITING_MAX = 4_096
"""How many commits and reads may wait for an answer. Later callers wait for room."""


R = TypeVar("R", bound=Row)


class SqliteStore:
    """Implements `dssd.store.port.Store`. Built by `open`; belongs to one event loop."""

    def __init__(self, path: Path, on_failure: Callable[[BaseException], None] | None) -> None:
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._writer = StoreWriter(self._answered_in_thread, self._failed_in_thread)
        self._watchers = CommitListeners()
        self._room = asyncio.Semaphore(STORE_COMMITS_WAITING_MAX)
        self._waiting: dict[asyncio.Future[object], None] = {}
        self._this_turn: list[Job] = []
        self._failure: BaseException | None = None
        self._closed = False
        self.path = path

    @classmethod
    async def open(
        cls, path: Path, *, on_failure: Callable[[BaseException], None] | None = None
    ) -> "SqliteStore":
        """Open the database file; create it if it is missing.

        ``on_failure`` is called once when disk or database failed, with DiskFailed or StoreDamaged.
        It is called in the store's thread, because a busy loop must not delay the end of the
        process. From then on every call raises the same error; only a restart can find out what is
        on the disk. For a programmer's error in the thread it is called with that error.

        Raises:
            DataDirectoryNewer: a newer version wrote it.
            DataDirectoryLocked: another process has it open.
            StoreDamaged: it is not a database, not ours, or not as it was written.
            DiskFull, DiskFailed: the disk did not allow it.
        """
        store = cls(path, on_failure)
        store._writer.start()
        await store._ask(Open(path))
        return store

    @property
    def commits(self) -> Latencies:
        """How long transactions took."""
        return self._writer.commits

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        """Apply all writes, durably; returns the version that each got, in order.

        Raises:
            PreconditionFailed: nothing was written.
            DiskFull: nothing was written.
            DiskFailed: it may or may not have been written.
            StoreDamaged: a row of a precondition is not as it was written; nothing was written.
            Stopping: the store was closed; nothing was written.
        """
        beside = going()
        request = CommitRequest((*writes, *beside.writes), tuple(preconditions))
        check_commit(request.writes, request.preconditions)
        applied = cast("Applied", await self._ask(request))
        beside.is_durable = True
        return applied.versions[: len(writes)]

    async def read(self, kind: type[R], key: Key) -> Versioned[R] | None:
        """The committed row, or None.

        Raises:
            StoreDamaged: the row is not as it was written; the store has failed.
            DiskFailed, Stopping: as for a commit.
        """
        check_key(kind, key)
        found = await self._ask(Question(lambda tables: tables.read(kind, key)))
        return cast("Versioned[R] | None", found)

    async def scan(
        self, kind: type[R], prefix: Key = (), *, after: Key | None = None, limit: int = 10_000
    ) -> list[Versioned[R]]:
        """Rows whose key starts with the prefix, in key order; with ``after``, only later keys.

        Raises:
            StoreDamaged, DiskFailed, Stopping: as for a read.
        """
        check_scan(kind, prefix, after, limit)
        found = await self._ask(Question(lambda tables: tables.scan(kind, prefix, after, limit)))
        return cast("list[Versioned[R]]", found)

    def watch(self, kind: type[Row]) -> AsyncIterator[Change]:
        """Every change of a kind committed from now on, in commit order."""
        return self._watchers.watch(kind)

    async def next_id(self) -> int:
        """A number that this store never returned before, durable before it is returned.

        Raises:
            DiskFull, DiskFailed, Stopping: as for a commit.
        """
        return cast("int", await self._ask(IdRequest()))

    async def last_id(self) -> int:
        """The newest number that `next_id` returned; 0 before the first.

        Raises:
            DiskFailed, Stopping: as for a read.
        """
        return cast("int", await self._ask(Question(lambda tables: tables.last_id)))

    async def write_back(self) -> int:
        """Write the write-ahead log back, so that it begins anew; returns how many bytes it had.

        Raises:
            DiskFull: it stays as it is.
            DiskFailed, Stopping: as for a commit.
        """
        return cast("int", await self._ask(WriteBack()))

    async def copy_to(self, path: Path) -> None:
        """Copy the database to a new file, as it is at a moment shortly before this returns.

        Commits go on meanwhile. One copy is made at a time.

        Raises:
            BackupFailed: it could not be made; what is there is of no use.
            DiskFailed, Stopping: as for a read.
        """
        await self._ask(Copy(path))

    async def close(self) -> None:
        """Commit the queued writes, write the write-ahead log back, close.

        Raises:
            DiskFailed: the disk failed meanwhile.
        """
        if self._closed:
            return
        self._closed = True
        if self._failure is None:
            await self._submit(Close())
        self._writer.join()
        self._watchers.close()

    async def _ask(self, task: Task) -> object:
        self._check_usable()
        await self._room.acquire()
        try:
            self._check_usable()
            answer = self._submit(task)
        except BaseException:
            self._room.release()
            raise
        return await answer

    def _submit(self, task: Task) -> "asyncio.Future[object]":
        answer: asyncio.Future[object] = self._loop.create_future()
        self._waiting[answer] = None
        if not self._this_turn:
            self._loop.call_soon(self._hand_over)
        self._this_turn.append(Job(task, answer))
        return answer

    def _hand_over(self) -> None:
        jobs, self._this_turn = self._this_turn, []
        self._writer.hand_over(jobs)

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise _for_a_caller(self._failure)
        if self._closed:
            raise Stopping

    def _answered_in_thread(self, answers: Answers) -> None:
        self._loop.call_soon_threadsafe(self._settle, answers)

    def _failed_in_thread(self, failure: BaseException) -> None:
        if self._on_failure is not None:
            self._on_failure(failure)
        self._loop.call_soon_threadsafe(self._fail, failure)

    def _settle(self, answers: Answers) -> None:
        for job, outcome in answers:
            if isinstance(job.task, CommitRequest) and isinstance(outcome, Applied):
                self._publish(job.task, outcome)
            self._release(job.caller)
            if job.caller.done():
                continue  # Its caller was cancelled while it waited.
            if isinstance(outcome, Exception):
                job.caller.set_exception(outcome)
            else:
                job.caller.set_result(outcome)

    def _publish(self, request: CommitRequest, applied: Applied) -> None:
        changes: list[Change] = []
        for at, (write, version) in enumerate(zip(request.writes, applied.versions, strict=True)):
            if isinstance(write, Put):
                if self._watchers.wanted(type(write.row)):
                    row = write.row
                    changes.append(Change(type(row), key_of(row), row, version))
            elif at not in applied.idle:
                changes.append(Change(write.kind, write.key, None, version))
        self._watchers.publish(changes)

    def _fail(self, failure: BaseException) -> None:
        self._failure = failure
        for answer in list(self._waiting):
            self._release(answer)
            if not answer.done():
                answer.set_exception(_for_a_caller(failure))
        self._watchers.close(_for_a_caller(failure))

    def _release(self, answer: "asyncio.Future[object]") -> None:
        del self._waiting[answer]
        self._room.release()


def _for_a_caller(failure: BaseException) -> Exception:
    """A new error for each caller: a shared one would collect the tracebacks of all."""
    if isinstance(failure, DssError):
        return type(failure)(**failure.fields)
    ended = RuntimeError("the store's thread ended")
    ended.__cause__ = failure
    return ended
