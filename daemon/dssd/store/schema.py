"""Tables, derived from the kinds of rows, and migrations from one format to the next.

A kind becomes one STRICT table: a column per field, then ``version`` and ``checksum``; the ``KEY``
fields are its primary key. A new database is created from the current kinds. An older one is
migrated, one format at a time, each in one transaction that also raises ``user_version``. Either
way the resulting tables are compared with the kinds. This module must not know what rows mean, and
loads `sqlite_utils`, which takes a tenth of a start, only to migrate.
"""

import sqlite3
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from dssd.limits import BLOCK_ROWS
from dssd.store.access_tables import add_principals
from dssd.store.added_columns import (
    ERRAND_COLUMNS,
    OPERATED_COLUMNS,
    OWNER_COLUMNS,
    QUEUE_COLUMNS,
    AddedColumns,
)
from dssd.store.checksums import (
    CHECKSUM,
    UNFIT,
    Column,
    Unsound,
    checksum_of,
    is_sound_of,
    stored_of,
)
from dssd.store.integrity import SEAL_SQL, SEQUENCES, VERSION, VERSIONS, fill
from dssd.store.job_tables import add_jobs
from dssd.store.keys import KEY_GETTERS
from dssd.store.port import Key, Versioned
from dssd.store.rows import KINDS, Row

if TYPE_CHECKING:
    import sqlite_utils

APPLICATION_ID = 0x44535353
"""``DSSS``: what `file` shows, and how we know our own database."""

IDS = "ids"
SEQUENCE_COLUMNS = (Column("name", str, optional=False), Column("last", int, optional=False))
VERSION_COLUMN = Column(VERSION, int, optional=False)

sequence_checksum = checksum_of(SEQUENCES, SEQUENCE_COLUMNS)
"""The columns of a sequence: its name and its last number."""

SQL_TYPES: Mapping[type, str] = {int: "INTEGER", bool: "INTEGER", str: "TEXT", bytes: "BLOB"}

_BESIDE = (VERSION_COLUMN, Column(CHECKSUM, int, optional=False))
"""The columns of every table after the fields of its kind."""
_BESIDE_NAMES = tuple(column.name for column in _BESIDE)

_SEQUENCES_SQL = f"""CREATE TABLE "{SEQUENCES}" (
   "name" TEXT PRIMARY KEY,
   "last" INTEGER NOT NULL,
   "{CHECKSUM}" INTEGER NOT NULL
) STRICT, WITHOUT ROWID"""


Migration = Callable[["sqlite_utils.Database"], None]


def add_checksums(db: "sqlite_utils.Database") -> None:
    """Add a checksum to every row, and the table of the seal."""
    for table in db.tables:
        if table.name == SEQUENCES or VERSION in table.columns_dict:
            # SQLite requires a default here; our statements always give a value.
            db.execute(
                f'ALTER TABLE "{table.name}" ADD COLUMN "{CHECKSUM}" INTEGER NOT NULL DEFAULT 0'
            )
            fill(db.conn, table.name)
    db.execute(SEAL_SQL)


def add_lease_protocol(db: "sqlite_utils.Database") -> None:
    """Add the protocol of groups, and the table of stream set versions."""
    db.execute("ALTER TABLE groups ADD COLUMN protocol TEXT NOT NULL DEFAULT 'borrow'")
    fill(db.conn, "groups")
    db.execute(
        "CREATE TABLE stream_sets (group_id INTEGER NOT NULL, session_id BLOB NOT NULL, "
        "set_version INTEGER NOT NULL, version INTEGER NOT NULL, checksum INTEGER NOT NULL, "
        "PRIMARY KEY (group_id, session_id)) STRICT, WITHOUT ROWID"
    )


