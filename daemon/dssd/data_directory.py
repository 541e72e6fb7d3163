"""A data directory: its layout, its format version, and the lock that keeps others out.

::

    DIR/            mode 0700
    ├── LOCK        held while a daemon runs, and DIR itself
    ├── FORMAT      the version of everything beside it, one line
    ├── LIFE        how the last daemon ended, see `dssd.life`
    ├── dssd.sock   where it listens by default
    ├── ops.sock    where it listens for operators
    ├── store.sqlite (+ -wal, -shm)
    ├── log/        segment files
    ├── staging/    what drivers of bulk jobs write
    └── snapshot/   what a backup copies, while it does

Invariant: an open directory is locked, and this version knows its format. A directory that holds
other files never becomes a data directory.
"""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from dss_core.default_paths import OPERATORS_SOCKET_NAME, SOCKET_NAME, expanded
from dss_core.errors import (
    DataDirectoryNewer,
    DiskFailed,
    DssError,
    IllegalConfig,
    NoRoomToStart,
    StoreDamaged,
)
from dssd.lock import LOCK_NAME, DirectoryLock
from dssd.log.segment.file import SEGMENT_SUFFIX

FORMAT_FILE_BYTES_MAX = 256
"""Bytes read of the file FORMAT."""


FORMAT_NAME = "FORMAT"
FORMAT = 1
"""Raise it with each change that an older daemon must not open."""

STORE_NAME = "store.sqlite"
LOG_NAME = "log"
STAGING_NAME = "staging"
SNAPSHOT_NAME = "snapshot"

_LOST = f"it is missing, and {LOG_NAME}/ has records; to begin anew, move {LOG_NAME}/ away first"
_FORMAT_PREFIX = "dssd data directory, format "


