"""Finds the due times that have come, each with its delay by the jitter.

Invariant: a due time always has the same delay, so a restarted daemon continues to wait for the
same time. The cost is bounded, however long the daemon was down.
"""

import xxhash

from dssd.machines.schedule import Due
from dssd.schedules.cron import FireTimes
from dssd.store.schedule_rows import ScheduleRow

DUE_LISTED_MAX = 64
"""Due times that are examined one by one after a downtime; of more, only the latest are, and the
others are counted."""

DUE_TAKEN_OF_MANY = 3
"""The latest of those: one that is run, one whose delay is not over, the latest that was missed."""


def delay_ms(row: ScheduleRow, at_ms: int) -> int:
    """How much later than due a run is to begin."""
    if not row.jitter_ms:
        return 0
    return xxhash.xxh64_intdigest(b"%d:%d" % (row.schedule_id, at_ms)) % row.jitter_ms


def next_due(row: ScheduleRow, times: FireTimes, after_ms: int) -> Due | None:
    """The first due time behind an instant."""
    at_ms = times.next_ms(after_ms)
    return None if at_ms is None else Due(at_ms, delay_ms(row, at_ms))


def come(
    row: ScheduleRow, times: FireTimes, after_ms: int, wall_ms: int
) -> tuple[tuple[Due, ...], int]:
    """The due times in ``(after, now]`` whose delays are over, the last of many; how many else."""
    found = times.between(after_ms, wall_ms, DUE_LISTED_MAX)
    earlier = 0
    if len(found) == DUE_LISTED_MAX:
        found = _last(times, after_ms, wall_ms)
        earlier = times.count(after_ms, found[0] - 1)
    come_ = [Due(at_ms, delay_ms(row, at_ms)) for at_ms in found]
    while come_ and sum(come_[-1]) > wall_ms:
        come_.pop()
    return tuple(come_), earlier


def _last(times: FireTimes, after_ms: int, up_to_ms: int) -> list[int]:
    """The last due times in ``(after, up to]``, a few."""
    found: list[int] = []
    for _ in range(DUE_TAKEN_OF_MANY):
        latest = _latest(times, after_ms, found[0] - 1 if found else up_to_ms)
        if latest is None:
            break
        found.insert(0, latest)
    return found


def _latest(times: FireTimes, after_ms: int, wall_ms: int) -> int | None:
    """The last due time in ``(after, now]``, halving where it may lie."""
    low_ms, high_ms = after_ms, wall_ms
    latest: int | None = None
    while (at_ms := times.next_ms(low_ms)) is not None and at_ms <= wall_ms:
        latest = at_ms
        if high_ms - at_ms <= 1:
            break
        middle_ms = (at_ms + high_ms) // 2
        found = times.next_ms(middle_ms)
        if found is not None and found <= wall_ms:
            low_ms = middle_ms
        else:
            low_ms, high_ms = at_ms, middle_ms
    return latest
