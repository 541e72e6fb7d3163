"""Who should hold which stream where streams are shared out by shards.

All open streams of a shard are for one member, and shards are shared out by the laws of
`allocation`: balanced by shards, and no shard changes its owner unless balance or a pin needs it.
Whose a shard is now, where its streams have several owners (its group was given another count):
the member with most of its streams; of those with as many, the one with the fewest shards so far.
What has no owner at all stays with whoever had it last. A pin of one stream is a pin of its shard;
where streams of one are pinned to several members, the first of them counts.

Invariant: pure functions, and a stream whose shard stays is in no answer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dss_core.ids import StreamId
from dssd.machines.leader.allocation import limited, sticky
from dssd.machines.messages import BorrowerId

Owners = Mapping[StreamId, BorrowerId]


class Situation(NamedTuple):
    """What is to be shared out, among whom."""

    streams: Sequence[StreamId]
    """In order."""
    members: Sequence[BorrowerId]
    owners: Owners
    pins: Owners
    last: Owners
    """Who had a stream that has no owner, or is to have it."""


Lanes = Mapping[int, Sequence[StreamId]]
"""The streams of each shard, in order."""

_Unit = tuple[int, int]
"""A shard as it is shared out, its number last. Of two shards of one member the one goes that costs
fewer moves, so first is how many of its streams stay with its owner, below zero."""


def by_shard(
    now: Situation, lanes: Lanes, moves_max: int | None = None
) -> dict[StreamId, BorrowerId]:
    """The streams that should get another owner than they have, in stream order.

    With ``moves_max`` at most so many, those of whole shards.
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
    """Whose each shard is, and how many of its streams that one has."""
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
            # As it nearly always is; counting costs five times as much.
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
