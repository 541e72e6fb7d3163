"""What the store may say of a cursor that an operator moved, and of one that nobody moved.

Judged at the moment at which a commit takes effect. Invariant: a row of progress is compared with
the one before it, so each commit is judged by itself; this knows the rows and no machine.
"""

from dss_core.progress import Progress, Ranges, without
from dss_sim.groups.violation import Violation
from dssd.leaders.progress_columns import (
    fate_of,
    progress_of,
    unpacked_attempts,
    unpacked_ranges,
)
from dssd.machines.attempts import Attempts, merged_attempts, unacked_attempts
from dssd.machines.start_point import OFFSET_MAX
from dssd.store.rows import MadeMoveRow, PendingMoveRow, ProgressRow

KINDS = ("attempts", "failures", "doubts", "rests")
"""The columns of progress rows about unacknowledged records."""


def check_written_move(
    before: ProgressRow, after: ProgressRow, made: MadeMoveRow | None, asked: PendingMoveRow | None
) -> None:
    """S25: a cursor moves only if an operation asked for it, as it asked, and once.

    Raises:
        Violation: it moves by itself, or claims a move that was not made.
    """
    number = after.cursor_generation
    if made is None and number == before.cursor_generation:
        return
    if made is None or asked is None or not made.number == asked.number == number:
        raise Violation("S25", f"nobody asked for it: {before} to {after} by {made} for {asked}")
    if number <= before.cursor_generation:
        raise Violation("S24", f"a move is made again: {before} to {after}")
    if (made.floor_after, made.ranges_after) != (after.floor, after.ranges):
        raise Violation("S25", f"the move is not what became of the progress: {made}, {after}")


def check_known(before: ProgressRow, after: ProgressRow, made: MadeMoveRow | None) -> None:
    """S10, S14, S21: durable hand-outs are never forgotten, except for reopened records; offsets
    that progress newly covers are counted once, as one kind; and records that may have been seen
    stay marked.

    Raises:
        Violation: one of these does not hold.
    """
    newly = _covered(progress_of(after)) - _covered(progress_of(before))
    counted = sum(fate_of(after).counts) - sum(fate_of(before).counts)
    if newly != counted:
        raise Violation("S14", f"{counted} offsets were counted of {newly}: {before} to {after}")
    reopened = OFFSET_MAX if made is None else _first_reopened(made)
    if after.frontier < min(before.frontier, reopened):
        raise Violation("S10", f"the frontier fell from {before.frontier}: {after}")
    progress = progress_of(after)
    for kind in KINDS:
        was, entries = _entries(before, kind, reopened), _entries(after, kind, reopened)
        if merged_attempts(was, entries, progress) != unacked_attempts(entries, progress):
            raise Violation("S10", f"known {kind} were forgotten: {before} to {after}")
    seen = (before.marked_below, *((before.frontier, _end(made)) if made is not None else ()))
    if after.marked_below < max(seen):
        raise Violation("S21", f"not marked up to {max(seen)}: {before} to {after}")
    handed_out = after.frontier > max(reopened, progress.floor)
    if handed_out or any(_end_of(after, kind) > reopened for kind in KINDS):
        raise Violation("S21", f"what is reopened counts as handed out: {before} to {after}")


def _entries(row: ProgressRow, kind: str, below: int) -> Attempts:
    entries = unpacked_attempts(getattr(row, kind))
    return tuple((low, min(high, below), count) for low, high, count in entries if low < below)


def _end_of(row: ProgressRow, kind: str) -> int:
    entries = unpacked_attempts(getattr(row, kind))
    return entries[-1][1] if entries else 0


def _first_reopened(made: MadeMoveRow) -> int:
    before = Progress(made.floor_before, unpacked_ranges(made.ranges_before))
    after = Progress(made.floor_after, unpacked_ranges(made.ranges_after))
    reopened = without(_all(before), _all(after))
    return reopened[0][0] if reopened else OFFSET_MAX


def _end(made: MadeMoveRow) -> int:
    ranges = unpacked_ranges(made.ranges_before)
    return ranges[-1][1] if ranges else made.floor_before


def _all(progress: Progress) -> Ranges:
    return (((0, progress.floor),) if progress.floor else ()) + progress.ranges


def _covered(progress: Progress) -> int:
    return progress.floor + progress.acked_above_floor()
