"""Stores as earlier versions left them, by the tables that were recorded of each format."""

import sqlite3
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path

from dssd.store import integrity, schema
from dssd.store.rows import KINDS, Row
from dssd.store.sqlite import SqliteStore

SEQUENCES_1 = """
CREATE TABLE "sequences" ("name" TEXT PRIMARY KEY, "last" INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""
SEQUENCES_2 = """
CREATE TABLE "sequences" (
   "name" TEXT PRIMARY KEY,
   "last" INTEGER NOT NULL,
   "checksum" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE "seal" ("contents" INTEGER NOT NULL) STRICT;
"""
LAST_VERSION, LAST_ID = 1_000, 77
RECORDED = Path(__file__).parents[1] / "dssd" / "store"
"""Where the tables are that each format brought or changed."""


@cache
def recorded_tables(format_: int) -> dict[str, str]:
    """How a format creates its tables, by name: as the last format up to it that changed one."""
    tables: dict[str, str] = {}
    for each in range(1, format_ + 1):
        for created in (RECORDED / f"schema_{each}.sql").read_text().strip().split("\n\n"):
            tables[created.split('"')[1]] = created
    return tables


def make_store(path: Path, format_: int, rows: Sequence[Row]) -> list[Row]:
    """A closed store of an older format; returns the rows that it could take."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("\n".join(recorded_tables(format_).values()))
    connection.executescript(SEQUENCES_1 if format_ == 1 else SEQUENCES_2)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    taken = [row for row in rows if row.TABLE in tables]
    connection.execute("BEGIN")
    for version, row in enumerate(taken, 1):
        insert(connection, row, version)
    last = {"versions": LAST_VERSION, "ids": LAST_ID}
    if format_ == 1:
        connection.executemany("INSERT INTO sequences VALUES (?, ?)", last.items())
    else:
        connection.executemany("INSERT INTO sequences VALUES (?, ?, 0)", last.items())
        for table in tables - {"seal"}:
            integrity.fill(connection, table)
    connection.execute("COMMIT")
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {format_}")
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.close()
    return taken


def insert(connection: sqlite3.Connection, row: Row, version: int) -> None:
    """The fields that its table has; a checksum follows."""
    query = "SELECT name FROM pragma_table_info(?)"
    columns = {name for (name,) in connection.execute(query, (row.TABLE,))}
    names = columns & {field.name for field in fields(row)}  # type: ignore[arg-type] # every kind is a dataclass
    values = {name: getattr(row, name) for name in names} | {"version": version}
    values |= {"checksum": 0} if "checksum" in columns else {}
    places = ", ".join(f":{name}" for name in values)
    listed = ", ".join(f'"{name}"' for name in values)
    connection.execute(f'INSERT INTO "{row.TABLE}" ({listed}) VALUES ({places})', values)


async def write_as_of(path: Path, format_: int) -> None:
    """Write a closed store of this version as one of an older format, with what that has room for.

    At most `LAST_ID` ids may have been given.
    """
    store = await SqliteStore.open(path)
    rows = [found.row for kind in KINDS for found in await store.scan(kind)]
    assert await store.next_id() <= LAST_ID
    await store.close()
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()
    make_store(path, format_, rows)
