"""What an error of the operating system means for the log.

There are four kinds. The disk is full: frames are refused until there is space. No descriptor is
left: the call that needed one is refused. A read failed: it is tried again, and nothing is passed
over meanwhile. Anything else: the disk failed.
"""

import errno
from pathlib import Path

from dss_core.errors import DiskFull, DssError, LogUnreadable, Overloaded
from dssd.descriptors import shortage_in

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


def is_full(error: BaseException) -> bool:
    """Whether the error of a file or of the store says that the disk is full."""
    return isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in NO_SPACE)


def refusal(error: OSError) -> DssError | None:
    """The condition to refuse a call with; None if the disk failed."""
    if error.errno in NO_SPACE:
        return DiskFull()
    return shortage_in(error)


def retry_reason(error: BaseException) -> DssError | None:
    """Why work with files and store must be tried again later; None if that cannot help."""
    if isinstance(error, DiskFull | Overloaded):
        return error
    return refusal(error) if isinstance(error, OSError) else None


def unreadable(path: Path, error: OSError) -> LogUnreadable:
    """The condition of a read that failed, whatever the reason: the bytes may still be there."""
    return LogUnreadable(path=path.name, reason=error.strerror or str(error))
