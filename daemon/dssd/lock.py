"""The lock of a data directory: at most one daemon holds it.

Two things are locked: the directory itself, which no clean-up by name takes away while anything is
in it, and the file ``LOCK``, the only one that older versions know.

Invariant: both are held before any other file in the directory is opened, and the kernel drops them
when the process ends, however it ends. So a process that has ended left every file that a start
finds.
"""

import errno
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from dss_core.errors import DataDirectoryLocked, DataDirectoryReplaced

LOCK_NAME = "LOCK"

_LOCKS_NO_DIRECTORY = frozenset({errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP})
"""Errors of NFS and the like, which lock only files open for writing. There the file LOCK alone
counts."""


class DirectoryLock:
    """An exclusive lock on a directory, held from construction until `release`.

    Raises:
        DataDirectoryLocked: another process holds it.
        DataDirectoryReplaced: it was moved, or its lock file removed, at this very moment.
        OSError: it cannot be opened.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory
        self._directory = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._hold(self._directory)
            self._file = self._held_file()
        except BaseException:
            os.close(self._directory)
            raise
        if not (self.is_in_place() and leads_to(directory / LOCK_NAME, self._file)):
            self.release()
            raise DataDirectoryReplaced(path=directory)

    def is_in_place(self) -> bool:
        """Whether the path still leads to the directory that is locked.

        Raises:
            OSError: that cannot be told now.
        """
        return leads_to(self._path, self._directory)

    def restore(self) -> bool:
        """Make the lock file anew if somebody removed or replaced it; whether that was so.

        Raises:
            DataDirectoryLocked: a process holds the new one: a daemon of an older version.
            OSError: it cannot be made.
        """
        if leads_to(self._path / LOCK_NAME, self._file):
            return False
        removed, self._file = self._file, self._held_file()
        os.close(removed)
        return True

    def release(self) -> None:
        """Release the lock. The file stays: removing it would be a race."""
        os.close(self._file)
        os.close(self._directory)

    def __enter__(self) -> Self:
        """The lock; it is held already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lock."""
        self.release()

    def _held_file(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._path / LOCK_NAME, flags, 0o600)
        try:
            self._hold(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _hold(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DataDirectoryLocked(path=self._path) from error
        except OSError as error:
            if descriptor != self._directory or error.errno not in _LOCKS_NO_DIRECTORY:
                raise


def leads_to(path: Path, descriptor: int) -> bool:
    """Whether a path leads to the file that is open.

    Raises:
        OSError: that cannot be told now.
    """
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except (FileNotFoundError, NotADirectoryError):
        return False
