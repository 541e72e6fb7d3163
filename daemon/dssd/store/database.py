"""Opens the one connection to the database, and classifies its errors.

The connection holds the database for itself (``locking_mode=EXCLUSIVE``): SQLite before 3.51.3
can lose a write-ahead log that two connections write back, so there is never a second connection,
neither in this process nor in another. This module must not know kinds of rows.
"""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from dss_core.errors import (
    DataDirectoryLocked,
    DataDirectoryNewer,
    DiskFailed,
    DiskFull,
    DssError,
    StoreDamaged,
)
from dssd.limits import STORE_WAL_BYTES_MAX
from dssd.store import integrity, schema
from dssd.store.checksums import Unsound
from dssd.store.reserve import Reserve
from dssd.store.wal_damage import damage_in

STORE_BUSY_MS = 5_000
"""How long to wait for a database that another process holds open."""

STORE_CACHE_KIB = 16 << 10
"""Pages of the database kept in memory: the rows of some 100,000 streams."""


PRAGMAS: Sequence[tuple[str, str, str | int]] = (
    # First, so that the index of the write-ahead log lives in memory and nobody shares it.
    ("locking_mode", "EXCLUSIVE", "exclusive"),
    ("journal_mode", "WAL", "wal"),
    # NORMAL would not sync at a commit: a power cut could take back what was acknowledged.
    ("synchronous", "FULL", 2),
    ("wal_autocheckpoint", "0", 0),
    ("journal_size_limit", str(STORE_WAL_BYTES_MAX), STORE_WAL_BYTES_MAX),
    ("busy_timeout", str(STORE_BUSY_MS), STORE_BUSY_MS),
    ("foreign_keys", "ON", 1),
    ("trusted_schema", "OFF", 0),
    ("cell_size_check", "ON", 1),
    # A mapped file turns a disk error into SIGBUS.
    ("mmap_size", "0", 0),
    ("temp_store", "MEMORY", 2),
    # Otherwise SQLite overwrites freed pages with zeros.
    ("secure_delete", "OFF", 0),
    ("cache_size", str(-STORE_CACHE_KIB), -STORE_CACHE_KIB),
)
"""Name, value to set, value to read back."""

DAMAGED = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        # Our statements are correct while opening and reading, so this error means a damaged
        # schema.
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        # Of the Python module: text that is not UTF-8.
        None,
    }
)
READ_ERRORS = (sqlite3.Error, schema.SchemaDiffers, Unsound, UnicodeDecodeError)
"""The errors of opening and reading that the content of the file causes."""

WRONG_CALLS = (sqlite3.ProgrammingError, sqlite3.InterfaceError)
REFUSED = frozenset(
    {
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_MISUSE,
        sqlite3.SQLITE_RANGE,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_ERROR,
    }
)
"""The errors of a wrong statement or a wrong value. All others concern the whole database."""


def primary_code(error: sqlite3.Error) -> int | None:
    """SQLite's result code without its extension; None for an error of the Python module."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def concerns_database(error: sqlite3.Error) -> bool:
    """Whether the error concerns the disk or the whole database, not one statement."""
    code = primary_code(error)
    return code is not None and code not in REFUSED


def is_full(error: sqlite3.Error) -> bool:
    """Whether the disk was full before anything could be committed."""
    return primary_code(error) == sqlite3.SQLITE_FULL


def raise_condition(error: Exception, path: Path) -> NoReturn:
    """Raise the condition for one of `READ_ERRORS`; no other code maps them. A wrong call of SQLite
    is a programmer's error and is raised unchanged.
    """
    if isinstance(error, sqlite3.Error):
        if isinstance(error, WRONG_CALLS):
            raise error
        raise _condition(error, path) from error
    raise StoreDamaged(path=path, reason=error) from error


def _condition(error: sqlite3.Error, path: Path) -> DssError:
    match primary_code(error):
        case sqlite3.SQLITE_FULL:
            return DiskFull()
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return DataDirectoryLocked(path=path)
        case code if code in DAMAGED:
            return StoreDamaged(path=path, reason=described(error))
    return DiskFailed(reason=f"store: {described(error)}")


def described(error: sqlite3.Error) -> str:
    """SQLite's name of the error, and its text."""
    return f"{getattr(error, 'sqlite_errorname', type(error).__name__)}: {error}"


def opened(
    path: Path, migrations: Sequence[schema.Migration] = schema.MIGRATIONS
) -> sqlite3.Connection:
    """Open the connection, with all pragmas checked and the schema of this version.

    Raises:
        DataDirectoryNewer: a newer version wrote it; it is left as it was.
        DataDirectoryLocked: another process has it open.
        StoreDamaged: it is not a database, not ours, or not as it was written.
        DiskFull, DiskFailed: the disk did not allow it.
    """
    _check_log(_log_of(path))
    try:
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            _prepare(connection, path, migrations)
        except BaseException:
            connection.close()
            raise
    except READ_ERRORS as error:
        raise_condition(error, path)
    return connection


def _prepare(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[schema.Migration]
) -> None:
    connection.execute(f"PRAGMA busy_timeout = {STORE_BUSY_MS}")
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    found = _format(connection, path)
    known = len(migrations) + 1
    if found > known:
        raise DataDirectoryNewer(path=path, found=found, known=known)
    for name, value, expected in PRAGMAS:
        # Fetched to the end, because a pragma reports its error there.
        connection.execute(f"PRAGMA {name} = {value}").fetchall()
        read_back = connection.execute(f"PRAGMA {name}").fetchone()[0]
        assert read_back == expected, (name, read_back, expected)
    _check_writable(connection)
    if found > 0:
        _check_sound(connection, path)
    if 0 < found < known:
        _back_up(connection, path.with_name(f"{path.name}.format-{found}"))
    schema.migrate(connection, found, migrations)
    reserve = Reserve(path)
    reserve.keep_log()
    # The directory too: SQLite syncs it, but ignores an error of that sync.
    _sync(path.parent)
    try:
        reserve.keep_pages(connection)
    except sqlite3.Error as error:
        if not is_full(error):
            raise


def _format(connection: sqlite3.Connection, path: Path) -> int:
    """The format of an existing database, 0 if it is empty; nothing is written."""
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application_id == 0 and tables == 0:
        return 0
    if application_id != schema.APPLICATION_ID:
        raise StoreDamaged(path=path, reason="it is the database of another program")
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def _check_writable(connection: sqlite3.Connection) -> None:
    """Fail here, not at the first commit, if the file is read-only. A bare BEGIN would succeed."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    finally:
        connection.execute("ROLLBACK")


def _check_sound(connection: sqlite3.Connection, path: Path) -> None:
    answers = [row[0] for row in connection.execute("PRAGMA quick_check(10)")]
    if answers != ["ok"]:
        raise StoreDamaged(path=path, reason="; ".join(answers))
    integrity.check(connection)


def _back_up(connection: sqlite3.Connection, target: Path) -> None:
    """Keep the database as it was before a migration. An unfinished copy is made again."""
    unfinished = target.with_name(f"{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    connection.execute("VACUUM INTO ?", (str(unfinished),))
    # SQLite does not sync what it vacuums into.
    _sync(unfinished)
    unfinished.rename(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_log(log: Path) -> None:
    """Check the log before SQLite opens it: SQLite drops what it takes for unfinished commits."""
    try:
        content = log.read_bytes()
    except FileNotFoundError:
        return  # A clean close removes it.
    damage = damage_in(content)
    if damage is not None:
        raise StoreDamaged(path=log, reason=damage)


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")
