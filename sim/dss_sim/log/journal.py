"""The store of a run: dictionaries, and a journal of what was committed when.

Invariant: commits become durable in their order, each at some moment between its request and the
moment from which others may read it. A crash between the two may or may not keep the commit; a
commit that was read or answered is there after every crash. (The traced lives, and the test that
compares the two adapters, prove that SQLite behaves so.)
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from random import Random
from typing import TypeVar

from dss_core.errors import DiskFull
from dss_sim.groups.store import at_once
from dss_sim.log.calls import Calls
from dss_sim.log.faults import COMMIT, Faults
from dss_sim.log.one_thread import SteppedLoop
from dssd.store.memory import MemoryStore
from dssd.store.port import Change, Key, Precondition, Versioned, Write
from dssd.store.rows import Row

R = TypeVar("R", bound=Row)
ALWAYS = -1
"""The position of what was durable before the first step."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit, or one id that was drawn."""

    began: int
    made: int
    """Numbers of steps: after how many it was asked for, and after how many others may read it."""
    writes: tuple[Write, ...] | None
    """None for an id."""


class Journal:
    """The commits, in order."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.entries = list(entries)

    def after_crash(self, place: int, chance: Random) -> "Journal":
        """The entries that are durable if the power goes after a number of steps."""
        sure = sum(1 for _ in takewhile(lambda one: one.made <= place, self.entries))
        begun = takewhile(lambda one: one.began <= place, self.entries[sure:])
        kept = sure + chance.randint(0, sum(1 for _ in begun))
        return Journal([Entry(ALWAYS, ALWAYS, one.writes) for one in self.entries[:kept]])

    def store(self) -> MemoryStore:
        """All that it holds."""
        store = MemoryStore()
        for entry in self.entries:
            if entry.writes is None:
                at_once(store.next_id())
            else:
                at_once(store.commit(entry.writes))
        return store


class JournaledStore:
    """Implements `dssd.store.port.Store` for one life; its commits take a while."""

    def __init__(self, journal: Journal, loop: SteppedLoop, calls: Calls, faults: Faults) -> None:
        self._journal = journal
        self._rows = journal.store()
        self._loop = loop
        self._calls = calls
        self._faults = faults

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        """See the port.

        Raises:
            PreconditionFailed: nothing was written.
            DiskFull: nothing was written.
        """
        began = self._calls.place
        await self._loop.some_rounds()
        fault = self._faults.struck(COMMIT)
        if fault == "full":
            raise DiskFull
        if fault == "kill" and self._loop.chance.random() < 0.5:
            self._calls.die()
        versions = await self._rows.commit(writes, preconditions)
        self._journal.entries.append(Entry(began, self._calls.place, tuple(writes)))
        if fault == "kill":
            self._calls.die()
        await self._loop.some_rounds()
        return versions

    async def read(self, kind: type[R], key: Key) -> Versioned[R] | None:
        """See the port."""
        await self._loop.some_rounds()
        return await self._rows.read(kind, key)

    async def scan(
        self, kind: type[R], prefix: Key = (), *, after: Key | None = None, limit: int = 10_000
    ) -> list[Versioned[R]]:
        """See the port."""
        await self._loop.some_rounds()
        return await self._rows.scan(kind, prefix, after=after, limit=limit)

    def watch(self, kind: type[Row]) -> AsyncIterator[Change]:
        """See the port."""
        return self._rows.watch(kind)

    async def next_id(self) -> int:
        """See the port."""
        began = self._calls.place
        given = await self._rows.next_id()
        self._journal.entries.append(Entry(began, self._calls.place, None))
        return given

    async def last_id(self) -> int:
        """See the port."""
        return await self._rows.last_id()

    async def close(self) -> None:
        """See the port."""
        await self._rows.close()
