"""When retention is enforced: at start, then at intervals, topic after topic.

Invariant: one topic at a time, so that retention never competes with itself for the disk. How
segments are chosen is the log's business.
"""

import asyncio
from typing import Protocol

from dss_core.errors import StreamNotFound
from dssd.clock import Clock
from dssd.limits import RETENTION_INTERVAL_S
from dssd.topics.catalogue import Catalogue, Topic


class Trimmed(Protocol):
    """What retention asks of the log."""

    async def enforce_retention(
        self,
        storage_topic_id: int,
        retention_ms: int | None,
        retention_bytes: int | None,
        now_us: int,
    ) -> int:
        """Drop whole segments that are too old or too many; returns how many went."""


class RetentionSchedule:
    """Run it as a task; it ends only by cancellation."""

    def __init__(self, catalogue: Catalogue, log: Trimmed, clock: Clock) -> None:
        self._catalogue = catalogue
        self._log = log
        self._clock = clock

    async def run(self) -> None:
        """Enforce the retention of all topics, again and again."""
        while True:
            await self.enforce()
            await asyncio.sleep(RETENTION_INTERVAL_S)

    async def enforce(self) -> int:
        """Enforce the retention of all topics once; returns how many segments went."""
        dropped = 0
        for topic in self._catalogue.topics():
            if topic.retention_ms is not None or topic.retention_bytes is not None:
                dropped += await self._enforce_on(topic)
        return dropped

    async def _enforce_on(self, topic: Topic) -> int:
        dropped = 0
        for part in topic.storage_topics:
            try:
                dropped += await self._log.enforce_retention(
                    part.storage_topic_id,
                    topic.retention_ms,
                    topic.retention_bytes,
                    self._clock.wall_us(),
                )
            except StreamNotFound:  # the topic was removed meanwhile
                return dropped
        return dropped
