"""Who should hold which stream.

`sticky` is a pure function of streams, members, present owners and pins. Its laws:

1. Balanced: afterwards no member owns two streams more than another, unless the streams of the
   former are all pinned to it.
2. Minimal: no owner changes unless balance or a pin needs it; so a join moves at most
   ``ceil(s / n)`` streams, a leave only those of the leaver, and a balanced state nothing.
3. Deterministic: equal arguments, equal answer; members and streams are taken in their order.

`limited` does the same with a bound on moves; those that improve the balance most come first. This
module does not know how streams change hands, nor how busy they are. `shard_allocation` shares out
shards by the same laws.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeVar

from dssd.machines.messages import BorrowerId

Unit = TypeVar("Unit", bound=tuple[int, int])
"""The units that are shared out."""


def sticky(
    streams: Sequence[Unit],
    members: Sequence[BorrowerId],
    owners: Mapping[Unit, BorrowerId],
    pins: Mapping[Unit, BorrowerId] | None = None,
) -> dict[Unit, BorrowerId]:
    """The streams that should get another owner than they have, in stream order.

    Owners and pins that are not among the members count as none. Without members nothing changes.
    """
    if not members:
        return {}
    held: dict[BorrowerId, list[Unit]] = {member: [] for member in sorted(members)}
    pinned = dict.fromkeys(held, 0)
    loose: list[Unit] = []
    changes: dict[Unit, BorrowerId] = {}
    in_order = sorted(streams)
    pins = pins or {}
    for stream in in_order if pins else ():
        member = pins.get(stream)
        if member in pinned:
            pinned[member] += 1
            held[member].append(stream)
            if owners.get(stream) != member:
                changes[stream] = member
    for stream in in_order:
        if pins and pins.get(stream) in pinned:
            continue
        owner = owners.get(stream)
        held.get(owner, loose).append(stream) if owner is not None else loose.append(stream)
    quotas = _quotas(held, pinned, len(streams))
    for member, quota in quotas.items():
        loose.extend(held[member][quota:])
    loose.sort()
    waiting = iter(loose)
    for member, quota in quotas.items():
        for _ in range(quota - len(held[member])):
            changes[next(waiting)] = member
    return dict(sorted(changes.items()))


def _quotas(
    held: Mapping[BorrowerId, Sequence[Unit]],
    pinned: Mapping[BorrowerId, int],
    streams: int,
) -> dict[BorrowerId, int]:
    """How many streams each member should own: a remainder stays with those who own most.

    A member with more pinned streams than its share keeps just these; the others share the rest.
    """
    quotas: dict[BorrowerId, int] = {}
    sharing = list(held)
    share, odd = divmod(streams, len(sharing))
    while above := [member for member in sharing if pinned[member] > share]:
        for member in above:
            quotas[member] = pinned[member]
            streams -= pinned[member]
        sharing = [member for member in sharing if pinned[member] <= share]
        share, odd = divmod(streams, len(sharing))
    by_owned = sorted(sharing, key=lambda member: (-len(held[member]), member))
    larger = set(by_owned[:odd])
    quotas |= {member: share + (member in larger) for member in sharing}
    return {member: quotas[member] for member in held}


def limited(
    streams: Sequence[Unit],
    members: Sequence[BorrowerId],
    owners: Mapping[Unit, BorrowerId],
    pins: Mapping[Unit, BorrowerId] | None = None,
    *,
    moves_max: int,
) -> dict[Unit, BorrowerId]:
    """At most so many of the changes that `sticky` makes, in the order of what they improve.

    Pinned streams and streams without an owner come first, then moves from the member with the
    most streams to the taker with the fewest.
    """
    pins = pins or {}
    changes = sticky(streams, members, owners, pins)
    if len(changes) <= moves_max:
        return changes
    counts = dict.fromkeys(members, 0)
    for stream in streams:
        owner = owners.get(stream)
        if owner in counts:
            counts[owner] += 1
    first = [each for each in changes if owners.get(each) not in counts or each in pins]
    chosen = {stream: changes.pop(stream) for stream in first[:moves_max]}
    if len(first) >= moves_max:
        return chosen
    for stream, taker in chosen.items():
        _count(counts, owners.get(stream), taker)
    return chosen | _most_improving(changes, owners, counts, moves_max - len(chosen))


def _most_improving(
    changes: Mapping[Unit, BorrowerId],
    owners: Mapping[Unit, BorrowerId],
    counts: dict[BorrowerId, int],
    moves_max: int,
) -> dict[Unit, BorrowerId]:
    """The next move is between a giver with the most streams and a taker with the fewest."""
    gives: dict[BorrowerId, list[Unit]] = {}
    takes: dict[BorrowerId, int] = {}
    for stream in reversed(list(changes)):
        gives.setdefault(owners[stream], []).append(stream)
        takes[changes[stream]] = takes.get(changes[stream], 0) + 1
    givers = [(-counts[giver], giver) for giver in gives]
    takers = [(counts[taker], taker) for taker in takes]
    heapify(givers)
    heapify(takers)
    chosen: dict[Unit, BorrowerId] = {}
    while givers and len(chosen) < moves_max:
        (count, giver), (has, taker) = heappop(givers), heappop(takers)
        chosen[gives[giver].pop()] = taker
        takes[taker] -= 1
        if gives[giver]:
            heappush(givers, (count + 1, giver))
        if takes[taker]:
            heappush(takers, (has + 1, taker))
    return chosen


def _count(counts: dict[BorrowerId, int], giver: BorrowerId | None, taker: BorrowerId) -> None:
    counts[taker] += 1
    if giver in counts:
        counts[giver] -= 1
