"""A data directory: what lies where, which version wrote it, and that nobody else uses it.

::

    DIR/            mode 0700
    ├── LOCK        held while a daemon runs
    ├── FORMAT      the version of everything beside it, one line
    ├── dssd.sock   where it listens by default
    ├── store.sqlite (+ -wal, -shm)
    └── log/        segment files

Invariant: a directory that is open here is locked, and its format is one that this version knows.
A directory with other things in it is never made into a data directory.
"""

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from dss_core.errors import DataDirectoryNewer, IllegalConfig
from dssd.lock import LOCK_NAME, DirectoryLock

FORMAT_NAME = "FORMAT"
FORMAT = 1
"""Raised by a change that an older daemon must not touch."""

SOCKET_NAME = "dssd.sock"
STORE_NAME = "store.sqlite"
LOG_NAME = "log"

_FORMAT_PREFIX = "dssd data directory, format "
_FORMAT_BYTES_MAX = 256


class DataDirectory:
    """A locked data directory. Leaving the context gives up the lock.

    Raises:
        DataDirectoryLocked: another daemon holds it.
        DataDirectoryNewer: a newer version wrote it.
        IllegalConfig: it cannot be made or used, or it is something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = DirectoryLock(self.path)
        except OSError as error:
            raise IllegalConfig(source=f"data directory {path}", reason=error.strerror) from error
        try:
            self._check_format()
            self.log_path.mkdir(mode=0o700, exist_ok=True)
        except BaseException:
            self._lock.release()
            raise

    @property
    def store_path(self) -> Path:
        """The database."""
        return self.path / STORE_NAME

    @property
    def log_path(self) -> Path:
        """The directory of segment files."""
        return self.path / LOG_NAME

    def __enter__(self) -> Self:
        """Hold it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of it."""
        self._lock.release()

    def _check_format(self) -> None:
        marker = self.path / FORMAT_NAME
        if not marker.exists():
            self._adopt(marker)
            return
        with marker.open("rb") as file:
            line = file.read(_FORMAT_BYTES_MAX).decode("ascii", "replace")
        number = line.removeprefix(_FORMAT_PREFIX).rstrip("\n")
        if not (line.startswith(_FORMAT_PREFIX) and number.isdigit()):
            raise IllegalConfig(source=marker, reason="it is not a format of a data directory")
        if int(number) > FORMAT:
            raise DataDirectoryNewer(path=self.path, found=number, known=FORMAT)

    def _adopt(self, marker: Path) -> None:
        # A crash in here leaves at most these names; anything else belongs to somebody.
        allowed = {LOCK_NAME, SOCKET_NAME, f"{FORMAT_NAME}.new"}
        strangers = sorted({entry.name for entry in self.path.iterdir()} - allowed)
        if strangers:
            raise IllegalConfig(
                source=f"data directory {self.path}",
                reason=f"it is not empty ({strangers[0]!r}) and no daemon has used it before",
            )
        staged = marker.with_name(f"{FORMAT_NAME}.new")
        with staged.open("w") as file:
            file.write(f"{_FORMAT_PREFIX}{FORMAT}\n")
            file.flush()
            os.fsync(file.fileno())
        staged.rename(marker)
        sync_directory(self.path)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
