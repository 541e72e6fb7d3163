"""Whether a database is as it was written: the checks that SQLite does not make itself.

An open makes three checks before anybody reads a row. Each row must match its checksum. No row may
be newer than the sequence of versions. And if the database was closed cleanly, all rows must be
there: closing writes a *seal*, the hash of all checksums, and the first commit removes it. The seal
finds what checksums cannot: a missing row, or a page or a whole file that is older than the others.

Invariant: tables are read as the database has them, because they are checked before a migration.
This module must not know kinds of rows.
"""

import sqlite3
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from xxhash import xxh3_64

from dssd.store.checksums import CHECKSUM, UNFIT, Column, Unsound, checksum_of, is_sound_of

INTEGRITY_ROWS_AT_ONCE = 4_096
"""How many rows the check of a start holds in memory at once."""


SEQUENCES = "sequences"
VERSIONS = "versions"
VERSION = "version"

SEAL = "seal"
SEAL_SQL = f'CREATE TABLE "{SEAL}" ("contents" INTEGER NOT NULL) STRICT'

_TYPES = {"INTEGER": int, "TEXT": str, "BLOB": bytes}
_WORD = struct.Struct("<q")


@dataclass(frozen=True, slots=True)
class _Table:
    """A table with checksums, as the database has it."""

    name: str
    columns: tuple[Column, ...]
    """All columns except the checksum."""
    key: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def key_of(self, values: tuple[object, ...]) -> list[object]:
        """The key of a row whose values are in the order of the columns."""
        return [values[self.names.index(name)] for name in self.key]

    def select(self, *names: str) -> str:
        """All rows in the order of their keys."""
        return f'SELECT {_list(names)} FROM "{self.name}" ORDER BY {_list(self.key)}'


def check(connection: sqlite3.Connection) -> None:
    """Check all rows against their checksums, the sequence of versions, and the seal.

    Raises:
        Unsound: something is not as it was written.
        sqlite3.Error: SQLite cannot read it.
    """
    last_version = _last_version(connection)
    for table in _tables(connection):
        _check_rows(connection, table)
        newest = _newest(connection, table)
        if newest > last_version:
            raise Unsound(f"table {table.name} has version {newest}, which was not given yet")
    if not all(seal == _contents(connection) for seal in _seals(connection)):
        raise Unsound("its rows are not those that were there when it was closed")


def fill(connection: sqlite3.Connection, table: str) -> None:
    """Give every row of a table its checksum. For migrations, in their transaction."""
    found = _table(connection, table)
    checksum = checksum_of(found.name, found.columns)
    where = " AND ".join(f'"{name}" = ?' for name in found.key)
    rows = connection.execute(found.select(*found.names)).fetchall()
    connection.executemany(
        f'UPDATE "{table}" SET "{CHECKSUM}" = ? WHERE {where}',
        [(checksum(*values), *found.key_of(values)) for values in rows],
    )


def is_sealed(connection: sqlite3.Connection) -> bool:
    """Whether nothing was committed since the last clean close."""
    return bool(_seals(connection))


def seal(connection: sqlite3.Connection) -> None:
    """Write the seal, in the caller's transaction. There is none yet."""
    connection.execute(f'INSERT INTO "{SEAL}" VALUES (?)', (_contents(connection),))


def unseal(connection: sqlite3.Connection) -> None:
    """Remove the seal, in the transaction of the first change."""
    connection.execute(f'DELETE FROM "{SEAL}"')


def _check_rows(connection: sqlite3.Connection, table: _Table) -> None:
    is_sound = is_sound_of(table.name, table.columns)
    for found in connection.execute(table.select(*table.names, CHECKSUM)):
        try:
            sound = is_sound(*found)
        except UNFIT:
            sound = False
        if not sound:
            raise Unsound.row(table.name, table.key_of(found))


def _newest(connection: sqlite3.Connection, table: _Table) -> int:
    """The highest version in the table; 0 where there is none."""
    if VERSION not in table.names:
        return 0
    query = f'SELECT coalesce(max("{VERSION}"), 0) FROM "{table.name}"'
    newest: int = connection.execute(query).fetchone()[0]
    return newest


def _last_version(connection: sqlite3.Connection) -> int:
    query = f'SELECT last FROM "{SEQUENCES}" WHERE name = ?'
    found = connection.execute(query, (VERSIONS,)).fetchone()
    if found is None:
        raise Unsound(f"the sequence of {VERSIONS} is gone")
    last: int = found[0]
    return last


def _seals(connection: sqlite3.Connection) -> list[int]:
    """The seal, if there is one; formats without a seal have none."""
    known = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (SEAL,)).fetchone()
    if known is None:
        return []
    return [contents for (contents,) in connection.execute(f'SELECT contents FROM "{SEAL}"')]


def _contents(connection: sqlite3.Connection) -> int:
    """The hash of the checksums of all rows, in order; each checksum covers table and key."""
    summed = xxh3_64()
    for table in _tables(connection):
        found = connection.execute(table.select(CHECKSUM))
        for rows in iter(partial(found.fetchmany, INTEGRITY_ROWS_AT_ONCE), []):
            summed.update(struct.pack(f"<{len(rows)}q", *chain.from_iterable(rows)))
    (contents,) = _WORD.unpack(summed.digest())
    return int(contents)


def _tables(connection: sqlite3.Connection) -> Iterator[_Table]:
    """The tables that have checksums, by name."""
    query = (
        "SELECT m.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c "
        "WHERE m.type = 'table' AND c.name = ? ORDER BY m.name"
    )
    for (name,) in connection.execute(query, (CHECKSUM,)).fetchall():
        yield _table(connection, name)


def _table(connection: sqlite3.Connection, name: object) -> _Table:
    if not isinstance(name, str):
        raise Unsound(f"a table has the name {name!r}")
    query = 'SELECT name, type, "notnull", pk FROM pragma_table_info(?)'
    found = connection.execute(query, (name,)).fetchall()
    if not {type_ for _, type_, _, _ in found} <= _TYPES.keys():
        raise Unsound(f"table {name} has a column of another type than any that rows have")
    columns = tuple(
        Column(column, _TYPES[type_], optional=not notnull)
        for column, type_, notnull, _ in found
        if column != CHECKSUM
    )
    key = sorted((place, column) for column, _, _, place in found if place)
    return _Table(name, columns, tuple(column for _, column in key))


def _list(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
