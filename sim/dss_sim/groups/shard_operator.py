"""Operators who cut ordered groups into other numbers of shards, at random, and the rules for
shards. Drawn apart, so that no other plan changes.

An operation is durable from the moment when it is asked for, like the group's row. Invariant: this
decides nothing that a leader decides. Names are those of docs/proof/groups-simulator.md::

    H1  while a member that keeps state by shard holds a stream, nobody else holds one of the shard
        that it was told, also where that is none any more
    H2  whoever has a shard later has a higher epoch, streams of former counts included
    H3  a count is done when all open streams of each shard are with one member
    H4  every count is done, once all has healed                                     (`unended`)
"""

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from dss_core.ids import StreamId
from dss_sim.groups.queue_plans import SWITCH
from dss_sim.groups.store import at_once
from dss_sim.groups.violation import Violation
from dssd.leaders.slices import slicing_of
from dssd.machines.leader.events import LeaderInput, ShareByShards
from dssd.machines.leader.lent_stream import HELD, NOT_LENT, LentStream
from dssd.machines.leader.sharding import UNKNOWN
from dssd.machines.leader.state import Leader, LeaderState, owner_of
from dssd.machines.messages import BorrowerId
from dssd.store.port import Put
from dssd.store.rows import GroupRow

if TYPE_CHECKING:
    from dss_sim.groups.plan import Plan, Timed
    from dss_sim.groups.world import World

SET_COUNT = "set_count"
SHARDED_SHARE = 2 / 3
"""In runs with ordered groups, the share with shards."""
KEEPERS_SHARE = 1 / 2
"""The share of these in which some programs keep state by shard."""
COUNTS_MAX = 4
"""The most changes of the number in a run."""
COUNT_MAX = 8
"""The largest number that operators ask for, if no topic grows to more partitions."""
AS_BASE = -1
"""Stands for the base of the topic."""
AS_BASE_SHARE = 1 / 3
"""The share of ordered groups with shards that begin with that."""


