"""Every kind of operation that this daemon knows, in one table."""

from dssd.clock import Clock
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.operations.changes import (
    Evict,
    ImportOffsets,
    MoveCursors,
    PauseGroup,
    Rebalance,
    ResumeGroup,
    RevokeGrant,
    SkipRecords,
    TransferGrant,
)
from dssd.operations.kinds.cursors import CursorMoves
from dssd.operations.kinds.eviction import Evictions
from dssd.operations.kinds.hand_over import HandOvers
from dssd.operations.kinds.pause import PAUSE, RESUME, Pauses
from dssd.operations.plans import KindTable
from dssd.store.port import Store
from dssd.topics.catalogue import Catalogue


def operation_kinds(
    store: Store,
    groups: Groups,
    registry: Registry,
    catalogue: Catalogue,
    log: Log,
    clock: Clock,
) -> KindTable:
    """The table, over the daemon's parts."""
    cursors = CursorMoves(store, groups, registry, catalogue, log)
    hand_overs = HandOvers(groups, registry)
    evictions = Evictions(store, groups, registry, clock)
    pauses = Pauses(groups, registry, clock)
    return KindTable(
        by_change={
            MoveCursors: cursors,
            ImportOffsets: cursors,
            SkipRecords: cursors,
            Rebalance: hand_overs,
            TransferGrant: hand_overs,
            RevokeGrant: hand_overs,
            Evict: evictions,
            PauseGroup: pauses,
            ResumeGroup: pauses,
        },
        by_name={
            "offsets": cursors,
            "records": cursors,
            "groups.rebalance": hand_overs,
            "grants": hand_overs,
            "borrowers": evictions,
            PAUSE: pauses,
            RESUME: pauses,
        },
    )
