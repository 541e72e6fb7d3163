"""Operators who have a group's streams taken back and lent again, as when its queues come or go.

The edit meanwhile is not played: all is lent again as it was. A caller whose leader is gone asks no
other one. Invariant: this looks at a leader only to judge its answers. Names are those of
docs/proof/groups-simulator.md::

    H1  while a leader holds its streams back, no session delivers any of them
    H2  what is stored of them then is what the leader knows, and stays so until they are lent again
"""

from collections.abc import Mapping
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.groups.store import at_once
from dss_sim.groups.violation import Violation
from dssd.leaders.progress_columns import progress_of
from dssd.machines.leader.events import Hold, LendAgain
from dssd.store.rows import ProgressRow

if TYPE_CHECKING:
    from dss_sim.groups.leader_host import Leading
    from dss_sim.groups.world import World

HOLD = "hold"
HELD_SHARE = 1 / 6
"""The share of runs in which streams are held back."""
HOLDS_MAX = 3
HELD_US = (1_000, 600_000)
"""How long a change of a group takes; less than what follows heal."""

Known = Mapping[StreamId, Progress]


def holds(seed: int, begins_us: int, ends_us: int) -> list[tuple[int, str, int, int]]:
    """When streams of which group are held back, and for how long; in most runs never."""
    chance = Random(f"{seed}/holds")
    if chance.random() >= HELD_SHARE:
        return []
    return [
        (chance.randrange(begins_us, ends_us), HOLD, chance.randrange(99), chance.randint(*HELD_US))
        for _ in range(chance.randint(1, HOLDS_MAX))
    ]


class HoldOperator:
    """The holds of all groups."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._asked: dict[Leading, int] = {}
        """Leaders that were asked, and how long they are to hold."""

    def hold(self, group_id: int, for_us: int) -> None:
        """Have the streams taken back, if the group has a leader and no operation."""
        acting = self._world.leaders.leading.get(group_id)
        if self.holds(group_id) or self._world.cursor_operator.is_running(group_id):
            return
        if acting is not None and acting.leader is not None:
            self._asked[acting] = for_us
            self._world.leaders.feed(acting, Hold)

    def holds(self, group_id: int) -> bool:
        """Whether a leader of the group was asked to hold, and not yet to lend again."""
        acting = self._world.leaders.leading.get(group_id)
        return acting is not None and not acting.over and acting in self._asked

    def held(self, acting: "Leading") -> None:
        """A leader says that nobody holds a stream."""
        known = self._check(acting)
        self._world.schedule.after(
            self._asked[acting], partial(self._end, acting, known), self._world.leaders.host
        )

    def _end(self, acting: "Leading", known: Known) -> None:
        if not acting.over:
            now = self._check(acting)
            changed = {level for level, before in known.items() if now.get(level, before) != before}
            if changed:
                raise Violation("H2", f"{changed} changed while held: {known}, {now}")
            self._asked.pop(acting)
            self._world.leaders.feed(acting, LendAgain)

    def _check(self, acting: "Leading") -> Known:
        assert acting.leader is not None
        group_id = acting.group.group_id
        for stream, lent in acting.leader.streams.items():
            self._world.check_fenced(group_id, stream, lent.grant_epoch + 1, "H1")
            stored = self._stored(group_id, stream)
            if stored != lent.progress:
                raise Violation("H2", f"{stream} is stored as {stored}: {lent.progress}")
        levels = [
            level
            for lent in acting.leader.streams.values()
            for level in (lent.stream, *(queue.stream for queue in lent.queues))
        ]
        return {level: self._stored(group_id, level) for level in levels}

    def _stored(self, group_id: int, stream: StreamId) -> Progress:
        found = at_once(self._world.store.rows.read(ProgressRow, (group_id, *stream)))
        return progress_of(None if found is None else found.row)
