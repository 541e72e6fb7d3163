"""What an error of the operating system means for the log.

Three kinds: there is no room, which refuses frames until there is; there are no descriptors, which
refuses whatever needed one; all else means that the disk failed.
"""

import errno

from dss_core.errors import DiskFull, DssError, Overloaded
from dssd.descriptors import shortage_in

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


def is_full(error: BaseException) -> bool:
    """Whether a file, or the store, found no room."""
    return isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in NO_SPACE)


def refusal(error: OSError) -> DssError | None:
    """What to answer because of the error; None if the disk failed."""
    if error.errno in NO_SPACE:
        return DiskFull()
    return shortage_in(error)


def retry_reason(error: BaseException) -> DssError | None:
    """The same of whatever files and store may raise; None if trying again cannot help."""
    if isinstance(error, DiskFull | Overloaded):
        return error
    return refusal(error) if isinstance(error, OSError) else None
