"""The store as dictionaries, for tests and the simulator.

Invariant: it answers exactly as the SQLite adapter does, except that nothing outlives the process.
A commit runs without yielding, so it is atomic by construction.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import TypeVar, cast

from dss_core.errors import Stopping
from dssd.store.along import going
from dssd.store.commit_listeners import CommitListeners
from dssd.store.keys import check_commit, check_key, check_scan, failed_first, key_of
from dssd.store.port import (
    Change,
    Delete,
    Key,
    Precondition,
    PreconditionFailed,
    Put,
    Versioned,
    Write,
)
from dssd.store.rows import Row

R = TypeVar("R", bound=Row)


class _Rows:
    """The rows of one kind, and their keys in order."""

    def __init__(self) -> None:
        self.by_key: dict[Key, Versioned[Row]] = {}
        self.keys: list[Key] = []

    def put(self, key: Key, row: Versioned[Row]) -> None:
        if key not in self.by_key:
            insort(self.keys, key)
        self.by_key[key] = row

    def delete(self, key: Key) -> bool:
        if self.by_key.pop(key, None) is None:
            return False
        del self.keys[bisect_left(self.keys, key)]
        return True


class MemoryStore:
    """Implements `dssd.store.port.Store`."""

    def __init__(self) -> None:
        self._rows: dict[type[Row], _Rows] = {}
        self._version = 0
        self._id = 0
        self._watchers = CommitListeners()
        self._closed = False

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        """As the port says.

        Raises:
            PreconditionFailed: nothing was written.
            Stopping: the store was closed.
        """
        self._check_open()
        beside = going()
        asked = len(writes)
        writes = (*writes, *beside.writes)
        check_commit(writes, preconditions)
        failed = failed_first(
            tuple(preconditions), lambda that: self._of(that.kind).by_key.get(that.key)
        )
        if failed is not None:
            raise PreconditionFailed(*failed)
        versions: list[int] = []
        changes: list[Change] = []
        for write in writes:
            self._version += 1
            versions.append(self._version)
            changes += self._apply(write, self._version)
        self._watchers.publish(changes)
        beside.is_durable = True
        return versions[:asked]

    async def read(self, kind: type[R], key: Key) -> Versioned[R] | None:
        """As the port says."""
        self._check_open()
        check_key(kind, key)
        return cast("Versioned[R] | None", self._of(kind).by_key.get(key))

    async def scan(
        self, kind: type[R], prefix: Key = (), *, after: Key | None = None, limit: int = 10_000
    ) -> list[Versioned[R]]:
        """As the port says."""
        self._check_open()
        check_scan(kind, prefix, after, limit)
        rows = self._of(kind)
        start = bisect_left(rows.keys, prefix) if after is None else bisect_right(rows.keys, after)
        found: list[Versioned[Row]] = []
        for key in islice(rows.keys, start, start + limit):
            if key[: len(prefix)] != prefix:
                break
            found.append(rows.by_key[key])
        return cast("list[Versioned[R]]", found)

    def watch(self, kind: type[Row]) -> AsyncIterator[Change]:
        """As the port says."""
        return self._watchers.watch(kind)

    async def next_id(self) -> int:
        """As the port says."""
        self._check_open()
        self._id += 1
        return self._id

    async def last_id(self) -> int:
        """As the port says."""
        self._check_open()
        return self._id

    async def close(self) -> None:
        """As the port says; the rows are gone."""
        self._closed = True
        self._watchers.close()

    def _of(self, kind: type[Row]) -> _Rows:
        return self._rows.setdefault(kind, _Rows())

    def _apply(self, write: Write, version: int) -> list[Change]:
        match write:
            case Put(row=row):
                kind, key = type(row), key_of(row)
                self._of(kind).put(key, Versioned(row, version))
                return [Change(kind, key, row, version)]
            case Delete(kind=kind, key=key):
                removed = self._of(kind).delete(key)
                return [Change(kind, key, None, version)] if removed else []

    def _check_open(self) -> None:
        if self._closed:
            raise Stopping
