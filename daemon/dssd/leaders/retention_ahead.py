"""Retention ahead: warns of unacknowledged records that retention will take soon.

Soon means: a retention that is shorter and smaller by `RETENTION_AHEAD_PERCENT` would take them
now. There is one event for each stream and group in `UNREAD_TOLD_EVERY_MS`. Invariant: this changes
nothing and starts no leader; while the wall clock is not trusted, only bounds on bytes count.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import NoReturn

from dss_core.counted import counted
from dss_core.errors import StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.progress import Progress, Range
from dssd.clock import Clock
from dssd.events.kinds import RETENTION_NEAR
from dssd.events.model import GROUP_FIELD, Event, Note
from dssd.leaders.groups import Groups
from dssd.leaders.lag import selects_whole
from dssd.leaders.registry import Registry
from dssd.leaders.retention_losses import unacked
from dssd.leaders.topic_readers import readers_of
from dssd.limits import UNREAD_TOLD_EVERY_MS
from dssd.loop_yield import LoopTurn
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue, Topic
from dssd.topics.retention import Expires, shares

RETENTION_AHEAD_PERCENT = 10
"""The warning comes when a retention shorter or smaller by this percentage would take the records:
with the usual week, 17 hours ahead."""

RETENTION_AHEAD_EVERY_S = 300.0
"""The pause between looks; each reads the progress of every group of a topic with old records."""

RETENTION_AHEAD_STREAMS_MAX = 16
"""How many streams of a topic and group get their own event in one look; one event counts the rest,
so that a wide topic does not flood the events."""


class RetentionAhead:
    """Run it as a task; it ends only by cancellation."""

    def __init__(
        self,
        catalogue: Catalogue,
        groups: Groups,
        registry: Registry,
        log: Expires,
        clock: Clock,
        note: Note,
        *,
        trusts_wall: Callable[[], bool],
    ) -> None:
        self._catalogue = catalogue
        self._groups = groups
        self._registry = registry
        self._log = log
        self._clock = clock
        self._note = note
        self._trusts_wall = trusts_wall
        self._told_ms: dict[tuple[int, StreamId], int] = {}
        """By group and stream: when the last event was, while no further one is due."""

    async def run(self) -> NoReturn:
        """Look again and again."""
        while True:
            await asyncio.sleep(RETENTION_AHEAD_EVERY_S)
            await self.look()

    async def look(self) -> None:
        """Look at every topic with a retention once."""
        now_ms = self._clock.now_ms()
        self._told_ms = {
            key: told_ms
            for key, told_ms in self._told_ms.items()
            if now_ms < told_ms + UNREAD_TOLD_EVERY_MS
        }
        for topic in self._catalogue.topics():
            going = await self._going(topic)
            if not going:
                continue
            for group in await readers_of(topic, self._groups.groups):
                await self._look_at(topic, group, going)

    async def _going(self, topic: Topic) -> dict[StreamId, Range]:
        """The ranges that a somewhat stricter retention would take."""
        retention_ms = _stricter(topic.retention_ms if self._trusts_wall() else None)
        retention_bytes = _stricter(topic.retention_bytes)
        going: dict[StreamId, Range] = {}
        if retention_ms is None and retention_bytes is None:
            return going
        try:
            for part, share_bytes in shares(topic, retention_bytes, self._log.kept_bytes):
                expiring = await self._log.expiring(
                    part.storage_topic_id, retention_ms, share_bytes, self._clock.wall_us()
                )
                going |= expiring.ranges
        except StreamNotFound:  # the topic was removed meanwhile
            return {}
        return going

    async def _look_at(
        self, topic: Topic, group: GroupRow, going: Mapping[StreamId, Range]
    ) -> None:
        storage_topic_ids = {stream.storage_topic_id for stream in going}
        progress = await self._registry.progress(group, storage_topic_ids)
        near: list[tuple[int, StreamId]] = []
        turn = LoopTurn()
        for stream, (start, end) in going.items():
            await turn.give_way()
            records = unacked(progress.get(stream, Progress(0)), start, end)
            if records and (group.group_id, stream) not in self._told_ms:
                near.append((records, stream))
        if near and self._groups.has(group.group_id):  # else the progress went with it
            self._tell(topic, group, going, near)

    def _tell(
        self,
        topic: Topic,
        group: GroupRow,
        going: Mapping[StreamId, Range],
        near: list[tuple[int, StreamId]],
    ) -> None:
        near.sort(key=lambda each: -each[0])
        now_ms = self._clock.now_ms()
        for _, stream in near:
            self._told_ms[group.group_id, stream] = now_ms
        for records, stream in near[:RETENTION_AHEAD_STREAMS_MAX]:
            try:
                name = str(self._catalogue.name_of(stream))
            except StreamNotFound:  # the topic was removed meanwhile
                return
            self._note(_near_event(name, topic, group, records, going[stream][1]))
        rest = near[RETENTION_AHEAD_STREAMS_MAX:]
        if rest:
            self._note(_rest_event(topic, group, len(rest), sum(records for records, _ in rest)))


def _stricter(limit: int | None) -> int | None:
    return None if limit is None else limit * (100 - RETENTION_AHEAD_PERCENT) // 100


def _near_event(stream: str, topic: Topic, group: GroupRow, records: int, end: int) -> Event:
    name, exact = group.full_name, _is_exact(topic, group)
    return Event(
        RETENTION_NEAR,
        stream,
        f"Retention will soon take {'' if exact else 'at most '}{counted(records, 'record')} of it "
        f"below offset {end} that group {name} has not acknowledged.",
        {
            GROUP_FIELD: name,
            "records": str(records),
            "end": str(end),
            "exact": str(exact).lower(),
        },
    )


def _rest_event(topic: Topic, group: GroupRow, streams: int, records: int) -> Event:
    name, exact = group.full_name, _is_exact(topic, group)
    return Event(
        RETENTION_NEAR,
        name,
        f"Retention will soon take {'' if exact else 'at most '}{counted(records, 'record')} that "
        f"it has not acknowledged in {streams} more streams of topic {topic.name}.",
        {
            GROUP_FIELD: name,
            "topic": topic.name,
            "streams": str(streams),
            "records": str(records),
            "exact": str(exact).lower(),
        },
    )


def _is_exact(topic: Topic, group: GroupRow) -> bool:
    return selects_whole(TopicFilter.parse(group.filter), topic)
