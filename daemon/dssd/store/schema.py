"""Tables, derived from the kinds of rows, and how one format becomes the next.

A kind becomes one STRICT table: a column a field, ``version`` beside them, the ``KEY`` fields its
primary key. A new database is made as the kinds are now; an older one is migrated, one format at
a time, each in one transaction that also raises ``user_version``. Either way the result is
compared with what the kinds say. It must not know what rows mean.
"""

import sqlite3
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Union, get_args, get_origin, get_type_hints

import sqlite_utils

from dssd.store.keys import KEY_GETTERS
from dssd.store.port import Key, Versioned
from dssd.store.rows import KINDS, Row

APPLICATION_ID = 0x44535353
"""``DSSS``: what `file` shows, and how we know our own database."""

SEQUENCES = "sequences"
VERSIONS = "versions"
IDS = "ids"

COLUMN_TYPES: Mapping[type, type] = {int: int, bool: int, str: str, bytes: bytes}
SQL_TYPES: Mapping[type, str] = {int: "INTEGER", bool: "INTEGER", str: "TEXT", bytes: "BLOB"}

BLOCK_ROWS = 64
"""Rows that one statement writes. Each step of a statement gives up the interpreter's lock and
must win it back from a busy event loop; blocks are also a third faster when nobody contends."""

Migration = Callable[[sqlite_utils.Database], None]

MIGRATIONS: Sequence[Migration] = ()
"""``MIGRATIONS[n]`` makes format n + 2 of format n + 1."""

FORMAT = len(MIGRATIONS) + 1


class SchemaDiffers(Exception):
    """A table is not as its kind says. Carries which one and how."""

    def __init__(self, table: str, found: Mapping[str, str], wanted: Mapping[str, str]) -> None:
        super().__init__(f"table {table} has columns {dict(found)}, not {dict(wanted)}")
        self.table = table


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a kind."""

    name: str
    type: type
    optional: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A kind's table, and the SQL that the commit path has prepared for it."""

    kind: type[Row]
    name: str
    columns: tuple[Column, ...]
    put_sql: str
    put_block_sql: str
    """Writes `BLOCK_ROWS` rows in one step."""
    delete_sql: str
    read_sql: str
    values: Callable[[Row], tuple[Any, ...]]
    """The fields of a row, in column order."""
    key: Callable[[Row], Key]
    bools: tuple[int, ...]
    """Which columns SQLite keeps as 0 and 1."""

    @classmethod
    def of(cls, kind: type[Row]) -> "Table":
        """The table of a kind."""
        columns = columns_of(kind)
        names = [column.name for column in columns]
        where = " AND ".join(f'"{name}" = ?' for name in kind.KEY)
        return cls(
            kind=kind,
            name=kind.TABLE,
            columns=columns,
            put_sql=_put_sql(kind, names, rows=1),
            put_block_sql=_put_sql(kind, names, rows=BLOCK_ROWS),
            delete_sql=f'DELETE FROM "{kind.TABLE}" WHERE {where}',
            read_sql=f"{_select(kind, names)} WHERE {where}",
            values=attrgetter(*names),
            key=KEY_GETTERS[kind],
            bools=tuple(at for at, column in enumerate(columns) if column.type is bool),
        )

    def scan_sql(self, prefix: int, *, after: bool) -> str:
        """Rows whose key starts with so many given values; with ``after`` above a whole key."""
        key = self.kind.KEY
        names = [column.name for column in self.columns]
        conditions = [f'"{name}" = ?' for name in key[:prefix]]
        if after:
            conditions.append(f"({_list(key)}) > ({', '.join('?' * len(key))})")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"{_select(self.kind, names)}{where} ORDER BY {_list(key)} LIMIT ?"

    def row(self, found: tuple[Any, ...]) -> Versioned[Row]:
        """The row that a SELECT found."""
        *values, version = found
        for at in self.bools:
            values[at] = bool(values[at])
        return Versioned(self.kind(*values), version)


def columns_of(kind: type[Row]) -> tuple[Column, ...]:
    """The columns of a kind. Programmer error: a field of a type that rows may not have."""
    hints = get_type_hints(kind)
    return tuple(_column(field.name, hints[field.name]) for field in fields(kind))  # type: ignore[arg-type] # every kind is a dataclass


def create(db: sqlite_utils.Database) -> None:
    """Make all tables of a new database."""
    for kind in KINDS:
        db.execute(create_sql(db, kind))
    sequences = db.create_table_sql(
        SEQUENCES, {"name": str, "last": int}, pk="name", not_null={"last"}, strict=True
    )
    db.execute(_without_rowid(sequences))
    db.table(SEQUENCES).insert_all([{"name": VERSIONS, "last": 0}, {"name": IDS, "last": 0}])


def create_sql(db: sqlite_utils.Database, kind: type[Row]) -> str:
    """How the table of a kind is made."""
    columns = columns_of(kind)
    pk: Any = kind.KEY if len(kind.KEY) > 1 else kind.KEY[0]
    sql = db.create_table_sql(
        kind.TABLE,
        {column.name: COLUMN_TYPES[column.type] for column in columns} | {"version": int},
        pk=pk,
        not_null={column.name for column in columns if not column.optional} | {"version"},
        strict=True,
    )
    return _without_rowid(sql)


def verify(db: sqlite_utils.Database) -> None:
    """Compare the tables with the kinds.

    Raises:
        SchemaDiffers: a table is missing or has other columns.
    """
    for kind in KINDS:
        wanted = {column.name: SQL_TYPES[column.type] for column in columns_of(kind)}
        found = {column.name: column.type for column in db.table(kind.TABLE).columns}
        if found != wanted | {"version": "INTEGER"}:
            raise SchemaDiffers(kind.TABLE, found, wanted)


def migrate(
    connection: sqlite3.Connection, found: int, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Bring a database of format ``found`` (0: empty) to the newest; verifies the result."""
    db = sqlite_utils.Database(connection, execute_plugins=False)
    steps: list[tuple[int, Migration]] = [(len(migrations) + 1, create)] if found == 0 else []
    steps += [(at + 2, step) for at, step in enumerate(migrations) if 0 < found < at + 2]
    for reached, step in steps:
        connection.execute("BEGIN IMMEDIATE")
        try:
            step(db)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {reached}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    verify(db)


def _column(name: str, hint: object) -> Column:
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    plain = [option for option in options if option is not types.NoneType]
    assert len(plain) == 1, (name, hint)
    assert plain[0] in COLUMN_TYPES, (name, hint)
    return Column(name, plain[0], optional=types.NoneType in options)


def _without_rowid(sql: str) -> str:
    """One tree a table, ordered by its key, instead of a table and an index."""
    return f"{sql.rstrip().removesuffix(';')}, WITHOUT ROWID"


def _put_sql(kind: type[Row], names: Sequence[str], rows: int) -> str:
    stored = [*names, "version"]
    changing = [name for name in stored if name not in kind.KEY]
    updates = ", ".join(f'"{name}" = excluded."{name}"' for name in changing)
    values = f"({', '.join('?' * len(stored))})"
    return (
        f'INSERT INTO "{kind.TABLE}" ({_list(stored)}) VALUES {", ".join([values] * rows)} '
        f"ON CONFLICT ({_list(kind.KEY)}) DO UPDATE SET {updates}"
    )


def _select(kind: type[Row], names: Sequence[str]) -> str:
    return f'SELECT {_list([*names, "version"])} FROM "{kind.TABLE}"'


def _list(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
