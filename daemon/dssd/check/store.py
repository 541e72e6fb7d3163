"""Reads and checks the store of a stopped daemon without changing it.

A store that was closed is one file and is read in place. One that was not closed has a write-ahead
log too, and SQLite reads that only where it may write: so both files are copied elsewhere first.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from dss_core.errors import DataDirectoryNewer
from dssd.check.findings import Report
from dssd.store import integrity, schema, wal_damage
from dssd.store.checksums import Unsound
from dssd.store.database import described
from dssd.store.rows import Row

CHECK_FINDINGS_MAX = 100
"""Findings of one kind that `dssd check` lists."""


R = TypeVar("R", bound=Row)


class NotBegun(Exception):
    """There is no database, or an empty one."""


class StoreRows:
    """All rows of a database that passed its own checks."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, kind: type[R]) -> list[R]:
        """The rows of a kind, in key order."""
        table = schema.Table.of(kind)
        found = self._connection.execute(table.scan_sql(0, after=False), (-1,)).fetchall()
        rows = [table.row(values).row for values in found]
        return [row for row in rows if isinstance(row, kind)]

    def last_id(self) -> int:
        """The newest number that the store gave."""
        query = f'SELECT last FROM "{integrity.SEQUENCES}" WHERE name = ?'
        [(last,)] = self._connection.execute(query, (schema.IDS,)).fetchall()
        return int(last)


@contextmanager
def opened_rows(path: Path, report: Report) -> Iterator[StoreRows | None]:
    """Check a database by itself and give its rows; None if it cannot be read.

    Raises:
        NotBegun: there is none, or the daemon ended while it created it.
        DataDirectoryNewer: a newer version wrote it.
        OSError: it cannot be copied.
    """
    if not path.exists():
        raise NotBegun
    if _is_log_damaged(path.with_name(f"{path.name}-wal"), report):
        yield None
        return
    with _readable(path) as database, closing(_connected(database)) as connection:
        try:
            sound = _is_ours(connection, path, report) and _is_sound(connection, path, report)
        except sqlite3.Error as error:
            report.damage(path, described(error))
            sound = False
        yield StoreRows(connection) if sound else None


def _is_log_damaged(log: Path, report: Report) -> bool:
    """Whether SQLite would drop commits from a damaged log as if they were unfinished."""
    damage = wal_damage.damage_in(log.read_bytes()) if log.exists() else None
    if damage is not None:
        report.damage(log, damage)
    return damage is not None


@contextmanager
def _readable(path: Path) -> Iterator[str]:
    """The URI under which SQLite opens the database, or a copy of it."""
    log = path.with_name(f"{path.name}-wal")
    journal = path.with_name(f"{path.name}-journal")
    left = [file for file in (log, journal) if file.exists()]
    if not left:
        yield f"{path.as_uri()}?immutable=1"
        return
    with tempfile.TemporaryDirectory(prefix="dssd-check-") as folder:
        for file in (path, *left):
            shutil.copyfile(file, Path(folder) / file.name)
        yield (Path(folder) / path.name).as_uri()


def _connected(database: str) -> sqlite3.Connection:
    return sqlite3.connect(database, uri=True, isolation_level=None)


def _is_ours(connection: sqlite3.Connection, path: Path, report: Report) -> bool:
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    if not application_id and not connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
        raise NotBegun
    if application_id != schema.APPLICATION_ID:
        report.damage(path, "it is not the store of a daemon")
        return False
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > schema.FORMAT:
        raise DataDirectoryNewer(path=path, found=found, known=schema.FORMAT)
    if found < schema.FORMAT:
        report.note(path, f"format {found}: the next start makes format {schema.FORMAT} of it")
        return False
    return True


def _is_sound(connection: sqlite3.Connection, path: Path, report: Report) -> bool:
    check = "integrity_check" if report.deep else "quick_check"
    answers = [row[0] for row in connection.execute(f"PRAGMA {check}({CHECK_FINDINGS_MAX})")]
    if answers != ["ok"]:
        for answer in answers:
            report.damage(path, answer)
        return False
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        report.damage(path, f"row {row} of {table} names a row of {parent} that is not there")
    try:
        schema.verify(connection)
        integrity.check(connection)
    except (schema.SchemaDiffers, Unsound) as error:
        report.damage(path, str(error))
        return False
    return True