def add_ceilings(db: "sqlite_utils.Database") -> None:
    """Add the table of ceilings. Existing streams have none and continue at their ends."""
    db.execute(
        "CREATE TABLE ceilings (storage_topic_id INTEGER NOT NULL, partition INTEGER NOT NULL, "
        "ceiling INTEGER NOT NULL, version INTEGER NOT NULL, checksum INTEGER NOT NULL, "
        "PRIMARY KEY (storage_topic_id, partition)) STRICT, WITHOUT ROWID"
    )


def add_fate(db: "sqlite_utils.Database") -> None:
    """Add the fate of records to progress, and a group's policy for damage."""
    for column in ("failures", "doubts", "rests", "damaged"):
        db.execute(f"ALTER TABLE progress ADD COLUMN {column} BLOB NOT NULL DEFAULT x''")
    for kind in ("acked", "filtered", "lost", "damaged"):
        db.execute(f"ALTER TABLE progress ADD COLUMN {kind}_count INTEGER NOT NULL DEFAULT 0")
    fill(db.conn, "progress")
    db.execute("ALTER TABLE groups ADD COLUMN on_damage TEXT NOT NULL DEFAULT 'pass'")
    fill(db.conn, "groups")


def add_events(db: "sqlite_utils.Database") -> None:
    """Add the table of events."""
    db.execute(
        "CREATE TABLE events (number INTEGER NOT NULL, at_ms INTEGER NOT NULL, "
        "code TEXT NOT NULL, severity TEXT NOT NULL, subject TEXT NOT NULL, "
        "sentence TEXT NOT NULL, fields TEXT NOT NULL, times INTEGER NOT NULL, "
        "last_at_ms INTEGER NOT NULL, version INTEGER NOT NULL, checksum INTEGER NOT NULL, "
        "PRIMARY KEY (number)) STRICT, WITHOUT ROWID"
    )


def add_operations(db: "sqlite_utils.Database") -> None:
    """Add the tables of operations, and the columns that operations need in existing tables."""
    _add_columns(db, OPERATED_COLUMNS)
    _add_tables(db, _OPERATION_TABLES)


def add_schedules(db: "sqlite_utils.Database") -> None:
    """Add the tables of schedules."""
    _add_tables(db, _SCHEDULE_TABLES)


def add_asked_delays(db: "sqlite_utils.Database") -> None:
    """Add the intended durations of rests and bans."""
    db.execute("ALTER TABLE progress ADD COLUMN rest_delays BLOB NOT NULL DEFAULT x''")
    fill(db.conn, "progress")
    db.execute("ALTER TABLE bans ADD COLUMN lasts_ms INTEGER")
    fill(db.conn, "bans")


def add_queues(db: "sqlite_utils.Database") -> None:
    """Add retry queues and dead letters: the owners of their topics, and their progress."""
    _add_columns(db, QUEUE_COLUMNS)


def add_growth(db: "sqlite_utils.Database") -> None:
    """Add when a storage topic took over from the one before it."""
    _add_columns(db, {"storage_topics": ("begins_us INTEGER NOT NULL DEFAULT 0",)})


def add_incarnations(db: "sqlite_utils.Database") -> None:
    """Add the table of incarnations; the catalogue draws the first one as it opens."""
    _add_tables(db, _INCARNATION_TABLES)


def add_redrive_rates(db: "sqlite_utils.Database") -> None:
    """Add the time over which a redrive is spread."""
    columns = ("redrive_ms INTEGER NOT NULL DEFAULT 0",)
    _add_columns(db, {"progress": columns, "pending_moves": columns})


def add_group_metadata(db: "sqlite_utils.Database") -> None:
    """Add the metadata of groups, and the time after which unused ones are removed."""
    columns = ("metadata TEXT NOT NULL DEFAULT ''", "unused_ms INTEGER NOT NULL DEFAULT 0")
    _add_columns(db, {"groups": columns})


def add_errands(db: "sqlite_utils.Database") -> None:
    """Add errands of operations for retry queues."""
    _add_columns(db, ERRAND_COLUMNS)