def with_shards(plan: "Plan", timed_as: "type[Timed]") -> "Plan":
    """The plan; in some runs with ordered groups with shards."""
    chance = Random(f"{plan.seed}/shards")
    ordered = [each for each in plan.groups if each.queues is not None and each.queues.ordered]
    if not ordered or chance.random() >= SHARDED_SHARE:
        return plan
    drawn = {each.name: chance.randint(1, plan.partitions[each.topic]) for each in ordered}
    as_base = Random(f"{plan.seed}/shards as the base")
    groups = tuple(
        replace(each, shards=AS_BASE if as_base.random() < AS_BASE_SHARE else drawn[each.name])
        if each in ordered
        else each
        for each in plan.groups
    )
    keeps = chance.random() < KEEPERS_SHARE
    keepers = frozenset(
        f"c{at}" for at in range(len(plan.habits)) if keeps and chance.random() < 0.6
    )
    most = max(COUNT_MAX, *(each.amount for each in plan.timed if each.kind == SWITCH), 0)
    counts = [
        timed_as(
            chance.randrange(plan.heal_us // 8, plan.heal_us),
            SET_COUNT,
            chance.randrange(1 << 16),
            chance.randint(1, most),
        )
        for _ in range(chance.randint(0, COUNTS_MAX))
    ]
    timed = tuple(sorted([*plan.timed, *counts], key=lambda each: each.at_us))
    return replace(plan, groups=groups, keepers=keepers, timed=timed)


class ShardOperator:
    """The numbers of shards of all groups."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._numbers = 1 << 48
        self._asked: dict[int, set[int]] = {}
        """Operations that are not concluded, by group."""
        self._epochs: dict[tuple[int, StreamId], tuple[int, BorrowerId]] = {}
        """The highest epoch of a stream held by shard, and its holder."""

    # What operators ask for

    def set_count(self, group: GroupRow, count: int) -> None:
        """Cut the group's streams anew, into at most as many shards as there are partitions."""
        if slicing_of(group, self._world.catalogue) is None:
            return
        topics = self._world.catalogue.topics.values()
        most = max((part.partitions for each in topics for part in each.storage_topics), default=1)
        group = replace(group, shards=min(count, most), revision=group.revision + 1)
        at_once(self._world.store.rows.commit([Put(group)]))
        self._world.groups[group.name] = group
        self._numbers += 1
        self._asked.setdefault(group.group_id, set()).add(self._numbers)
        self.repeat_on(group.group_id)

    # What leaders ask and say

    def asked_of(self, group_id: int) -> list[ShareByShards]:
        """The instruction for a leader of the group, by its present state."""
        rows = (each for each in self._world.groups.values() if each.group_id == group_id)
        group = next(rows, None)
        if group is None:
            return []
        slicing = slicing_of(group, self._world.catalogue)
        return [ShareByShards(number, slicing) for number in sorted(self._asked.get(group_id, ()))]

    def repeat_on(self, group_id: int) -> None:
        """The group lost its leader, or gets another instruction."""
        leaders = self._world.leaders

        def instruct() -> None:
            for asked in self.asked_of(group_id):
                leaders.instruct(group_id, asked)

        self._world.schedule.arrive(0, instruct, leaders.host)

    def resume(self) -> None:
        """The daemon is up again, and goes on with what had not ended."""
        for group_id in list(self._asked):
            self.repeat_on(group_id)

    def forget(self, group_id: int) -> None:
        """The group was removed."""
        self._asked.pop(group_id, None)

    def unended(self) -> list[int]:
        """H4: operations that are not done."""
        return [number for asked in self._asked.values() for number in asked]

    # What is judged

    def concluded(self, group_id: int, number: int, leader: Leader) -> None:
        """A leader says that an operation is done.

        Raises:
            Violation: it is not.
        """
        asked = self._asked.get(group_id, set())
        if number not in asked:
            return
        asked.discard(number)
        if not asked:
            del self._asked[group_id]
        if not leader.members:
            return
        # Streams that these members hold come back by themselves.
        leaving = {name for name, member in leader.members.items() if member.leaving}
        for shard, streams in leader.shards.lanes.items():
            lents = [leader.streams[each] for each in streams]
            owners = {owner_of(each) for each in lents if each.state not in NOT_LENT} - leaving
            if len(owners) > 1:
                raise Violation("H3", f"shard {shard} is with {owners}")

    def check(self, group_id: int, leader: Leader, given: LeaderInput) -> None:
        """H1, H2: judge a leader after a step.

        Raises:
            Violation: a shard has two holders, or a lower epoch than before.
        """
        if leader.shards.slicing is None or leader.state is not LeaderState.LEADING:
            return
        held = [each for each in leader.streams.values() if each.state in HELD]
        keepers = {name for name, member in leader.members.items() if member.by_shard}
        for lent in held:
            if lent.holder in keepers and lent.shard not in (None, UNKNOWN):
                self._check_alone(leader, lent, held, given)
                self._check_epoch(group_id, leader, lent, given)

    def _check_alone(
        self, leader: Leader, lent: LentStream, held: list[LentStream], given: LeaderInput
    ) -> None:
        slicing = leader.shards.slicing
        assert slicing is not None
        assert lent.shard is not None
        for other in held:
            theirs = slicing.shard_of(other.stream, lent.shard.of)
            if theirs == lent.shard and other.holder != lent.holder:
                raise Violation("H1", f"{lent.shard} has {lent.stream} and {other.stream}: {given}")

    def _check_epoch(
        self, group_id: int, leader: Leader, lent: LentStream, given: LeaderInput
    ) -> None:
        assert lent.holder is not None
        key = group_id, lent.stream
        before, who = self._epochs.get(key, (0, b""))
        if lent.shard_epoch < before or (lent.shard_epoch == before and who != lent.holder):
            raise Violation("H2", f"{lent.stream} has {lent.shard_epoch} after {before}: {given}")
        self._epochs[key] = lent.shard_epoch, lent.holder
