"""Who should hold which stream in a group that is shared out by shards.

All open streams of a shard go to one member, and shards are shared out by the laws of `allocation`:
balanced by shards, and no shard changes its owner unless balance or a pin needs it. If the streams
of a shard have several owners, because the number of shards changed, its owner is the member with
the most of its streams; on a tie, the one with the fewest shards so far. A shard without any owner
stays with its last one. A pin of one stream is a pin of its shard; of several pins in a shard, the
first counts.

Invariant: pure functions; a stream that stays with its owner is in no answer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dss_core.ids import StreamId
from dssd.machines.leader.allocation import limited, sticky
from dssd.machines.messages import BorrowerId

Owners = Mapping[StreamId, BorrowerId]


class Situation(NamedTuple):
    """The streams to share out, and the members that share them."""

    streams: Sequence[StreamId]
    """In order."""
    members: Sequence[BorrowerId]
    owners: Owners
    pins: Owners
    last: Owners
    """The heir or last holder of a stream without an owner."""


Lanes = Mapping[int, Sequence[StreamId]]
"""The streams of each shard, in order."""

_Unit = tuple[int, int]
"""A shard in the order of allocation: minus the number of its streams that its owner has, and its
number. Of two shards of one member, the one that costs fewer moves is given away."""


def by_shard(
    now: Situation, lanes: Lanes, moves_max: int | None = None
) -> dict[StreamId, BorrowerId]:
    """The streams that should get another owner than they have, in stream order.

    With ``moves_max``, at most so many streams; shards move as a whole.
    """
    if not now.members:
        return {}
    owned = _owned(now, lanes)
    units = {number: (-owned[number][1] if number in owned else 0, number) for number in lanes}
    owners = {units[number]: member for number, (member, _) in owned.items()}
    pins = _pins(now, lanes, units)
    if moves_max is None:
        changes = sticky(list(units.values()), now.members, owners, pins)
        split = (unit for unit in owners if -unit[0] < len(lanes[unit[1]]))
        return _in_order(now, _moves(now, lanes, {unit: owners[unit] for unit in split} | changes))
    changes = limited(list(units.values()), now.members, owners, pins, moves_max=moves_max)
    strays = _moves(now, lanes, {unit: owners[unit] for unit in owners if unit not in changes})
    moves = dict(sorted(strays.items())[:moves_max])
    for unit, member in changes.items():
        more = _moves(now, lanes, {unit: member})
        if len(moves) + len(more) <= moves_max:
            moves |= more
    return _in_order(now, moves)


def _in_order(now: Situation, moves: Mapping[StreamId, BorrowerId]) -> dict[StreamId, BorrowerId]:
    return {stream: moves[stream] for stream in now.streams if stream in moves}


def _owned(now: Situation, lanes: Lanes) -> dict[int, tuple[BorrowerId, int]]:
    """The owner of each shard, and how many of its streams the owner has."""
    owned: dict[int, tuple[BorrowerId, int]] = {}
    if not (now.owners or now.last):
        return owned
    staying = set(now.members)
    shards: Counter[BorrowerId] = Counter()
    disputed: list[tuple[int, Counter[BorrowerId]]] = []
    for number, streams in lanes.items():
        only = now.owners.get(streams[0])
        if (
            only in staying
            and only
            and (len(streams) == 1 or all(now.owners.get(each) == only for each in streams))
        ):
            # Nearly always one member owns all; counting would cost five times as much.
            owned[number] = only, len(streams)
            shards[only] += 1
            continue
        counts = Counter(
            owner for each in streams if (owner := now.owners.get(each)) in staying and owner
        )
        best = counts.most_common(2)
        if len(best) > 1 and best[0][1] == best[1][1]:
            disputed.append((number, counts))
            continue
        if not best:
            last = [owner for each in streams if (owner := now.last.get(each)) in staying and owner]
            best = [(last[-1], 0)] if last else []
        if best:
            owned[number] = best[0]
            shards[best[0][0]] += 1
    for number, counts in disputed:
        owner = min(counts, key=lambda each: (-counts[each], shards[each], each))
        owned[number] = owner, counts[owner]
        shards[owner] += 1
    return owned


def _pins(now: Situation, lanes: Lanes, units: Mapping[int, _Unit]) -> dict[_Unit, BorrowerId]:
    if not now.pins:
        return {}
    staying = set(now.members)
    pins: dict[_Unit, BorrowerId] = {}
    for number, streams in lanes.items():
        for stream in streams:
            member = now.pins.get(stream)
            if member in staying:
                pins[units[number]] = member
                break
    return pins


def _moves(
    now: Situation, lanes: Lanes, targets: Mapping[_Unit, BorrowerId]
) -> dict[StreamId, BorrowerId]:
    return {
        stream: member
        for (_, number), member in targets.items()
        for stream in lanes[number]
        if now.owners.get(stream) != member
    }
