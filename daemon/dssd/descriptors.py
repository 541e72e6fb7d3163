"""How many descriptors the process may have, and who gets how many of them.

Invariant: clients can take at most half of them, and at most `CONNECTIONS_MAX`; log and store find
theirs among the rest. Where one is short all the same, a call is refused and the daemon goes on.
"""

import errno
import resource

from dss_core.errors import Overloaded
from dssd.limits import CONNECTIONS_MAX

_SHORT = frozenset({errno.EMFILE, errno.ENFILE})


def raise_limit() -> None:
    """Allow this process all the descriptors that it may ask for itself."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections_max() -> int:
    """Connections that all clients together may have, under the limit as it is now."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(1, min(CONNECTIONS_MAX, soft // 2))


def shortage_in(error: BaseException) -> Overloaded | None:
    """The condition of a caller for whom no descriptor was left; None for any other error."""
    if not isinstance(error, OSError) or error.errno not in _SHORT:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Overloaded(what="The number of open files", limit=soft)
