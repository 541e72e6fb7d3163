"""Which data a daemon has: its *incarnation*, a random id that a restart keeps.

Offsets, ids and epochs are of one incarnation; data that is restored from a backup gets another,
for what was given behind the backup may be given again. Invariant: it is durable before anybody is
told. This module must not know who is.
"""

import os

from dssd.store.paging import scan_all
from dssd.store.port import Absent, Put, Store
from dssd.store.rows import IncarnationRow

INCARNATION_BYTES = 16
"""Random: no two are ever the same."""


async def incarnation_of(store: Store) -> bytes:
    """The store's; one that has none yet gets it."""
    rows = await scan_all(store, IncarnationRow)
    if rows:
        return rows[-1].row.incarnation
    row = IncarnationRow(1, os.urandom(INCARNATION_BYTES))
    await store.commit([Put(row)], [Absent(IncarnationRow, (row.number,))])
    return row.incarnation
