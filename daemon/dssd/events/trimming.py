"""Removes events above the maximum number or age, some in each commit.

Invariant: the newest event stays, however old it is, so that its number is not reused; none is
removed before an older one, and no draft is.
"""

from dssd.events.limits import EVENTS_MAX, EVENTS_TRIM_ROWS
from dssd.store.port import Delete, Store
from dssd.store.rows import EventRow


def too_many(count: int) -> bool:
    """Whether the next commit may not find room for its events."""
    return count > EVENTS_MAX - EVENTS_TRIM_ROWS


async def trim(store: Store, *, count: int, newest: int, oldest_kept_ms: int) -> list[int]:
    """Remove the oldest of ``count`` events, `EVENTS_TRIM_ROWS` at most; returns their numbers.

    Raises:
        DssError: the store refused.
    """
    excess = EVENTS_TRIM_ROWS if too_many(count) else 0
    doomed: list[int] = []
    for at, found in enumerate(await store.scan(EventRow, after=(0,), limit=EVENTS_TRIM_ROWS)):
        row = found.row
        if row.number == newest or (at >= excess and row.last_at_ms >= oldest_kept_ms):
            break
        doomed.append(row.number)
    if doomed:
        await store.commit([Delete(EventRow, (number,)) for number in doomed])
    return doomed
