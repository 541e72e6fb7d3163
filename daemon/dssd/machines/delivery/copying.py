"""Which entries of a retry queue are copied to its end, so that it has few acked ranges and files.

An entry with a long backoff costs something where it lies. Among acked entries it splits an acked
range, which is written in each commit. Below them it holds the queue's floor down: all files from
there on stay, and the next holder reads them all. Invariants: only entries that wait for their time
are copied, at most as many as one move takes; a sparse queue copies at most a fraction of the
entries that its floor then passes. This module must not know moves.
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
"""A retry queue is sparse where it spans at least so many entries from its floor to its end, and
fewer than one in `SPARSE_PART` of them wait. Its oldest entries are then copied to its end: one
with a backoff of a day would keep all entries behind it on disk."""


QUEUE_RANGES_MAX = 512
GAP_RECORDS_MAX = 64
"""A retry queue has at most so many acked ranges, as each commit writes them all. Beyond that, gaps
of at most `GAP_RECORDS_MAX` entries between them are closed by copying the entries."""


def to_copy(progress: Progress, entries: WaitingEntries, end: int) -> Iterable[Range]:
    """The ranges of entries to copy to the queue's end now; most often none."""
    surplus = len(progress.ranges) - QUEUE_RANGES_MAX
    if surplus > 0:
        return _small_gaps(progress, entries, surplus + QUEUE_RANGES_MAX // 4)
    span = end - progress.floor
    if span >= SPARSE_RECORDS_MIN and entries.records * SPARSE_PART < span:
        older = _waiting(progress, entries, progress.floor + span // 2)
        return islice(older, MOVE_RECORDS_MAX // GAP_RECORDS_MAX)
    return ()


def _small_gaps(progress: Progress, entries: WaitingEntries, count: int) -> Iterable[Range]:
    """The smallest gaps between acked ranges."""
    gaps = [(low[1], high[0]) for low, high in pairwise(progress.ranges)]
    small = [gap for gap in gaps if _size(gap) <= GAP_RECORDS_MAX and _is_idle(gap, entries)]
    return nsmallest(count, small, key=_size)


def _waiting(progress: Progress, entries: WaitingEntries, end: int) -> Iterator[Range]:
    """The waiting entries below an offset, in pieces: once they are copied, the floor rises."""
    for start, stop in progress.unacked(end):
        for at in range(start, stop, GAP_RECORDS_MAX):
            piece = at, min(at + GAP_RECORDS_MAX, stop)
            if _is_idle(piece, entries):
                yield piece


def _is_idle(gap: Range, entries: WaitingEntries) -> bool:
    """Whether all its entries wait for their time."""
    return not any(at in entries.attempts for at in range(*gap))


def _size(gap: Range) -> int:
    return gap[1] - gap[0]


def still_to_go(
    piece: MovePiece, entries: WaitingEntries, done: Sequence[Ranges]
) -> Iterator[MovePiece]:
    """The part of a piece that is not done.

    Of a copy, only entries that still wait: one that was sent meanwhile may have failed anew.
    """
    if not piece.is_copied:
        return piece.left(done)
    busy = normalised((at, at + 1) for at in entries.attempts)
    return piece.left(((), normalised((*busy, *done[RETRY]))))
