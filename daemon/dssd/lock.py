"""The lock of a data directory: at most one daemon holds it.

Invariant: it is taken before any other file in the directory is opened, and the kernel drops it
when the process ends, however it ends. So every file that is there at a start was left by a process
that has ended.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from dss_core.errors import DataDirectoryLocked

LOCK_NAME = "LOCK"


class DirectoryLock:
    """An exclusive lock on a directory, held from construction until `release`.

    Raises:
        DataDirectoryLocked: another process holds it.
    """

    def __init__(self, directory: Path) -> None:
        self._descriptor = os.open(
            directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise DataDirectoryLocked(path=directory) from error

    def release(self) -> None:
        """Release the lock. The file stays: removing it would be a race."""
        os.close(self._descriptor)

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
