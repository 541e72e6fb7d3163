"""Disk space that the store reserves, so that it can continue when the disk is full.

There are two reserves. The blocks of the write-ahead log are allocated at the start, so commits
find room. The database has free pages that are on the disk already, and puts new rows into them; it
grows only here, if the disk has room. So the log can always be written back and its blocks used
again, and existing rows are rewritten however long the disk is full. New rows find room until the
free pages are used up. Free pages are added when the log is next written back on a disk with room.

Invariant: a disk that is too full for a reserve is no error, now or later. No row shows a reserve.
"""

import errno
import os
import shutil
import sqlite3
from pathlib import Path

STORE_RESERVE_SHARE = 16
"""Each of the two reserves takes at most this fraction of a small disk."""


STORE_PAGES_BYTES_KEPT = 2 << 20
"""How many bytes of free pages the database keeps; at least half of them are free at any time. A
full disk can then still take new rows, 6,000 and more, which is what a group of 3,000 streams
needs. A new store writes these pages."""


STORE_WAL_BYTES_KEPT = 8 << 20
"""How much space for the write-ahead log is taken at the start, so that progress can be stored on a
full disk too: twice what is written back at once."""


RESERVE_ROOM_FACTOR = 2
"""Free space that must remain after the database grows."""


_ROOM = "room"
"""A table that takes pages, and frees them at once."""


class Reserve:
    """The reserves of one database. Belongs to the thread of its connection."""

    def __init__(self, path: Path) -> None:
        share_bytes = shutil.disk_usage(path.parent).total // STORE_RESERVE_SHARE
        self._directory = path.parent
        self._log = path.with_name(f"{path.name}-wal")
        self._log_bytes = min(STORE_WAL_BYTES_KEPT, share_bytes)
        self._pages_bytes = min(STORE_PAGES_BYTES_KEPT, share_bytes)

    def keep_log(self) -> None:
        """Allocate the blocks of the write-ahead log. SQLite ignores zeros after its own bytes.

        Raises:
            OSError: the disk failed.
        """
        descriptor = os.open(self._log, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, self._log_bytes)
        except OSError as error:
            # A store on a full disk opens too; its commits are refused.
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
        finally:
            os.close(descriptor)

    def keep_pages(self, connection: sqlite3.Connection) -> None:
        """Add free pages to the database if less than half of them are left. In no transaction.

        Afterwards the database does not grow.

        Raises:
            sqlite3.Error: disk or database failed, or the disk is full.
        """
        # A table that a loss of power left behind.
        connection.execute(f'DROP TABLE IF EXISTS "{_ROOM}"')
        free_bytes = _pragma(connection, "freelist_count") * _pragma(connection, "page_size")
        missing_bytes = self._pages_bytes - free_bytes
        try:
            if missing_bytes > self._pages_bytes // 2 and self.let_grow(connection):
                _take_pages(connection, missing_bytes)
        finally:
            connection.execute(f'DROP TABLE IF EXISTS "{_ROOM}"')
            # SQLite takes the current size if that is larger.
            connection.execute("PRAGMA max_page_count = 1").fetchall()

    def let_grow(self, connection: sqlite3.Connection) -> bool:
        """Let the database grow until `keep_pages`, if the disk has room for more than a reserve.

        The growth is bounded, because new pages go through the log first.
        """
        free_bytes = shutil.disk_usage(self._directory).free
        if free_bytes < self._pages_bytes * RESERVE_ROOM_FACTOR:
            return False
        pages = free_bytes // RESERVE_ROOM_FACTOR // _pragma(connection, "page_size")
        pages += _pragma(connection, "page_count")
        connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
        return True


def _take_pages(connection: sqlite3.Connection, size_bytes: int) -> None:
    connection.execute(f'CREATE TABLE "{_ROOM}" (bytes BLOB)')
    connection.execute(f'INSERT INTO "{_ROOM}" VALUES (zeroblob(?))', (size_bytes,))
    # A page has its blocks on the disk only after it was written back.
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value
