"""Applies commits to the database: many in one transaction, each in its own savepoint.

::

    BEGIN IMMEDIATE
        SAVEPOINT one;  preconditions, writes;  RELEASE one        ┐ a commit that fails is rolled
        SAVEPOINT one;  preconditions fail;     ROLLBACK TO one    │ back to its savepoint, and
        SAVEPOINT one;  preconditions, writes;  RELEASE one        ┘ its neighbours are not
        sequences
    COMMIT                                                           one sync for all

Invariant: a version is assigned once, even if its transaction is rolled back; the sequences are
durable with the first commit that used their numbers; a row that is not as it was written is never
returned. Everything here runs in the thread that owns the connection; it must not know asyncio.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path

from dssd.limits import BLOCK_ROWS, STORE_WAL_BYTES_MAX
from dssd.store import integrity
from dssd.store.checksums import CHECKSUM, UNFIT
from dssd.store.database import READ_ERRORS, concerns_database, is_full, raise_condition
from dssd.store.integrity import SEQUENCES, VERSIONS
from dssd.store.keys import failed_first
from dssd.store.port import Delete, Key, Precondition, PreconditionFailed, Put, Versioned, Write
from dssd.store.reserve import Reserve
from dssd.store.rows import Row
from dssd.store.schema import IDS, Table, sequence_checksum, tables

STORE_CHECKPOINT_PAGES = 1_000
"""How many pages of the write-ahead log are written back at once; larger steps hold up commits."""


STORE_COPY_PAGES = 256
"""How many pages a backup copies at once, 1 MiB: commits wait for some milliseconds."""

SET_SEQUENCE = f'UPDATE "{SEQUENCES}" SET last = ?, "{CHECKSUM}" = ? WHERE name = ?'
WAL_FRAME_HEAD_BYTES = 24


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """Writes to apply if all preconditions hold."""

    writes: tuple[Write, ...]
    preconditions: tuple[Precondition, ...]


@dataclass(frozen=True, slots=True)
class IdRequest:
    """A request for a number that was never returned before."""

    count: int = 1
    """How many numbers to reserve; the last one is returned."""


Request = CommitRequest | IdRequest


@dataclass(frozen=True, slots=True)
class Applied:
    """What a commit did."""

    versions: list[int]
    idle: frozenset[int]
    """Positions of deletes that found no row."""


Outcome = Applied | int | Exception


class ValueUnfit(ValueError):
    """A value is not of its column's type, or too large for it: a programmer's error."""


class Transactions:
    """The connection, the sequences, and how full the write-ahead log is."""

    def __init__(self, connection: sqlite3.Connection, reserve: Reserve) -> None:
        self._connection = connection
        self._path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
        self._reserve = reserve
        self._tables = tables()
        sequences = dict(connection.execute(f'SELECT name, last FROM "{SEQUENCES}"').fetchall())
        self._version: int = sequences[VERSIONS]
        self._id: int = sequences[IDS]
        self._sealed = integrity.is_sealed(connection)
        self._log = LogSize(connection.execute("PRAGMA page_size").fetchone()[0])

    @property
    def last_id(self) -> int:
        """The newest number that was given out."""
        return self._id

    def apply(self, requests: Sequence[Request]) -> list[Outcome]:
        """Apply each request or refuse it on its own; durable on return.

        Raises:
            sqlite3.Error: disk or database failed. All is rolled back; if the error came from
                the commit's sync, the commit may still be durable.
            StoreDamaged: a row that a precondition names is not as it was written.
        """
        version, id_ = self._version, self._id
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            if self._sealed:
                integrity.unseal(self._connection)
            outcomes = [self._in_savepoint(request) for request in requests]
            self._save(VERSIONS, version, self._version)
            self._save(IDS, id_, self._id)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._sealed = False
        self._log.add(self._version - version)
        return outcomes

    def read(self, kind: type[Row], key: Key) -> Versioned[Row] | None:
        """The row with this key.

        Raises:
            StoreDamaged: it is not as it was written.
            DiskFailed: it cannot be read.
        """
        table = self._tables[kind]
        try:
            found = self._connection.execute(table.read_sql, key).fetchone()
            return None if found is None else table.row(found)
        except READ_ERRORS as error:
            raise_condition(error, self._path)

    def scan(
        self, kind: type[Row], prefix: Key, after: Key | None, limit: int
    ) -> list[Versioned[Row]]:
        """The rows whose key starts with the prefix, in key order.

        Raises:
            StoreDamaged, DiskFailed: as for a read.
        """
        table = self._tables[kind]
        sql = table.scan_sql(len(prefix), after=after is not None)
        values = (*prefix, *(after or ()), limit)
        try:
            return [table.row(found) for found in self._connection.execute(sql, values).fetchall()]
        except READ_ERRORS as error:
            raise_condition(error, self._path)

    def write_back_if_due(self) -> None:
        """Write the log back into the database if it has grown enough."""
        if self._log.due():
            self.make_room()

    def make_room(self) -> None:
        """Write the log back, and add free pages if the disk has room."""
        self.write_back()
        self._reserve.keep_pages(self._connection)

    def let_grow(self) -> bool:
        """Let the next transaction grow the database, if the disk has room. Call `make_room`
        afterwards.
        """
        return self._reserve.let_grow(self._connection)

    def write_back(self, *, truncate: bool = False) -> None:
        """Write the log back into the database, so that its space is used again."""
        passive = "PRAGMA wal_checkpoint(PASSIVE)"
        pages = self._connection.execute(passive).fetchone()[1]
        if truncate or self._log.measured(pages):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def write_all_back(self) -> int:
        """Write the whole log back, so that it begins anew; returns how many bytes it had.

        Its blocks are kept, for a full disk, unless it has become too large.
        """
        restart = "PRAGMA wal_checkpoint(RESTART)"
        pages: int = self._connection.execute(restart).fetchone()[1]
        if self._log.measured(pages):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._reserve.keep_log()
        self._reserve.keep_pages(self._connection)
        return self._log.bytes_of(pages)

    def copy_to(self, path: Path, between: Callable[[], None]) -> None:
        """Copy the database as it is at the end, with all that was committed meanwhile.

        ``between`` is called between two pieces, and may commit; what it raises ends the copy.

        Raises:
            sqlite3.Error: the copy cannot be read or written; it is of no use then.
        """
        target = sqlite3.connect(path, isolation_level=None)
        try:
            for pragma in ("journal_mode = OFF", "synchronous = OFF"):
                target.execute(f"PRAGMA {pragma}").fetchall()
            self._connection.backup(
                target, pages=STORE_COPY_PAGES, progress=lambda *_: between(), sleep=0
            )
        finally:
            target.close()

    def close(self) -> None:
        """Seal the database, write the log back, and close the connection; on a full disk the log
        stays as it is.
        """
        try:
            self._seal()
            self.write_back(truncate=True)
        except sqlite3.Error as error:
            if not is_full(error):
                raise
        self._connection.close()

    def _seal(self) -> None:
        if self._sealed:
            return
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            integrity.seal(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._sealed = True

    def _in_savepoint(self, request: Request) -> Outcome:
        if isinstance(request, IdRequest):
            self._id += request.count
            return self._id
        self._connection.execute("SAVEPOINT one")
        try:
            outcome = self._commit(request)
        except sqlite3.Error as error:
            if concerns_database(error):
                raise
            return self._undone(error)
        except (PreconditionFailed, ValueUnfit, OverflowError, UnicodeEncodeError) as error:
            return self._undone(error)
        self._connection.execute("RELEASE one")
        return outcome

    def _undone(self, error: Exception) -> Exception:
        self._connection.execute("ROLLBACK TO one")
        self._connection.execute("RELEASE one")
        return error

    def _commit(self, request: CommitRequest) -> Applied:
        failed = failed_first(request.preconditions, self._row_for)
        if failed is not None:
            raise PreconditionFailed(*failed)
        first = self._version + 1
        idle: list[int] = []
        at = 0
        for kind, run in groupby(request.writes, key=_put_kind):
            writes = list(run)
            if kind is None:
                idle += self._delete(writes, at)
                self._version += len(writes)
            else:
                self._put(self._tables[kind], writes)
            at += len(writes)
        return Applied(list(range(first, first + at)), frozenset(idle))

    def _put(self, table: Table, writes: Sequence[Write]) -> None:
        """Write rows of one kind; the only loop here that sees thousands of rows."""
        stored = table.stored
        first = self._version + 1
        try:
            rows = [
                stored(write.row, version)
                for version, write in enumerate(writes, first)
                if isinstance(write, Put)
            ]
        except UNFIT as error:
            raise ValueUnfit(f"a row of {table.name}: {error}") from error
        self._version += len(writes)
        whole = len(rows) - len(rows) % BLOCK_ROWS
        for at in range(0, whole, BLOCK_ROWS):
            block = list(chain.from_iterable(rows[at : at + BLOCK_ROWS]))
            self._connection.execute(table.put_block_sql, block)
        self._connection.executemany(table.put_sql, rows[whole:])

    def _delete(self, writes: Sequence[Write], at: int) -> list[int]:
        idle: list[int] = []
        for position, write in enumerate(writes, at):
            assert isinstance(write, Delete)
            sql = self._tables[write.kind].delete_sql
            if self._connection.execute(sql, write.key).rowcount == 0:
                idle.append(position)
        return idle

    def _row_for(self, precondition: Precondition) -> Versioned[Row] | None:
        return self.read(precondition.kind, precondition.key)

    def _save(self, name: str, was: int, now: int) -> None:
        if now != was:
            self._connection.execute(SET_SEQUENCE, (now, sequence_checksum(name, now), name))


class LogSize:
    """Estimates how many pages the write-ahead log holds, because SQLite reports that only when
    the log is written back.

    The rows per page differ from commit to commit, so each write-back updates the estimate.
    """

    def __init__(self, page_bytes: int) -> None:
        self._frame_bytes = page_bytes + WAL_FRAME_HEAD_BYTES
        self._rows = 0
        self._pages_per_row = 1.0

    def add(self, rows: int) -> None:
        """Count the rows of a transaction, and two more for its sequences and its root."""
        self._rows += rows + 2

    def due(self) -> bool:
        """Whether the log holds about as many pages as a write-back is due for."""
        return self._rows * self._pages_per_row >= STORE_CHECKPOINT_PAGES

    def bytes_of(self, pages: int) -> int:
        """How many bytes so many pages take in the log."""
        return pages * self._frame_bytes

    def measured(self, pages: int) -> bool:
        """Update the estimate after a write-back; returns whether the log should be truncated."""
        if self._rows:
            # At least 1/64, so that a change of load is noticed within 64,000 rows.
            self._pages_per_row = min(8.0, max(1 / 64, pages / self._rows))
        self._rows = 0
        return self.bytes_of(pages) > STORE_WAL_BYTES_MAX


def _put_kind(write: Write) -> type[Row] | None:
    return type(write.row) if isinstance(write, Put) else None
