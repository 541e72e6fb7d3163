"""What the daemon asks of its store.

`Store.commit` applies writes if every precondition holds, all or nothing, and returns once they are
durable. `Store.read` and `Store.scan` see what was committed. A row is a
frozen dataclass of `dssd.store.rows`; its class names the kind, its ``KEY`` fields the row.

Versions come from one sequence and are never used twice, so a row that was removed and written
again has another version than before. There is no global revision and no SQL outside an adapter.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from dss_core.errors import VersionMoved
from dssd.store.rows import Row

R = TypeVar("R", bound=Row)
Key = tuple[int | str | bytes, ...]


@dataclass(frozen=True, slots=True)
class Versioned(Generic[R]):
    """A committed row and the version that this commit gave it."""

    row: R
    version: int


@dataclass(frozen=True, slots=True)
class Put:
    """Write the row, whether it exists or not."""

    row: Row


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the row if it exists."""

    kind: type[Row]
    key: Key


@dataclass(frozen=True, slots=True)
class Absent:
    """Precondition: there is no such row."""

    kind: type[Row]
    key: Key


@dataclass(frozen=True, slots=True)
class Exists:
    """Precondition: there is such a row."""

    kind: type[Row]
    key: Key


@dataclass(frozen=True, slots=True)
class VersionIs:
    """Precondition: the row is there with this version."""

    kind: type[Row]
    key: Key
    version: int


Write = Put | Delete
Precondition = Absent | Exists | VersionIs


class PreconditionFailed(VersionMoved):
    """A precondition did not hold; nothing was written.

    Carries the first one that failed and the row as it is now, None where there is none.
    """

    def __init__(self, precondition: Precondition, current: Versioned[Row] | None) -> None:
        super().__init__(kind=precondition.kind.__name__, key=precondition.key)
        self.precondition = precondition
        self.current = current


@dataclass(frozen=True, slots=True)
class Change:
    """One committed write, as a watcher sees it."""

    kind: type[Row]
    key: Key
    row: Row | None
    """None where it was removed."""
    version: int


class Store(Protocol):
    """The port. Adapters: SQLite, and a dictionary that tests and the simulator use."""

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        """Apply all writes, durably; returns the version that each got, in order.

        Raises:
            PreconditionFailed: nothing was written.
        """

    async def read(self, kind: type[R], key: Key) -> Versioned[R] | None:
        """The committed row, or None."""

    async def scan(
        self, kind: type[R], prefix: Key = (), *, after: Key | None = None, limit: int = 10_000
    ) -> list[Versioned[R]]:
        """Rows whose key starts with the prefix, in key order; with ``after``, only later keys."""

    def watch(self, kind: type[Row]) -> AsyncIterator[Change]:
        """Every change of a kind committed from now on, in commit order."""

    async def next_id(self) -> int:
        """A number that this store never returned before, durable before it is returned."""

    async def last_id(self) -> int:
        """The newest number that `next_id` returned; 0 before the first."""

    async def close(self) -> None:
        """Commit the queued writes, write the write-ahead log back, close."""