class DataDirectory:
    """A locked data directory. Leaving the context gives up the lock.

    Raises:
        DataDirectoryLocked: another daemon holds it.
        DataDirectoryReplaced: it was moved or replaced at this very moment.
        DataDirectoryNewer: a newer version wrote it.
        IllegalConfig: it cannot be created or used, or it holds other files.
        NoRoomToStart, DiskFailed: the disk did not allow it.
    """

    def __init__(self, path: Path) -> None:
        self.path = expanded(path).absolute()
        try:
            new = [folder for folder in self.path.parents if not folder.exists()]
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._refuse_foreign()
            self._lock = DirectoryLock(self.path)
        except OSError as error:
            raise _condition(error, self.path) from error
        try:
            self._check_format(new)
            self.log_path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            self._lock.release()
            raise _condition(error, self.path) from error
        except BaseException:
            self._lock.release()
            raise

    @classmethod
    def existing(cls, path: Path) -> Self:
        """Lock a directory that a daemon has used, without changing anything in it.

        Raises:
            DataDirectoryLocked: a daemon holds it.
            DataDirectoryReplaced: it was moved or replaced at this very moment.
            DataDirectoryNewer: a newer version wrote it.
            IllegalConfig: no daemon has used it, or it cannot be read.
        """
        directory = cls.__new__(cls)
        directory.path = expanded(path).absolute()
        marker = directory.path / FORMAT_NAME
        if not marker.exists():
            raise IllegalConfig(
                source=f"data directory {directory.path}", reason="no daemon has used it"
            )
        try:
            directory._read_format(marker)
            directory._lock = DirectoryLock(directory.path)
        except OSError as error:
            raise _condition(error, directory.path) from error
        try:
            directory._read_format(marker)
        except BaseException:
            directory._lock.release()
            raise
        return directory

    @property
    def store_path(self) -> Path:
        """The database."""
        return self.path / STORE_NAME

    @property
    def wal_path(self) -> Path:
        """The write-ahead log of the database, while that is open."""
        return self.path / f"{STORE_NAME}-wal"

    @property
    def log_path(self) -> Path:
        """The directory of segment files."""
        return self.path / LOG_NAME

    @property
    def staging_path(self) -> Path:
        """Where drivers of bulk jobs write; not there until one does."""
        return self.path / STAGING_NAME

    @property
    def snapshot_path(self) -> Path:
        """What a backup copies; not there while none does."""
        return self.path / SNAPSHOT_NAME

    def refuse_lost_store(self) -> None:
        """Refuse to create a new store beside an existing log: it would know none of the log's
        records.

        Raises:
            StoreDamaged: the store is gone.
        """
        files = (self.store_path, self.wal_path)
        if any(path.exists() and path.stat().st_size for path in files):
            return
        if any(self.log_path.glob(f"*{SEGMENT_SUFFIX}")):
            raise StoreDamaged(path=self.store_path, reason=_LOST)

    def is_in_place(self) -> bool:
        """Whether the path still leads to this directory.

        Raises:
            OSError: that cannot be told now.
        """
        return self._lock.is_in_place()

    def restore_lock(self) -> bool:
        """Make the lock file anew if somebody removed or replaced it; whether that was so.

        Raises:
            DataDirectoryLocked: another process holds the new one.
            OSError: it cannot be made.
        """
        return self._lock.restore()

    def __enter__(self) -> Self:
        """The directory; its lock is held already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lock."""
        self._lock.release()

    def _refuse_foreign(self) -> None:
        """Refuse a directory with foreign files, before anything is written to it."""
        marker = self.path / FORMAT_NAME
        if marker.exists():
            self._read_format(marker)
        else:
            self._refuse_strangers()

    def _check_format(self, new: Sequence[Path]) -> None:
        marker = self.path / FORMAT_NAME
        if not marker.exists():
            self._refuse_strangers()
            # Sync before the marker exists, because a start that finds a marker skips this.
            for folder in (self.path, *new):
                _sync_parent(folder)
            write_marker(marker, marker.with_name(f"{FORMAT_NAME}.new"))
        else:
            self._read_format(marker)

    def _read_format(self, marker: Path) -> None:
        with marker.open("rb") as file:
            line = file.read(FORMAT_FILE_BYTES_MAX).decode("ascii", "replace")
        number = line.removeprefix(_FORMAT_PREFIX).rstrip("\n")
        if not (line.startswith(_FORMAT_PREFIX) and number.isdigit()):
            raise IllegalConfig(source=marker, reason="it holds no data directory format")
        if int(number) > FORMAT:
            raise DataDirectoryNewer(path=self.path, found=number, known=FORMAT)

    def _refuse_strangers(self) -> None:
        # A crash during the first start leaves at most these names.
        allowed = {LOCK_NAME, SOCKET_NAME, OPERATORS_SOCKET_NAME, f"{FORMAT_NAME}.new"}
        strangers = sorted({entry.name for entry in self.path.iterdir()} - allowed)
        # Another daemon may have created the directory since this one looked for the marker.
        if strangers and not (self.path / FORMAT_NAME).exists():
            raise IllegalConfig(
                source=f"data directory {self.path}",
                reason=f"it is not empty ({strangers[0]!r}) and no daemon has used it before",
            )


def write_staged_marker(staged: Path) -> None:
    """Write the file that says that a directory is a data directory, under another name."""
    with staged.open("w") as file:
        file.write(f"{_FORMAT_PREFIX}{FORMAT}\n")
        file.flush()
        os.fsync(file.fileno())


def write_marker(marker: Path, staged: Path) -> None:
    """Make a directory a data directory, durably."""
    write_staged_marker(staged)
    staged.rename(marker)
    sync_directory(marker.parent)


def _condition(error: OSError, path: Path) -> DssError:
    """The condition to report to the operator who starts the daemon."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoRoomToStart(path=path)
    if error.errno == errno.EIO:
        return DiskFailed(reason=f"data directory: {error}")
    # A file, or a link that leads nowhere, has the name.
    reason = "it is no directory" if error.errno == errno.EEXIST else error.strerror
    return IllegalConfig(source=f"data directory {path}", reason=reason)


def _sync_parent(path: Path) -> None:
    """Make the name of a directory durable. A parent that we may not read existed before us."""
    with suppress(PermissionError):
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
