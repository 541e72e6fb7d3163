"""Rules for moves of cursors by operators, judged from what observers saw.

A move says which offsets are no longer acknowledged, and which are in addition. The judge computes
the result from its own knowledge, and then forgets the reopened acks, so that these records must
come again. Names are those of docs/proof/groups-simulator.md.

    S21 what an operator reopens is handed out again, as what the move says and nothing else
    S22 nobody who held the stream before a move acknowledges anything after it; a client that has
        not heard of that may still hand out what it has, until a later grant hands out (S4)
    S23 an undo brings nothing back that was acknowledged, and all that only its operation covered
"""

from collections import defaultdict

from dss_core.progress import Progress, Ranges, without
from dss_sim.groups.checked_stream import CheckedStream
from dss_sim.groups.history import HandedOut, Moved
from dss_sim.groups.violation import Violation


def take_move(event: Moved, lent: CheckedStream, end: int) -> tuple[set[int], set[int]]:
    """Judge a move of a stream that ends at ``end``, and expect its effects; returns the reopened
    and the passed offsets.

    Raises:
        Violation: it did more or less than it says.
    """
    before = Progress(event.floor_before, event.ranges_before)
    after = Progress(event.floor, event.ranges)
    if event.grant_epoch <= lent.grant_epoch:
        raise Violation("S22", f"holders of before are not fenced: {event}")
    if after != Progress(0).with_acked((*without(_all(before), event.dropped), *event.added)):
        raise Violation("S21", f"not what was asked: {event}")
    reopened = _offsets(without(_all(before), _all(after)))
    if event.undoes:
        _check_undone(event, lent, before, reopened)
    lent.made[event.number] = before, after
    lent.stored, lent.moved_epoch = after, event.grant_epoch
    lent.marked = max(lent.marked, end)
    # Acks that count from now on were given under a later grant.
    lent.acked.clear()
    passed = _offsets(without(_all(after), _all(before)))
    lent.passed |= passed
    lent.owed -= lent.passed
    again = {offset for offset in reopened if offset < end}
    if reopened:
        _reopen(lent, again, min(reopened))
    return again, passed


def _check_undone(event: Moved, lent: CheckedStream, before: Progress, reopened: set[int]) -> None:
    was, given = lent.made[event.undoes]
    gave = without(_all(given), _all(was))
    if _all(Progress(event.floor, event.ranges)) != _all(
        Progress(0).with_acked((*without(_all(before), gave), *_all(was)))
    ):
        raise Violation("S23", f"operation {event.undoes} is not taken back: {event}")
    if again := reopened & lent.settled:
        raise Violation("S23", f"{sorted(again)} were acknowledged: {event}")


def _reopen(lent: CheckedStream, reopened: set[int], first: int) -> None:
    lent.owed |= reopened
    lent.reopened |= reopened
    for kept in (lent.durable, lent.settled, lent.passed):
        kept -= reopened
    for notes in (lent.counted, lent.rests, lent.asked):
        for offset in [offset for offset in notes if offset >= first]:
            del notes[offset]
    lowered = {key: min(below, first) for key, below in lent.first_below.items()}
    begins = min(lent.first_below.default_factory(), first)  # type: ignore[misc]  # it has one
    lent.first_below = defaultdict(lambda: begins, lowered)


def note_handed_out(event: HandedOut, lent: CheckedStream, end: int) -> None:
    """A stream that ends at ``end`` hands out. Under a grant from before a move, that does not
    count."""
    if event.grant_epoch < lent.moved_epoch:
        return
    if event.grant_epoch > lent.hand_epoch < lent.moved_epoch:
        # The hand-outs of earlier holders are measured by now.
        lent.marked = max(lent.marked, end)
    lent.owed.discard(event.offset)
    lent.counted[event.offset] = lent.counted.get(event.offset, 0) + 1


def _all(progress: Progress) -> Ranges:
    return (((0, progress.floor),) if progress.floor else ()) + progress.ranges


def _offsets(ranges: Ranges) -> set[int]:
    return {offset for part in ranges for offset in range(*part)}