def add_owners(db: "sqlite_utils.Database") -> None:
    """Add the owners of schedules and jobs."""
    _add_columns(db, OWNER_COLUMNS)


def _add_columns(db: "sqlite_utils.Database", tables: AddedColumns) -> None:
    for table, columns in tables.items():
        for column in columns:
            db.execute(f'ALTER TABLE "{table}" ADD COLUMN {column}')
        fill(db.conn, table)


def _add_tables(db: "sqlite_utils.Database", tables: Mapping[str, Sequence[str]]) -> None:
    for table, columns in tables.items():
        *listed, key = columns
        listed += ["version INTEGER NOT NULL", "checksum INTEGER NOT NULL", key]
        db.execute(f'CREATE TABLE "{table}" ({", ".join(listed)}) STRICT, WITHOUT ROWID')


_INCARNATION_TABLES = {
    "incarnations": (
        "number INTEGER NOT NULL",
        "incarnation BLOB NOT NULL",
        "PRIMARY KEY (number)",
    ),
}

_STREAM = ("storage_topic_id INTEGER NOT NULL", "partition INTEGER NOT NULL")

_OPERATION_TABLES = {
    "pending_moves": (
        "group_id INTEGER NOT NULL",
        *_STREAM,
        "number INTEGER NOT NULL",
        "dropped BLOB NOT NULL",
        "added BLOB NOT NULL",
        "PRIMARY KEY (group_id, storage_topic_id, partition)",
    ),
    "made_moves": (
        "number INTEGER NOT NULL",
        *_STREAM,
        "floor_before INTEGER NOT NULL",
        "ranges_before BLOB NOT NULL",
        "floor_after INTEGER NOT NULL",
        "ranges_after BLOB NOT NULL",
        "PRIMARY KEY (number, storage_topic_id, partition)",
    ),
    "operations": (
        "number INTEGER NOT NULL",
        "operation_id TEXT NOT NULL",
        "kind TEXT NOT NULL",
        "subject TEXT NOT NULL",
        "group_id INTEGER NOT NULL",
        "state TEXT NOT NULL",
        "asked TEXT NOT NULL",
        "change TEXT NOT NULL",
        "summary TEXT NOT NULL",
        "reason TEXT NOT NULL",
        "principal TEXT NOT NULL",
        "origin TEXT NOT NULL",
        "applied_at_ms INTEGER NOT NULL",
        "ended_at_ms INTEGER",
        "revision INTEGER NOT NULL",
        "before TEXT NOT NULL",
        "after TEXT NOT NULL",
        "failure TEXT NOT NULL",
        "undoes INTEGER NOT NULL",
        "undone_by INTEGER NOT NULL",
        "not_undoable_because TEXT NOT NULL",
        "PRIMARY KEY (number)",
    ),
    "operation_ids": (
        "operation_id TEXT NOT NULL",
        "number INTEGER NOT NULL",
        "PRIMARY KEY (operation_id)",
    ),
    "bans": (
        "group_id INTEGER NOT NULL",
        "client_id TEXT NOT NULL",
        "until_ms INTEGER NOT NULL",
        "number INTEGER NOT NULL",
        "PRIMARY KEY (group_id, client_id)",
    ),
}


