"""What each error code means for whoever meets it: its cause, and what to do. A paragraph a code.

Invariant: every code of the registry has one. Loaded by ``errors explain`` only.
"""

from collections.abc import Mapping

from dssctl.explanations.access import ACCESS
from dssctl.explanations.backups import BACKUPS
from dssctl.explanations.conflicts import CONFLICTS
from dssctl.explanations.jetstream import JETSTREAM
from dssctl.explanations.jobs import JOBS
from dssctl.explanations.ordering import ORDERING
from dssctl.explanations.programs import PROGRAMS
from dssctl.explanations.queues import QUEUES
from dssctl.explanations.requests import REQUESTS
from dssctl.explanations.schedules import SCHEDULES
from dssctl.explanations.service import SERVICE

EXPLANATIONS: Mapping[str, str] = {
    **ACCESS,
    **BACKUPS,
    **REQUESTS,
    **PROGRAMS,
    **CONFLICTS,
    **ORDERING,
    **QUEUES,
    **SCHEDULES,
    **SERVICE,
    **JETSTREAM,
    **JOBS,
}


def explanation_of(code: str) -> str:
    """The paragraph on a code, as one line."""
    return " ".join(EXPLANATIONS[code].split())
