"""Every condition that a caller can meet, with its stable code.

One registry serves the daemon (which maps a condition to a gRPC status), the client (which
raises the same class again from what came over the wire) and the command line (exit code, hint)::

    DssError
    ├── DSS1xxx  the request is wrong            (usage: fix the call)
    ├── DSS2xxx  the state does not allow it     (conflict, not found, exists)
    ├── DSS3xxx  a limit is reached              (later or smaller)
    ├── DSS4xxx  the data is damaged             (corrupt, quarantined)
    ├── DSS5xxx  the daemon or the way to it     (unreachable, stopping, disk)
    ├── DSS6xxx  sessions and grants             (taken over, not held, not subscribed)
    └── DSS7xxx  bulk jobs                       (fenced, leased, refused)

Each leaf is a class named by its condition. It carries facts as fields and builds its own
message; nothing parses a message. `definite` says whether the caller may be sure that nothing
was done. Invariant: a code, once released, keeps its meaning and is never given again.
"""

from dss_core.errors.backups import *  # noqa: F403
from dss_core.errors.bounds import *  # noqa: F403
from dss_core.errors.condition import *  # noqa: F403
from dss_core.errors.conflicts import *  # noqa: F403
from dss_core.errors.damage import *  # noqa: F403
from dss_core.errors.jetstream import *  # noqa: F403
from dss_core.errors.jobs import *  # noqa: F403
from dss_core.errors.not_found import *  # noqa: F403
from dss_core.errors.ordering import *  # noqa: F403
from dss_core.errors.passing import *  # noqa: F403
from dss_core.errors.programs import *  # noqa: F403
from dss_core.errors.publishing import *  # noqa: F403
from dss_core.errors.queues import *  # noqa: F403
from dss_core.errors.requests import *  # noqa: F403
from dss_core.errors.service import *  # noqa: F403
from dss_core.errors.sessions import *  # noqa: F403
