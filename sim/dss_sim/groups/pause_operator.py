"""Operators who pause groups and resume them, at random.

A change is durable from the moment when it is asked for, like its row; if a leader has not
concluded it, it or the next leader is asked again. Invariant: this decides nothing that a leader
decides; it judges what one calls done. Names are those of docs/proof/groups-simulator.md::

    P1  from the moment at which a leader calls a pause done until the group is resumed, no user is
        handed anything of it
    P2  every pause and every resume is done, once all has healed                (`unended`)
"""

from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from dss_sim.groups.history import HandedOut
from dss_sim.groups.store import at_once
from dss_sim.groups.violation import Violation
from dssd.machines.leader.events import PauseGroup
from dssd.store.port import Put
from dssd.store.rows import GroupRow

if TYPE_CHECKING:
    from dss_sim.groups.world import World

PAUSED_SHARE = 1 / 4
"""The share of runs in which operators pause groups."""
PAUSES_MAX = 5
PAUSE_US = (1_000, 3_000_000)
FROZEN_SHARE = 1 / 3
"""The share of pauses during which a client is frozen."""
FROZEN_BEFORE_US = (0, 3_000)
APPENDS_BEFORE = 3
APPENDED_BEFORE_US = (3_000, 15_000)
"""How many frames are sent before: some reach the client, but not its user."""
FROZEN_US = (5_000, 700_000)
"""Lengths of pauses: most are shorter than a client's silence before it doubts."""


def pauses(seed: int, begins_us: int, ends_us: int) -> list[tuple[int, str, int, int]]:
    """When which group is paused, which client freezes then, and for how long.

    In most runs there is none.
    """
    chance = Random(f"{seed}/pauses")
    if chance.random() >= PAUSED_SHARE:
        return []
    timed: list[tuple[int, str, int, int]] = []
    for _ in range(chance.randint(1, PAUSES_MAX)):
        at_us, who = chance.randrange(begins_us, ends_us), chance.randrange(1 << 16)
        timed.append((at_us, "pause", who, chance.randint(*PAUSE_US)))
        if chance.random() < FROZEN_SHARE:
            # It has records that it has not handed out, and hears of the pause late.
            for _ in range(APPENDS_BEFORE):
                fresh_us = at_us - chance.randint(*APPENDED_BEFORE_US)
                timed.append((fresh_us, "append", chance.randrange(1 << 16), 6))
            frozen_us = at_us - chance.randint(*FROZEN_BEFORE_US)
            timed.append((frozen_us, "freeze_client", who, chance.randint(*FROZEN_US)))
    return timed


class PauseOperator:
    """The pauses of all groups."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._numbers = 1 << 40
        self._asked: dict[int, dict[int, bool]] = {}
        """Operations that are not concluded, by group and number: whether it pauses."""
        self._paused_by: dict[int, int] = {}
        """The operation that paused each group."""
        self._quiet: dict[str, int] = {}
        """Groups that hand out nothing, and the operation that paused each."""

    # What operators ask for

    def pause(self, group: GroupRow, for_us: int) -> None:
        """Pause the group; it is resumed after a while, at heal at the latest."""
        self._change(group.name, paused=True)
        resume = partial(self._change, group.name, paused=False)
        self._world.schedule.after(for_us, resume)

    def heal(self) -> None:
        """Resume every group."""
        for name in list(self._world.groups):
            self._change(name, paused=False)

    def _change(self, name: str, *, paused: bool) -> None:
        group = self._world.groups.get(name)
        if group is None or (paused and self._world.healed_us is not None):
            return
        if not paused:
            self._quiet.pop(name, None)
            if not group.paused:
                return
        begins = paused and not group.paused
        group = replace(group, paused=paused, revision=group.revision + 1)
        at_once(self._world.store.rows.commit([Put(group)]))
        self._world.groups[name] = group
        self._numbers += 1
        if begins:
            self._paused_by[group.group_id] = self._numbers
        self._asked.setdefault(group.group_id, {})[self._numbers] = paused
        self._instruct(group.group_id, self._numbers)

    # What leaders ask and say

    def asked_of(self, group_id: int) -> list[PauseGroup]:
        """The instruction for a leader of the group, by its present state."""
        paused = any(
            each.paused for each in self._world.groups.values() if each.group_id == group_id
        )
        return [PauseGroup(number, paused) for number in self._asked.get(group_id, {})]

    def resume(self) -> None:
        """The daemon is up again, and continues unfinished operations."""
        for group_id in list(self._asked):
            self.repeat_on(group_id)

    def repeat_on(self, group_id: int) -> None:
        """The group lost its leader."""
        for number in self._asked.get(group_id, {}):
            self._instruct(group_id, number)

    def _instruct(self, group_id: int, number: int) -> None:
        leaders = self._world.leaders

        def instruct() -> None:
            for asked in self.asked_of(group_id):
                if asked.number == number:
                    self._world.say("operator", asked)
                    leaders.instruct(group_id, asked)

        self._world.schedule.arrive(0, instruct, leaders.host)

    def forget(self, group: GroupRow) -> None:
        """The group was removed."""
        self._asked.pop(group.group_id, None)
        self._quiet.pop(group.name, None)

    def unended(self) -> list[int]:
        """P2: operations that are not done."""
        return [number for asked in self._asked.values() for number in asked]

    # What is judged

    def concluded(self, group: GroupRow, number: int) -> None:
        """A leader says that an operation is done."""
        was_pause = self._asked.get(group.group_id, {}).pop(number, False)
        now = self._world.groups.get(group.name)
        # A pause that was ended since is over, even if a later one paused the group again.
        lasts = number >= self._paused_by.get(group.group_id, 0)
        if was_pause and lasts and now is not None and now.paused:
            self._quiet.setdefault(group.name, number)

    def handed_out(self, event: HandedOut) -> None:
        """P1: a user was given a record.

        Raises:
            Violation: its group is paused.
        """
        number = self._quiet.get(event.group)
        if number is not None:
            raise Violation("P1", f"operation {number} had paused the group: {event}")
