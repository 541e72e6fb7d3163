"""Removes old storage topics without records, after retention has run.

::

    orders/0 sealed, no records ──┐ 24 h behind the switch from it, in one commit with the queues
    orders/1 sealed, records      │ that groups have of it; an older one always goes first
    orders/2 takes records        └─► the first one is orders/1 then; ordinals never come again

Invariant: a removed storage topic has no record and no hold, its producers are forgotten by age,
and all entries of its queues are finished. This module must not know how groups clean up their rows
of its streams.
"""

import logging
from itertools import pairwise
from typing import Protocol

from dss_core.errors import DiskFull, StreamNotFound, TopicNotFound
from dss_core.ids import StreamId
from dss_core.progress import Range
from dssd.clock import Clock
from dssd.log.limits import PRODUCER_FORGOTTEN_US
from dssd.store.port import Store
from dssd.topics.catalogue import Catalogue, StorageTopic, Topic
from dssd.topics.queue_trims import done_below

_LOG = logging.getLogger(__name__)


class HeldLog(Protocol):
    """What is asked of the log."""

    def span(self, stream: StreamId) -> Range:
        """Start and end of a stream, now."""

    def holders(self, storage_topic_id: int) -> set[int]:
        """Who holds records of a storage topic."""


class OldStorageTopics:
    """Of all topics."""

    def __init__(self, store: Store, catalogue: Catalogue, log: HeldLog, clock: Clock) -> None:
        self._store = store
        self._catalogue = catalogue
        self._log = log
        self._clock = clock

    async def collect(self) -> int:
        """Remove finished storage topics of all topics once; returns how many."""
        dropped = 0
        for topic in self._catalogue.topics():
            try:
                done = await self._done(topic)
                if done:
                    await self._catalogue.drop_storage_topics(topic.topic_id, done)
            except (DiskFull, StreamNotFound, TopicNotFound):  # later, or it was removed meanwhile
                continue
            for ordinal in done:
                _LOG.info(
                    "the storage topic %s/%d had no record left, and is gone",
                    topic.name,
                    ordinal,
                    extra={"event": "topic.collected"},
                )
            dropped += len(done)
        return dropped

    async def _done(self, topic: Topic) -> list[int]:
        """The ordinals of its oldest storage topics that may go."""
        done: list[int] = []
        for part, successor in pairwise(topic.storage_topics):
            forgotten_us = successor.begins_us + PRODUCER_FORGOTTEN_US
            if part.ends is None or forgotten_us >= self._clock.wall_ms() * 1_000:
                break
            if not self._is_empty(part) or not await self._queues_are_done(topic, part):
                break
            done.append(part.ordinal)
        return done

    def _is_empty(self, part: StorageTopic) -> bool:
        spans = map(self._log.span, part.streams())
        return not self._log.holders(part.storage_topic_id) and all(s == e for s, e in spans)

    async def _queues_are_done(self, topic: Topic, part: StorageTopic) -> bool:
        for queue in self._catalogue.internal_topics():
            own = queue.part(part.ordinal) if queue.main_topic_id == topic.topic_id else None
            if own is None:
                continue
            floors = await done_below(self._store, queue.group_id, own)
            ends = [self._log.span(stream)[1] for stream in own.streams()]
            if any(floor < end for floor, end in zip(floors, ends, strict=True)):
                return False
        return True
