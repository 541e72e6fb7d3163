"""Every kind of operation that this daemon knows, in one table."""

from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.operations.changes import ImportOffsets, MoveCursors, SkipRecords
from dssd.operations.kinds.cursors import CursorMoves
from dssd.operations.plans import KindTable
from dssd.store.port import Store
from dssd.topics.catalogue import Catalogue


def operation_kinds(
    store: Store, groups: Groups, registry: Registry, catalogue: Catalogue, log: Log
) -> KindTable:
    """The table, over the daemon's parts."""
    cursors = CursorMoves(store, groups, registry, catalogue, log)
    return KindTable(
        by_change={MoveCursors: cursors, ImportOffsets: cursors, SkipRecords: cursors},
        by_name={"offsets": cursors, "records": cursors},
    )
