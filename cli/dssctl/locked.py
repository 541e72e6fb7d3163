"""A lock file against two runs of one command at a time, as flock(1) has it.

Invariant: the lock is held until the block ends, however it does: the system releases it with the
process. The file stays, because two processes could lock a file that is removed in between.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dss_core.errors import IllegalArgument, TaskLocked


@contextmanager
def locked(path: Path, task: str) -> Iterator[None]:
    """Hold the lock.

    Raises:
        TaskLocked: another process holds it.
        IllegalArgument: the file cannot be made or opened.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as refused:
        rule = f"it cannot be opened: {refused.strerror}"
        raise IllegalArgument(argument=f"the lock {path}", rule=rule) from refused
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as held:
        raise TaskLocked(task=task, path=path) from held
    finally:
        os.close(descriptor)
