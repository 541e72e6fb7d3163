"""Redrives that are stopped again and again while nobody can report what they brought back.

::

    redrive ─► a lane is opened ─► leaders stand still ─► the daemon dies
       ▲                                                       │
       └─────── stopped, before any client is back ◄───────────┘

So a record is named by several entries of both queues, and no report tells of any. In the end the
first dead letter of each lane is given up, which may be the first place of such a record. Chance
alone never comes there. Invariant: one round runs at a time, and none begins once all is healed.
"""

from functools import partial
from typing import TYPE_CHECKING

from dssd.store.rows import GroupRow

if TYPE_CHECKING:
    from dss_sim.groups.world import World

WORKS_US = (20_000, 400_000)
"""How long holders work before the daemon dies."""
AWAY_LEASES = 1.5
"""So long clients are away: what is kept for them is free by then."""
LOOK_AGAIN_US = 20_000


class UntoldRedrives:
    """Of one run."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._group: GroupRow | None = None
        self._rounds = 0
        self._waits_for_lane = False

    def begin(self, group: GroupRow, rounds: int) -> None:
        """So many rounds for a group."""
        if self._group is None:
            self._group, self._rounds = group, rounds
            self._redrive()

    def lane_taken(self, group: str) -> None:
        """A lane is opened."""
        if self._waits_for_lane and self._group is not None and group == self._group.name:
            self._waits_for_lane = False
            self._world.leaders.host.freeze(2 * WORKS_US[1])
            chance = self._world.chance.of(f"untold {self._rounds}")
            self._world.schedule.after(chance.randint(*WORKS_US), self._die)

    def _redrive(self) -> None:
        world, group = self._world, self._group
        if group is None or world.healed_us is not None:
            return
        if world.cursor_operator.is_running(group.group_id):
            world.schedule.after(LOOK_AGAIN_US, self._redrive)
            return
        if not self._rounds:
            world.cursor_operator.redrive(group, gives_up_first=True)
            return
        world.cursor_operator.redrive(group, whole=True)
        if world.cursor_operator.is_running(group.group_id):
            self._rounds -= 1
            self._waits_for_lane = True
        else:
            world.schedule.after(LOOK_AGAIN_US, self._redrive)

    def _die(self) -> None:
        world = self._world
        if world.healed_us is not None:
            return
        away_us = int(AWAY_LEASES * world.plan.timing.lease_ms * 1_000)
        for client in world.clients:
            client.host.freeze(away_us)
        world.crash_daemon()
        world.schedule.after(LOOK_AGAIN_US, partial(self._stop, world.leaders.host.incarnation))

    def _stop(self, incarnation: int) -> None:
        world, group = self._world, self._group
        assert group is not None
        if world.leaders.host.incarnation == incarnation and not world.leaders.up:
            world.schedule.after(LOOK_AGAIN_US, partial(self._stop, incarnation))
            return
        world.cursor_operator.cancel(group)
        self._redrive()
