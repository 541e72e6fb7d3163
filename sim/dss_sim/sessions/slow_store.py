"""The store as a daemon meets it: rows that outlive the daemon, behind a disk that takes its time.

As in `dssd.store.sqlite`, everything that waits is taken together: reads are answered from what was
committed before, then the commits are applied in one transaction, then all answers go out. A caller
that was cancelled meanwhile changes nothing about that. The disk may be full for a while, which
some commits survive and others do not; and the daemon may die before or after the transaction took
effect, and then its callers never learn which.

Invariant: rows change only when a transaction takes effect; a dead daemon's transactions never do.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar, cast

from dss_core.errors import DiskFull, Stopping
from dss_sim.groups.store import at_once
from dss_sim.sessions.timeline import Timeline, VirtualLoop
from dssd.store.commit_listeners import CommitListeners
from dssd.store.keys import check_commit, key_of
from dssd.store.memory import MemoryStore
from dssd.store.port import Change, Key, Precondition, Put, Versioned, Write
from dssd.store.rows import Row

TRANSACTION_US = (200, 3_000)
SLOW_TRANSACTION_US = (50_000, 1_500_000)
ANSWER_US = (10, 300)
FULL_SHARE = 0.7
"""The share of commits that find no room on a full disk."""

ASKER: ContextVar[object] = ContextVar("asker", default=None)
"""On whose behalf the daemon works: the call of a client, or None."""

R = TypeVar("R", bound=Row)


class Died(Exception):
    """The daemon died at this transaction."""


class Disk:
    """Rows, and how the disk behaves. One for all lives of a daemon."""

    def __init__(self, chance: Random) -> None:
        self.rows = MemoryStore()
        self.full = False
        self.slow = 0.0
        """The share of transactions that take long."""
        self.trouble_us = -1
        """When it was last full or slow."""
        self.dies_at = 0
        """If not 0, the daemon dies at this transaction, counted from here on."""
        self.committed: Callable[[Sequence[Write], object], None] = lambda writes, asker: None
        """Called with each commit, and on whose behalf, when it takes effect."""
        self.chance = chance

    def held(self, kind: type[R]) -> list[R]:
        """The present rows of a kind, by key."""
        found = at_once(self.rows.scan(kind, limit=1_000_000))
        return [each.row for each in found]

    def took_us(self) -> int:
        """How long the next transaction takes."""
        slow = self.slow and self.chance.random() < self.slow
        return self.chance.randint(*(SLOW_TRANSACTION_US if slow else TRANSACTION_US))


@dataclass(slots=True, eq=False)
class _Job:
    work: Callable[[], Coroutine[Any, Any, object]]
    needs_room: bool
    writes: Sequence[Write]
    asker: object
    answer: "asyncio.Future[object]"
    outcome: object = None
    failed: bool = False


class SlowStore:
    """Implements `dssd.store.port.Store` for one life of a daemon."""

    def __init__(
        self, disk: Disk, timeline: Timeline, loop: VirtualLoop, died: Callable[[], None]
    ) -> None:
        self._disk = disk
        self._timeline = timeline
        self._loop = loop
        self._died = died
        self._waiting: list[_Job] = []
        self._working = False
        self._closed = False
        self._idle: asyncio.Future[None] | None = None
        self._watchers = CommitListeners()

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        """See the port.

        Raises:
            PreconditionFailed, DiskFull: nothing was written.
            Stopping: the store was closed.
        """
        check_commit(writes, preconditions)
        rows = self._disk.rows
        answer = await self._ask(lambda: rows.commit(writes, preconditions), writes, True)
        return cast("list[int]", answer)

    async def read(self, kind: type[R], key: Key) -> Versioned[R] | None:
        """See the port."""
        answer = await self._ask(lambda: self._disk.rows.read(kind, key))
        return cast("Versioned[R] | None", answer)

    async def scan(
        self, kind: type[R], prefix: Key = (), *, after: Key | None = None, limit: int = 10_000
    ) -> list[Versioned[R]]:
        """See the port."""
        rows = self._disk.rows
        answer = await self._ask(lambda: rows.scan(kind, prefix, after=after, limit=limit))
        return cast("list[Versioned[R]]", answer)

    def watch(self, kind: type[Row]) -> AsyncIterator[Change]:
        """See the port."""
        return self._watchers.watch(kind)

    async def next_id(self) -> int:
        """See the port."""
        return cast("int", await self._ask(lambda: self._disk.rows.next_id(), needs_room=True))

    async def last_id(self) -> int:
        """See the port."""
        return cast("int", await self._ask(lambda: self._disk.rows.last_id()))

    async def close(self) -> None:
        """Do what was handed over, then refuse everything."""
        if self._working:
            self._idle = self._loop.create_future()
        self._closed = True
        if self._idle is not None:
            await self._idle
        self._watchers.close()

    async def _ask(
        self,
        work: Callable[[], Coroutine[Any, Any, object]],
        writes: Sequence[Write] = (),
        needs_room: bool = False,
    ) -> object:
        if self._closed:
            raise Stopping
        answer = self._loop.create_future()
        self._waiting.append(_Job(work, needs_room, writes, ASKER.get(), answer))
        if not self._working:
            self._working = True
            self._loop.call_soon(self._begin)
        return await answer

    def _begin(self) -> None:
        jobs, self._waiting = self._waiting, []
        if not jobs:
            self._working = False
            if self._idle is not None:
                self._idle.set_result(None)
            return
        self._timeline.after(self._disk.took_us(), lambda: self._take_effect(jobs))

    def _take_effect(self, jobs: list[_Job]) -> None:
        if self._loop.abandoned:
            return
        disk = self._disk
        changing = any(job.writes for job in jobs)
        dies = changing and disk.dies_at == 1
        if changing and disk.dies_at:
            disk.dies_at -= 1
        if not dies or disk.chance.random() < 0.5:
            self._apply(jobs)
        if dies:
            self._died()
            return
        wait_us = disk.chance.randint(*ANSWER_US)
        self._timeline.after(wait_us, lambda: self._answer_soon(jobs))

    def _apply(self, jobs: list[_Job]) -> None:
        """Reads come first: a transaction shows nothing before it is committed."""
        disk = self._disk
        for job in sorted(jobs, key=lambda job: bool(job.writes)):
            if job.needs_room and disk.full and disk.chance.random() < FULL_SHARE:
                job.outcome, job.failed = DiskFull(), True
                continue
            try:
                job.outcome = at_once(job.work())
            except Exception as error:  # noqa: BLE001 - the caller's, who gets it
                job.outcome, job.failed = error, True
                continue
            if job.writes:
                disk.committed(job.writes, job.asker)

    def _answer_soon(self, jobs: list[_Job]) -> None:
        self._loop.call_soon(self._answer, jobs)

    def _answer(self, jobs: list[_Job]) -> None:
        for job in jobs:
            if not job.failed:
                self._watchers.publish([_change_of(write) for write in job.writes])
            if job.answer.done():
                continue  # its caller was cancelled
            if job.failed:
                assert isinstance(job.outcome, Exception)
                job.answer.set_exception(job.outcome)
            else:
                job.answer.set_result(job.outcome)
        self._begin()


def _change_of(write: Write) -> Change:
    """The change that watchers see; no watcher here asks for its version."""
    if isinstance(write, Put):
        return Change(type(write.row), key_of(write.row), write.row, 0)
    return Change(write.kind, write.key, None, 0)
