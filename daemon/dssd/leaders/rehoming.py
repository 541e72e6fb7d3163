"""Moves entries of lanes for a leader: on to the lanes of child streams, or back from later lanes.

Invariant: each request is answered, unless the leader ends first; then its work is cancelled, and
the next leader begins anew. This module must not know what makes a lane ready for it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import assert_never

from dss_core.errors import LogUnreadable, StreamNotFound
from dss_core.ids import StreamId
from dss_core.progress import Ranges
from dss_core.routing import partition_of
from dssd.events.teller import Teller
from dssd.leaders.declarations import STALL
from dssd.leaders.delivery_trouble import DeliveryTrouble
from dssd.leaders.generations import children, next_part
from dssd.leaders.lanes import queues_of
from dssd.machines.leader.events import GoBack, Rehome, Rehomed, WentBack
from dssd.machines.queues import Queues
from dssd.queues.going_back import GoingBack, LaterLane, go_back
from dssd.queues.lane import Failed, Lane
from dssd.queues.moving import Parts
from dssd.queues.rehoming import Child, Rehoming, rehome
from dssd.store.port import Store
from dssd.store.rows import GroupRow, ProgressRow
from dssd.topics.catalogue import Catalogue, StorageTopic, Topic

QUEUES_WANTED_S = 0.2
"""The pause between checks whether the queues of children are made: as long as some commits."""

Task = asyncio.Task[None]


class Rehomings:
    """The re-homings of one leader."""

    def __init__(
        self,
        group: Callable[[], GroupRow],
        store: Store,
        catalogue: Catalogue,
        parts: Parts,
        events: Teller,
        tell: Callable[[Rehomed | WentBack], None],
    ) -> None:
        self._group = group
        self._store = store
        self._catalogue = catalogue
        self._parts = parts
        self._trouble = DeliveryTrouble(events, "")
        self._tell = tell
        self._under_way: dict[StreamId, Task] = {}

    def begin(
        self, asked: Rehome | GoBack, start: Callable[[Coroutine[object, object, None], str], Task]
    ) -> None:
        """Move the entries of a lane to its children, or entries of later lanes back to a stream.
        An earlier request for the same stream is cancelled."""
        before = self._under_way.pop(asked.stream, None)
        if before is not None:
            before.cancel()
        match asked:
            case Rehome():
                verb, doing = "re-home", self._rehome(asked)
            case GoBack():
                verb, doing = "go back to", self._go_back(asked)
            case _:
                assert_never(asked)
        name = f"{verb} {asked.stream} of group {self._group().group_id}"
        self._under_way[asked.stream] = start(doing, name)

    def end(self) -> None:
        """The leader ends."""
        for task in self._under_way.values():
            task.cancel()
        self._under_way.clear()

    async def _rehome(self, asked: Rehome) -> None:
        # If the topic was removed, the leader hears of that too.
        with suppress(StreamNotFound):
            rehoming = await self._wanted(asked)
            queues = await rehome(rehoming, self._parts, self._trouble_of(rehoming.lane))
            if queues is not None:
                now_ms = self._parts.clock.now_ms()
                self._tell(Rehomed(asked.stream, asked.grant_epoch, queues, now_ms))

    async def _go_back(self, asked: GoBack) -> None:
        with suppress(StreamNotFound):
            gone = await go_back(self._going_back(asked), self._parts)
            if gone is not None:
                now_ms = self._parts.clock.now_ms()
                self._tell(WentBack(asked.stream, asked.grant_epoch, tuple(gone.items()), now_ms))

    def _going_back(self, asked: GoBack) -> GoingBack:
        topic = self._catalogue.topic_of(asked.stream)
        part = _part_of(topic, asked.stream)
        lane = _lane_of(topic, asked.stream, asked.grant_epoch, asked.queues)
        later = [
            LaterLane(other, each.progress, each.queues, self._trouble_of(other))
            for each in asked.lanes
            for other in [_lane_of(topic, each.stream, each.grant_epoch, each.queues)]
        ]

        def is_ours(hashed: int) -> bool:
            at = partition_of(topic.router, hashed, part.partitions, part.factor)
            return at == asked.stream.partition

        of_group = self._group().max_deliver, self._trouble_of(lane)
        return GoingBack(lane, asked.queues, tuple(later), is_ours, *of_group)

    def _trouble_of(self, lane: Lane) -> "_Trouble":
        names = [str(self._catalogue.name_of(each)) for each in lane.levels]
        return _Trouble(self._trouble, self._group(), tuple(names))

    async def _wanted(self, asked: Rehome) -> Rehoming:
        while True:
            topic = self._catalogue.topic_of(asked.stream)
            part = _part_of(topic, asked.stream)
            after = next_part(topic, part)
            found = None if after is None else await self._children(topic, part, after, asked)
            if after is not None and found is not None:
                return self._rehoming(asked, (topic, part, after), found)
            await asyncio.sleep(QUEUES_WANTED_S)

    async def _children(
        self, topic: Topic, part: StorageTopic, after: StorageTopic, asked: Rehome
    ) -> dict[int, Child] | None:
        """The children by partition; None: their queues are not made yet."""
        found: dict[int, Child] = {}
        for partition in children(topic, part, asked.stream.partition, after):
            child = await self._child(StreamId(after.storage_topic_id, partition))
            if child is None:
                return None
            found[partition] = child
        return found

    async def _child(self, stream: StreamId) -> Child | None:
        group = self._group()
        named = self._catalogue.queues_of(group.group_id, stream)
        if named is None:
            return None
        rows = {
            queue: found.row
            for queue in named
            if (found := await self._store.read(ProgressRow, (group.group_id, *queue)))
        }
        # Nobody holds it, so the stored state of its queues is complete.
        queues = queues_of(self._catalogue, group, stream, rows)
        if not queues:
            return None
        retry, dead = queues
        progress = retry.progress, dead.progress
        ends = retry.applied_end, dead.applied_end
        return Child((retry.stream, dead.stream), ends, progress)

    def _rehoming(
        self,
        asked: Rehome,
        where: tuple[Topic, StorageTopic, StorageTopic],
        found: dict[int, Child],
    ) -> Rehoming:
        topic, _, after = where
        lane = _lane_of(topic, asked.stream, asked.grant_epoch, asked.queues)
        numbers = {partition: number for number, partition in enumerate(found)}

        def child_of(hashed: int) -> int:
            at = partition_of(topic.router, hashed, after.partitions, after.factor)
            # A key that its producer routed here against the rule has no order anyway.
            return numbers.get(at, hashed % len(found))

        of_lane = lane, asked.progress, asked.queues
        max_deliver = self._group().max_deliver
        return Rehoming(*of_lane, tuple(found.values()), child_of, max_deliver)


def _lane_of(topic: Topic, stream: StreamId, grant_epoch: int, queues: Queues) -> Lane:
    """The lane under the grant epoch of the leader."""
    retry, dead = queues
    return Lane(
        (stream, retry.stream, dead.stream),
        _part_of(topic, stream).ordinal,
        grant_epoch,
        cursor_generation=0,
        client_id="",
        is_ordered=True,
    )


def _part_of(topic: Topic, stream: StreamId) -> StorageTopic:
    for part in topic.storage_topics:
        if part.storage_topic_id == stream.storage_topic_id:
            return part
    raise StreamNotFound(stream=stream)


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Implements `dssd.queues.lane.Trouble`."""

    trouble: DeliveryTrouble
    group: GroupRow
    names: tuple[str, ...]
    """By level."""

    def unreadable(self, level: int, error: LogUnreadable) -> None:
        """A read failed; it is tried again."""
        self.trouble.unreadable(self.names[level], self.group, error)

    def readable(self, level: int) -> None:
        """A read succeeded."""
        self.trouble.readable(self.names[level], self.group)

    async def damaged(self, level: int, damaged: Ranges) -> bool:
        """Tell of damage; returns whether the group passes over it, and the event is durable."""
        told = await self.trouble.damaged(self.names[level], self.group, damaged)
        return told and self.group.on_damage != STALL

    def failed(self, failed: Failed) -> None:
        """Nothing fails by being re-homed."""
