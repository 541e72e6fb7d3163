"""The operator of dead letters: has some brought back.

What a redrive selects is stored while nobody leads the group, so that no commit of a leader that
does not know of it follows; and who holds the lanes then gets them anew. Invariant: only what was a
dead letter when the redrive is stored is selected.
"""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dss_core.progress import normalised
from dss_sim.groups.history import Disturbed, Redriven
from dss_sim.groups.store import at_once
from dssd.leaders.lanes import queue_row
from dssd.leaders.progress_columns import packed_ranges
from dssd.machines.queues import QueueState
from dssd.store.port import Put, Write
from dssd.store.rows import GroupRow, ProgressRow

if TYPE_CHECKING:
    from dss_core.ids import StreamId
    from dss_sim.groups.world import World

SHARE = 0.7
"""Of the dead letters, those that are selected."""
CUT_AFTER_US = 1_000
"""The new leader leads by then."""


class QueueOperator:
    """One, for all groups."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._chance = world.chance.of("redrives")
        self._asked: set[int] = set()
        """Groups whose next leader is to find a redrive."""
        self._numbers = 0

    def redrive(self, group: GroupRow) -> None:
        """Bring back some of the group's dead letters."""
        if group.max_deliver:
            self._world.tell(Disturbed(self._world.schedule.now_us, "redrive"))
            self._asked.add(group.group_id)
            self._world.leaders.lose_leader(group.group_id)

    def claimed(self, group: GroupRow) -> None:
        """The group has a new leader, which has not read its rows yet."""
        if group.group_id not in self._asked:
            return
        self._asked.discard(group.group_id)
        self._numbers += 1
        queues = self._world.catalogue.queues.items()
        writes = [
            write
            for (group_id, _), (_, dead) in queues
            if group_id == group.group_id and (write := self._selected(group, dead)) is not None
        ]
        at_once(self._world.store.rows.commit(writes))
        self._world.ledger.take(writes)
        for client in self._world.clients:
            if client.pipe is not None:
                self._world.schedule.after(CUT_AFTER_US, partial(client.pipe.cut, 0, 0))

    def _selected(self, group: GroupRow, dead: "StreamId") -> Write | None:
        world = self._world
        end = world.log.bounds(dead).end
        chosen = (at for at in range(end) if self._chance.random() < SHARE)
        ranges = normalised((at, at + 1) for at in chosen)
        if not ranges:
            return None
        found = at_once(world.store.rows.read(ProgressRow, (group.group_id, *dead)))
        row = queue_row(group, QueueState(dead)) if found is None else found.row
        world.tell(Redriven(world.schedule.now_us, group.name, world.names[dead], ranges))
        return Put(replace(row, redrive=self._numbers, redriving=packed_ranges(ranges)))
