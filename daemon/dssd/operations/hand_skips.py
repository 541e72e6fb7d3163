"""Lets a plan say whether it brings back records that an operator skipped by hand.

Something was wrong with these records, and an operator who rewinds for another reason has often
forgotten them. Invariant: a record that an operation has reopened since it was skipped does not
count. Only the newest operations of the group are looked at.
"""

from dataclasses import replace
from itertools import islice

from dss_core.counted import counted
from dss_core.ids import StreamId
from dss_core.progress import Progress, Ranges, normalised, total, without
from dssd.leaders.progress_columns import unpacked_ranges
from dssd.machines.leader.cursor_moves import all_of
from dssd.operations.history import History
from dssd.operations.plans import Plan
from dssd.store.rows import OperationRow

HAND_SKIPS_LOOKED_AT = 200
"""How many of the newest operations that moved cursors of the group a plan searches for skips by
hand: it reads the moves of each, some 0.1 ms for a few streams."""

OFFSETS_NAMED_MAX = 5
"""How many records a sentence of a plan names; the rest is counted."""


_BY_HAND = "records."
_CURSORS = (_BY_HAND, "offsets.")
"""Kinds of operations that move cursors."""


async def told_of_hand_skips(plan: Plan, history: History) -> Plan:
    """The plan, with a sentence about records skipped by hand that it brings back."""
    if plan.group is None or not plan.reopened or plan.kind.startswith(_BY_HAND):
        return plan
    skipped = await _skipped(plan.group.group_id, history)
    again = {
        name: _shared(ranges, skipped[stream])
        for name, stream, ranges in plan.reopened
        if stream in skipped
    }
    records = sum(map(total, again.values()))
    if not records:
        return plan
    what = counted(records, "record that was", "records that were")
    comes = "comes" if records == 1 else "come"
    told = f"{what} skipped by hand {comes} again: {_lowest(again, records)}."
    return replace(plan, effects=(*plan.effects, told))


async def _skipped(group_id: int, history: History) -> dict[StreamId, Ranges]:
    """The records that were skipped by hand in a group, and not reopened since."""
    moved_cursors = (
        row
        for row in history.newest()
        if row.group_id == group_id and row.kind.startswith(_CURSORS)
    )
    skipped: dict[StreamId, Ranges] = {}
    for row in reversed(list(islice(moved_cursors, HAND_SKIPS_LOOKED_AT))):
        if skipped or row.kind.startswith(_BY_HAND):
            await _note(row, history, skipped)
    return skipped


async def _note(row: OperationRow, history: History, skipped: dict[StreamId, Ranges]) -> None:
    for made in await history.made_moves(row.number):
        stream = StreamId(made.storage_topic_id, made.partition)
        before = all_of(Progress(made.floor_before, unpacked_ranges(made.ranges_before)))
        after = all_of(Progress(made.floor_after, unpacked_ranges(made.ranges_after)))
        known = without(skipped.get(stream, ()), without(before, after))
        added = without(after, before) if row.kind.startswith(_BY_HAND) else ()
        skipped[stream] = normalised((*known, *added))


def _shared(some: Ranges, others: Ranges) -> Ranges:
    return without(some, without(some, others))


def _lowest(again: dict[str, Ranges], records: int) -> str:
    """``orders/0/1 at 7, 8``: the first of them, stream by stream."""
    offsets = [
        (name, offset)
        for name, ranges in sorted(again.items())
        for start, end in ranges
        for offset in range(start, min(end, start + OFFSETS_NAMED_MAX))
    ][:OFFSETS_NAMED_MAX]
    of_stream: dict[str, list[str]] = {}
    for name, offset in offsets:
        of_stream.setdefault(name, []).append(str(offset))
    named = "; ".join(f"{name} at {', '.join(each)}" for name, each in of_stream.items())
    more = records - len(offsets)
    return f"{named} and {more:,} more" if more else named
