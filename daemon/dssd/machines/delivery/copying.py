"""Which entries of a retry queue go to its end, so that its acked ranges and its files stay few.

What waits for long would keep its place: between acked entries it costs an acked range in each
commit, and below them it keeps the queue's floor, and so all files from there on, and what is read
when the lane is lent. Invariants: only what waits for its time is copied, in portions of one move;
what a sparse queue has copied is at most a part of what it lets go. This module must not know
moves.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import islice, pairwise

from dss_core.lane import RETRY
from dss_core.progress import Progress, Range, Ranges, normalised
from dssd.limits import MOVE_RECORDS_MAX
from dssd.machines.delivery.entries import WaitingEntries
from dssd.machines.delivery.events import MovePiece

SPARSE_RECORDS_MIN = 65_536
SPARSE_PART = 4
"""A retry queue of so many entries from its floor to its end, of which less than this part waits,
has the oldest copied to its end: one that waits for a day would keep all that failed behind it."""


QUEUE_RANGES_MAX = 512
GAP_RECORDS_MAX = 64
"""The acked ranges of a retry queue, which are in each commit: more, and gaps between them that
hold so few entries are closed."""


def to_copy(progress: Progress, entries: WaitingEntries, end: int) -> Iterable[Range]:
    """Entries of a queue of this progress and end that go to its end now, most often none."""
    surplus = len(progress.ranges) - QUEUE_RANGES_MAX
    if surplus > 0:
        return _small_gaps(progress, entries, surplus + QUEUE_RANGES_MAX // 4)
    span = end - progress.floor
    if span >= SPARSE_RECORDS_MIN and entries.records * SPARSE_PART < span:
        older = _waiting(progress, entries, progress.floor + span // 2)
        return islice(older, MOVE_RECORDS_MAX // GAP_RECORDS_MAX)
    return ()


def _small_gaps(progress: Progress, entries: WaitingEntries, count: int) -> Iterable[Range]:
    """The smallest gaps between acked ranges, which are closed."""
    gaps = [(low[1], high[0]) for low, high in pairwise(progress.ranges)]
    small = [gap for gap in gaps if _size(gap) <= GAP_RECORDS_MAX and _is_idle(gap, entries)]
    return nsmallest(count, small, key=_size)


def _waiting(progress: Progress, entries: WaitingEntries, end: int) -> Iterator[Range]:
    """What lies below an offset, in pieces: the floor rises over them."""
    for start, stop in progress.unacked(end):
        for at in range(start, stop, GAP_RECORDS_MAX):
            piece = at, min(at + GAP_RECORDS_MAX, stop)
            if _is_idle(piece, entries):
                yield piece


def _is_idle(gap: Range, entries: WaitingEntries) -> bool:
    """Whether all of it waits for its time."""
    return not any(at in entries.attempts for at in range(*gap))


def _size(gap: Range) -> int:
    return gap[1] - gap[0]


def still_to_go(
    piece: MovePiece, entries: WaitingEntries, done: Sequence[Ranges]
) -> Iterator[MovePiece]:
    """What of a piece is not done.

    Of a copy, what waits for its time still: what came meanwhile may have failed anew.
    """
    if not piece.is_copied:
        return piece.left(done)
    busy = normalised((at, at + 1) for at in entries.attempts)
    return piece.left(((), normalised((*busy, *done[RETRY]))))
