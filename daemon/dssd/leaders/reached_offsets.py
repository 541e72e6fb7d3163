"""How far the groups have read the streams, by the stored progress.

Invariant: all groups count, even removed ones whose rows are still there. This module must not know
where the log ends: `log.recovery.reached_offsets` compares both.
"""

from collections import defaultdict

from dssd.leaders.progress_columns import reached_by
from dssd.store.paging import scan_all
from dssd.store.port import Store
from dssd.store.rows import ProgressRow


async def reached_offsets(store: Store) -> dict[int, dict[int, int]]:
    """The offset after the last record handed to any group, by storage topic and partition."""
    reached: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row in [found.row for found in await scan_all(store, ProgressRow)]:
        own = reached[row.storage_topic_id]
        own[row.partition] = max(own.get(row.partition, 0), reached_by(row))
    return reached