_SCHEDULE_TABLES = {
    "schedules": (
        "name TEXT NOT NULL",
        "schedule_id INTEGER NOT NULL",
        "task TEXT NOT NULL",
        "arguments TEXT NOT NULL",
        "cron TEXT NOT NULL",
        "time_zone TEXT NOT NULL",
        "jitter_ms INTEGER NOT NULL",
        "overlap TEXT NOT NULL",
        "catch_up_ms INTEGER NOT NULL",
        "timeout_ms INTEGER NOT NULL",
        "retries INTEGER NOT NULL",
        "backoff_ms INTEGER NOT NULL",
        "paused INTEGER NOT NULL",
        "since_ms INTEGER NOT NULL",
        "created_at_ms INTEGER NOT NULL",
        "revision INTEGER NOT NULL",
        "PRIMARY KEY (name)",
    ),
    "schedule_positions": (
        "schedule_id INTEGER NOT NULL",
        "cursor_ms INTEGER NOT NULL",
        "last_run INTEGER NOT NULL",
        "PRIMARY KEY (schedule_id)",
    ),
    "schedule_runs": (
        "schedule_id INTEGER NOT NULL",
        "run INTEGER NOT NULL",
        "due_ms INTEGER NOT NULL",
        "cause TEXT NOT NULL",
        "state TEXT NOT NULL",
        "attempt INTEGER NOT NULL",
        "started_at_ms INTEGER",
        "ended_at_ms INTEGER",
        "retry_at_ms INTEGER",
        "operation INTEGER NOT NULL",
        "output TEXT NOT NULL",
        "failure TEXT NOT NULL",
        "count INTEGER NOT NULL",
        "PRIMARY KEY (schedule_id, run)",
    ),
}


MIGRATIONS: Sequence[Migration] = (
    add_checksums,
    add_lease_protocol,
    add_ceilings,
    add_fate,
    add_events,
    add_operations,
    add_schedules,
    add_jobs,
    add_asked_delays,
    add_queues,
    add_growth,
    add_incarnations,
    add_redrive_rates,
    add_principals,
    add_group_metadata,
    add_errands,
    add_owners,
)
"""``MIGRATIONS[n]`` makes format n + 2 of format n + 1. One that changes the columns or the rows of
a table ends with `dssd.store.integrity.fill` of that table."""

FORMAT = len(MIGRATIONS) + 1


class SchemaDiffers(Exception):
    """A table does not match its kind. Carries its name."""

    def __init__(self, table: str, found: Mapping[str, str], wanted: Mapping[str, str]) -> None:
        super().__init__(f"table {table} has columns {dict(found)}, not {dict(wanted)}")
        self.table = table


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
    stored: Callable[[Row, int], tuple[Any, ...]]
    """The values to store for a row and its version: fields, version, checksum."""
    is_sound: Callable[..., bool]
    """Whether the values of a SELECT match their checksum."""
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
            stored=stored_of(kind.TABLE, (*columns, VERSION_COLUMN)),
            is_sound=is_sound_of(kind.TABLE, (*columns, VERSION_COLUMN)),
            key=KEY_GETTERS[kind],
            bools=tuple(at for at, column in enumerate(columns) if column.type is bool),
        )

    def scan_sql(self, prefix: int, *, after: bool) -> str:
        """Selects rows by their first ``prefix`` key fields; with ``after``, above a whole key."""
        key = self.kind.KEY
        names = [column.name for column in self.columns]
        conditions = [f'"{name}" = ?' for name in key[:prefix]]
        if after:
            conditions.append(f"({_list(key)}) > ({', '.join('?' * len(key))})")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"{_select(self.kind, names)}{where} ORDER BY {_list(key)} LIMIT ?"

    def row(self, found: tuple[Any, ...]) -> Versioned[Row]:
        """The row that a SELECT found.

        Raises:
            Unsound: it is not as it was written.
        """
        try:
            sound = self.is_sound(*found)
        except UNFIT:
            sound = False
        *values, version, _ = found
        for at in self.bools:
            values[at] = bool(values[at])
        row = self.kind(*values)
        if not sound:
            raise Unsound.row(self.name, self.key(row))
        return Versioned(row, version)


@cache
def tables() -> Mapping[type[Row], Table]:
    """The table of every kind; compiling their functions takes some milliseconds."""
    return {kind: Table.of(kind) for kind in KINDS}


def columns_of(kind: type[Row]) -> tuple[Column, ...]:
    """The columns of a kind. Programmer error: a field of a type that rows may not have."""
    hints = get_type_hints(kind)
    return tuple(_column(field.name, hints[field.name]) for field in fields(kind))  # type: ignore[arg-type] # every kind is a dataclass


