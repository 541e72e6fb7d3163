"""Why a subscription ended for good: the condition that its leader named by a code.

Invariant: every code gives a condition, also one that this daemon does not know. This module does
not know what follows for the subscription (`session`).
"""

from datetime import UTC, datetime

from dss_core.errors import REGISTRY, BorrowerEvicted, ClientBanned, DssError, UnknownCondition
from dssd.machines.borrower.events import Ended


def condition_of(ended: Ended, group: str, client_id: str) -> DssError:
    """The condition that the client is told."""
    code, detail = ended.error_code, ended.detail
    leaf = REGISTRY.get(code)
    if leaf is None:
        return UnknownCondition(code=code, text=f"the group {group} ended")
    if leaf is BorrowerEvicted:
        return BorrowerEvicted(group=group, reason=detail)
    if leaf is ClientBanned:
        return ClientBanned(client_id=client_id, group=group, until=_instant(int(detail)))
    return leaf(group=group)


def _instant(wall_ms: int) -> str:
    moment = datetime.fromtimestamp(wall_ms // 1_000, UTC)
    return moment.isoformat().replace("+00:00", "Z")
