"""Who should hold which stream.

`sticky` is a pure function of streams, members and present owners. Its laws:

1. Balanced: afterwards no member owns two streams more than another.
2. Minimal: no owner changes unless balance needs it; so a join moves at most ``ceil(s / n)``
   streams, a leave only those of the leaver, and a balanced state nothing.
3. Deterministic: equal arguments, equal answer; members and streams are taken in their order.

It knows nothing of how streams change hands, nor what they weigh.
"""

from collections.abc import Mapping, Sequence

from dss_core.ids import StreamId
from dssd.machines.messages import BorrowerId

Owners = Mapping[StreamId, BorrowerId]


def sticky(
    streams: Sequence[StreamId], members: Sequence[BorrowerId], owners: Owners
) -> dict[StreamId, BorrowerId]:
    """The streams that should get another owner than they have, in stream order.

    Owners that are not among the members count as none. Without members nothing changes.
    """
    if not members:
        return {}
    held: dict[BorrowerId, list[StreamId]] = {member: [] for member in sorted(members)}
    loose: list[StreamId] = []
    for stream in sorted(streams):
        owner = owners.get(stream)
        held.get(owner, loose).append(stream) if owner is not None else loose.append(stream)
    quotas = _quotas(held, len(streams))
    for member, quota in quotas.items():
        loose.extend(held[member][quota:])
    loose.sort()
    changes: dict[StreamId, BorrowerId] = {}
    waiting = iter(loose)
    for member, quota in quotas.items():
        for _ in range(quota - len(held[member])):
            changes[next(waiting)] = member
    return dict(sorted(changes.items()))


def _quotas(held: Mapping[BorrowerId, Sequence[StreamId]], streams: int) -> dict[BorrowerId, int]:
    """How many streams each member should own: the odd ones stay with those who own most."""
    share, odd = divmod(streams, len(held))
    by_owned = sorted(held, key=lambda member: (-len(held[member]), member))
    larger = set(by_owned[:odd])
    return {member: share + (member in larger) for member in held}