def create(connection: sqlite3.Connection) -> None:
    """Create all tables of a new database."""
    for kind in KINDS:
        connection.execute(create_sql(kind))
    connection.execute(_SEQUENCES_SQL)
    connection.execute(SEAL_SQL)
    connection.executemany(
        f'INSERT INTO "{SEQUENCES}" VALUES (?, ?, ?)',
        [(name, 0, sequence_checksum(name, 0)) for name in (VERSIONS, IDS)],
    )


def create_sql(kind: type[Row]) -> str:
    """The statement that creates the table of a kind: a tree that is ordered by its key."""
    key = "" if len(kind.KEY) > 1 else kind.KEY[0]
    lines = [
        f'"{column.name}" {SQL_TYPES[column.type]}'
        f"{' PRIMARY KEY' if column.name == key else ''}{'' if column.optional else ' NOT NULL'}"
        for column in (*columns_of(kind), *_BESIDE)
    ]
    if not key:
        lines.append(f"PRIMARY KEY ({_list(kind.KEY)})")
    inside = ",\n   ".join(lines)
    return f'CREATE TABLE "{kind.TABLE}" (\n   {inside}\n) STRICT, WITHOUT ROWID'


def verify(connection: sqlite3.Connection) -> None:
    """Compare the tables with the kinds.

    Raises:
        SchemaDiffers: a table is missing or has other columns.
        Unsound: a sequence is missing.
    """
    tables = {kind.TABLE: (*columns_of(kind), VERSION_COLUMN) for kind in KINDS}
    for table, columns in (tables | {SEQUENCES: SEQUENCE_COLUMNS}).items():
        wanted = {column.name: SQL_TYPES[column.type] for column in columns}
        wanted[CHECKSUM] = SQL_TYPES[int]
        found = {row[1]: row[2] for row in connection.execute(f'PRAGMA table_info("{table}")')}
        if found != wanted:
            raise SchemaDiffers(table, found, wanted)
    found_names = {name for (name,) in connection.execute(f'SELECT name FROM "{SEQUENCES}"')}
    if found_names != {VERSIONS, IDS}:
        raise Unsound(f"its sequences are {sorted(found_names)}")


def migrate(
    connection: sqlite3.Connection, found: int, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Bring a database of format ``found`` (0: empty) to the newest; verifies the result."""
    steps: list[tuple[int, Callable[[], None]]] = []
    if found == 0:
        steps = [(len(migrations) + 1, partial(create, connection))]
    elif found <= len(migrations):
        import sqlite_utils

        db = sqlite_utils.Database(connection, execute_plugins=False)
        older = enumerate(migrations[found - 1 :], found + 1)
        steps = [(reached, partial(migration, db)) for reached, migration in older]
    for reached, step in steps:
        connection.execute("BEGIN IMMEDIATE")
        try:
            step()
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {reached}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    verify(connection)


def _column(name: str, hint: object) -> Column:
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    plain = [option for option in options if option is not types.NoneType]
    assert len(plain) == 1, (name, hint)
    assert plain[0] in SQL_TYPES, (name, hint)
    return Column(name, plain[0], optional=types.NoneType in options)


def _put_sql(kind: type[Row], names: Sequence[str], rows: int) -> str:
    stored = [*names, *_BESIDE_NAMES]
    changing = [name for name in stored if name not in kind.KEY]
    updates = ", ".join(f'"{name}" = excluded."{name}"' for name in changing)
    values = f"({', '.join('?' * len(stored))})"
    return (
        f'INSERT INTO "{kind.TABLE}" ({_list(stored)}) VALUES {", ".join([values] * rows)} '
        f"ON CONFLICT ({_list(kind.KEY)}) DO UPDATE SET {updates}"
    )


def _select(kind: type[Row], names: Sequence[str]) -> str:
    return f'SELECT {_list([*names, *_BESIDE_NAMES])} FROM "{kind.TABLE}"'


def _list(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
