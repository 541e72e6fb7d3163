"""Which data a daemon has: its *incarnation*, a random id that a restart keeps.

Offsets, ids and epochs are of one incarnation; data that is restored from a backup gets another,
for what was given behind the backup may be given again. Invariant: it is durable before anybody is
told. This module must not know who is.
"""

import os
from collections.abc import Sequence

from dssd.store.paging import scan_all
from dssd.store.port import Absent, Put, Store
from dssd.store.rows import IncarnationRow

INCARNATION_BYTES = 16
"""Random: no two are ever the same."""


async def incarnation_of(store: Store) -> IncarnationRow:
    """The store's; one that has none yet gets it."""
    rows = await scan_all(store, IncarnationRow)
    if rows:
        return rows[-1].row
    row = next_incarnation(())
    await store.commit([Put(row)], [Absent(IncarnationRow, (row.number,))])
    return row


def next_incarnation(before: Sequence[IncarnationRow]) -> IncarnationRow:
    """Another one than all before it; their numbers begin at 1."""
    number = max((row.number for row in before), default=0) + 1
    return IncarnationRow(number, os.urandom(INCARNATION_BYTES))
