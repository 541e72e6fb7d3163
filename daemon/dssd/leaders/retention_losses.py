"""Retention losses: unacknowledged records that retention deletes, counted and told per group.

An *episode* of a topic and a group begins when retention deletes records that the group has not
acknowledged, and ends at a deletion without such records. Operators are told of the start of an
episode at once; while it lasts, they are told again at most once in `UNREAD_TOLD_EVERY_MS`.

Invariant: a record counts once per group, however often its deletion is retried. This module does
not decide what is deleted, and starts no leader.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dss_core.answers import UnreadLoss
from dss_core.counted import counted
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.progress import Progress, Range, complement, total
from dssd.clock import Clock
from dssd.events.kinds import RETENTION_LOST
from dssd.events.model import GROUP_FIELD, Event
from dssd.events.teller import Teller, tell_if_room
from dssd.leaders.groups import Groups
from dssd.leaders.lag import selects_whole
from dssd.leaders.registry import Registry
from dssd.leaders.topic_readers import readers_of
from dssd.limits import UNREAD_TOLD_EVERY_MS
from dssd.loop_yield import LoopTurn
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue, Topic


@dataclass(slots=True, eq=False)
class _Losses:
    """The losses of one topic and one group."""

    topic: Topic
    group: GroupRow
    records: int = 0
    last_at_ms: int = 0
    told_ms: int | None = None
    """None between episodes."""
    counted_to: dict[StreamId, int] = field(default_factory=dict)
    """By stream: the offset up to which records of this episode are counted."""

    def exact(self) -> bool:
        return selects_whole(TopicFilter.parse(self.group.filter), self.topic)


class RetentionLosses:
    """Implements `dssd.topics.retention.Readers`. Lives as long as the daemon."""

    def __init__(
        self,
        catalogue: Catalogue,
        groups: Groups,
        registry: Registry,
        clock: Clock,
        teller: Teller,
    ) -> None:
        self._teller = teller
        self._catalogue = catalogue
        self._groups = groups
        self._registry = registry
        self._clock = clock
        self._losses: dict[tuple[int, int], _Losses] = {}
        """By topic and group, as long as both are there."""
        self.records = 0
        """Records counted since the start, over all groups."""
        catalogue.watch(self._topic_changed)
        groups.watch_removed(self._group_removed)

    def losses(self) -> list[UnreadLoss]:
        """The losses of each group and topic, the latest last."""
        found = [
            UnreadLoss(
                each.topic.name,
                each.group.name,
                each.group.filter,
                each.records,
                each.exact(),
                each.last_at_ms,
            )
            for each in self._losses.values()
        ]
        return sorted(found, key=lambda each: each.last_at_ms)

    async def about_to_go(self, topic: Topic, going: Mapping[StreamId, Range]) -> None:
        """Count and tell, durably, the offsets of a topic that groups have not acknowledged."""
        storage_topic_ids = {stream.storage_topic_id for stream in going}
        turn = LoopTurn()
        for group in await readers_of(topic, self._groups.groups):
            unread: dict[StreamId, Progress] = {}
            progress = await self._registry.progress(group, storage_topic_ids)
            for stream, (start, end) in going.items():
                await turn.give_way()
                acked = progress.get(stream, Progress(0))
                if unacked(acked, start, end):
                    unread[stream] = acked
            if self._groups.has(group.group_id):  # else the progress went with it
                event = self._counted(topic, group, going, unread)
                if event is not None:
                    await tell_if_room(self._teller, event)

    def _counted(
        self,
        topic: Topic,
        group: GroupRow,
        going: Mapping[StreamId, Range],
        unread: Mapping[StreamId, Progress],
    ) -> Event | None:
        """Count the losses; returns the event to tell, if any."""
        key = topic.topic_id, group.group_id
        losses = self._losses.get(key)
        if not unread:
            if losses is not None:
                losses.told_ms = None
                losses.counted_to.clear()
            return None
        if losses is None:
            losses = self._losses[key] = _Losses(topic, group)
        more = 0
        for stream, acked in unread.items():
            start, end = going[stream]
            more += unacked(acked, max(start, losses.counted_to.get(stream, 0)), end)
            losses.counted_to[stream] = end
        if more:
            self.records += more
            losses.records += more
            losses.last_at_ms = self._clock.wall_ms()
            now_ms = self._clock.now_ms()
            if losses.told_ms is None or now_ms >= losses.told_ms + UNREAD_TOLD_EVERY_MS:
                losses.told_ms = now_ms
                return _lost_event(losses, more)
        return None

    def _topic_changed(self, topic: Topic, removed: bool) -> None:
        there = self._catalogue.find(topic.name)
        # It may have lost an old storage topic alone.
        if removed and (there is None or there.topic_id != topic.topic_id):
            self._forget([key for key in self._losses if key[0] == topic.topic_id])

    def _group_removed(self, group: GroupRow) -> None:
        self._forget([key for key in self._losses if key[1] == group.group_id])

    def _forget(self, keys: list[tuple[int, int]]) -> None:
        for key in keys:
            del self._losses[key]


def _lost_event(losses: _Losses, more: int) -> Event:
    group, exact = losses.group.full_name, losses.exact()
    return Event(
        RETENTION_LOST,
        group,
        f"Retention takes {'' if exact else 'at most '}{counted(more, 'record')} of topic "
        f"{losses.topic.name} that it has not acknowledged; {losses.records} since the daemon's "
        "start.",
        {
            GROUP_FIELD: group,
            "topic": losses.topic.name,
            "records": str(more),
            "records_since_start": str(losses.records),
            "exact": str(exact).lower(),
        },
    )


def unacked(acked: Progress, start: int, end: int) -> int:
    """How many offsets in ``[start, end)`` are not acknowledged."""
    start = max(start, acked.floor)
    return total(complement(acked.ranges, start, end)) if start < end else 0
