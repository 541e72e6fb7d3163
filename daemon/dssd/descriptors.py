"""The limit on open files of the process, and the share of it that clients may take.

Invariant: clients take at most half of the descriptors, and at most `CONNECTIONS_MAX`; log and
store use the rest. When none is left, the call that needs one is refused and the daemon goes on.
"""

import errno
import resource
from pathlib import Path

from dss_core.errors import Overloaded
from dssd.limits import CONNECTIONS_MAX

_SHORT = frozenset({errno.EMFILE, errno.ENFILE})


def raise_limit() -> None:
    """Raise the soft limit of open files to the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections_max() -> int:
    """How many connections all clients together may have, under the current soft limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(1, min(CONNECTIONS_MAX, soft // 2))


def open_files() -> int:
    """How many descriptors the process has."""
    # Reading the directory takes a descriptor itself.
    return sum(1 for _ in Path("/dev/fd").iterdir()) - 1


def open_files_max() -> int:
    """How many it may have, under the current soft limit; 0: there is none."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 0 if soft == resource.RLIM_INFINITY else soft


def shortage_in(error: BaseException) -> Overloaded | None:
    """The condition to answer when no descriptor was left; None for any other error."""
    if not isinstance(error, OSError) or error.errno not in _SHORT:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Overloaded(what="The number of open files", limit=soft)
