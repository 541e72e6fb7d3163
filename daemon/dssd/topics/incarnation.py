"""The *incarnation* of a daemon's data: a random id that a restart keeps.

Offsets, ids and epochs are valid in one incarnation. Restored data gets a new one, because the lost
daemon may have assigned some of them after the backup. Invariant: it is durable before any client
sees it. This module must not know clients.
"""

import os
from collections.abc import Sequence

from dssd.store.paging import scan_all
from dssd.store.port import Absent, Put, Store
from dssd.store.rows import IncarnationRow

INCARNATION_BYTES = 16
"""Random: no two are ever the same."""


async def incarnation_of(store: Store) -> IncarnationRow:
    """The incarnation of the store; a new store gets its first one."""
    rows = await scan_all(store, IncarnationRow)
    if rows:
        return rows[-1].row
    row = next_incarnation(())
    await store.commit([Put(row)], [Absent(IncarnationRow, (row.number,))])
    return row


def next_incarnation(before: Sequence[IncarnationRow]) -> IncarnationRow:
    """A new incarnation; their numbers begin at 1."""
    number = max((row.number for row in before), default=0) + 1
    return IncarnationRow(number, os.urandom(INCARNATION_BYTES))
