"""Enforces retention: at start, then at intervals, topic after topic.

A limit of bytes applies to the whole topic: the newest storage topic uses it first, older ones
share the rest. Invariant: one topic at a time, so that retention never competes with itself for the
disk. When the disk has no room for a deletion, it is retried at the next interval. If the wall
clock ran ahead of the time that passed since the start, nothing is deleted for its age: a clock
that was set wrong must not delete young records. Until the clock is set back, or the next start
accepts it, only bounds on bytes are enforced. The readers of a topic are told before its records
are deleted. The log chooses the segments.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from dss_core.errors import DiskFull, Overloaded, StreamNotFound
from dss_core.ids import StreamId
from dss_core.progress import Range
from dssd.clock import Clock
from dssd.limits import RETENTION_INTERVAL_S
from dssd.log.port import AboutToGo, Expiring
from dssd.topics.catalogue import Catalogue, StorageTopic, Topic

CLOCK_JUMP_MS = 3_600 * 1_000
"""If the wall clock gains more than this on the monotonic clock, one of its readings was wrong:
nothing is deleted by age then."""


_LOG = logging.getLogger(__name__)


def shares(
    topic: Topic, retention_bytes: int | None, kept_bytes: Callable[[int], int]
) -> list[tuple[StorageTopic, int | None]]:
    """The bytes to keep of each storage topic, oldest first; all without a limit."""
    left = retention_bytes
    shared: list[tuple[StorageTopic, int | None]] = []
    for part in reversed(topic.storage_topics):
        shared.append((part, left))
        if left is not None and part is not topic.storage_topics[0]:
            left = max(0, left - kept_bytes(part.storage_topic_id))
    return shared[::-1]


class Expires(Protocol):
    """What who looks ahead asks of the log."""

    def kept_bytes(self, storage_topic_id: int) -> int:
        """Bytes of its files that hold records which are kept."""

    async def expiring(
        self,
        storage_topic_id: int,
        retention_ms: int | None,
        retention_bytes: int | None,
        now_us: int,
    ) -> Expiring:
        """What a retention would take now; nothing is deleted."""


class Trimmed(Protocol):
    """What retention asks of the log."""

    def kept_bytes(self, storage_topic_id: int) -> int:
        """Bytes of its files that hold records which are kept."""

    async def enforce_retention(
        self,
        storage_topic_id: int,
        retention_ms: int | None,
        retention_bytes: int | None,
        now_us: int,
        about_to_go: AboutToGo | None = None,
    ) -> int:
        """Drop whole segments that are too old or too many; returns how many went."""


class Readers(Protocol):
    """Readers of topics, called before retention deletes records."""

    async def about_to_go(self, topic: Topic, going: Mapping[StreamId, Range]) -> None:
        """These offsets are about to be deleted; called again when the deletion is retried."""


class Collects(Protocol):
    """Called after a round, if the clock is trusted."""

    async def collect(self) -> int:
        """Remove storage topics without records; returns how many."""


class RetentionSchedule:
    """Run it as a task; it ends only by cancellation."""

    def __init__(
        self,
        catalogue: Catalogue,
        log: Trimmed,
        clock: Clock,
        readers: Readers,
        emptied: Collects | None = None,
    ) -> None:
        self._emptied = emptied
        self._catalogue = catalogue
        self._log = log
        self._readers = readers
        self._clock = clock
        self._ahead_at_start_ms = self._wall_ahead_ms()
        self._trusts_wall = True
        self._enforcing = asyncio.Lock()

    def trusts_wall(self) -> bool:
        """Whether records are deleted for their age now."""
        return self._trusts_wall

    async def run(self) -> None:
        """Enforce the retention of all topics, again and again."""
        while True:
            await self.enforce()
            await asyncio.sleep(RETENTION_INTERVAL_S)

    async def enforce(self) -> int:
        """Enforce the retention of all topics once; returns how many segments went."""
        async with self._enforcing:
            return await self._enforced()

    async def _enforced(self) -> int:
        dropped = 0
        self._check_wall()
        for topic in self._catalogue.topics():
            retention_ms = topic.retention_ms if self._trusts_wall else None
            if retention_ms is None and topic.retention_bytes is None:
                continue
            try:
                dropped += await self._enforce_on(topic, retention_ms)
            except (DiskFull, Overloaded) as error:
                _LOG.warning(
                    "retention of topic %s is tried again later: %s",
                    topic.name,
                    error,
                    extra={"event": "retention.later"},
                )
        if self._emptied is not None and self._trusts_wall:
            await self._emptied.collect()
        return dropped

    def _wall_ahead_ms(self) -> int:
        return self._clock.wall_us() // 1_000 - self._clock.now_ms()

    def _check_wall(self) -> None:
        ahead_ms = self._wall_ahead_ms() - self._ahead_at_start_ms
        trusts_wall = ahead_ms <= CLOCK_JUMP_MS
        if self._trusts_wall and not trusts_wall:
            _LOG.warning(
                "the clock jumped ahead by %d s: nothing is deleted for its age until it is set "
                "back, or the daemon is started again",
                ahead_ms // 1_000,
                extra={"event": "clock.jumped"},
            )
        self._trusts_wall = trusts_wall

    async def _enforce_on(self, topic: Topic, retention_ms: int | None) -> int:
        dropped = 0
        try:
            for part, share_bytes in shares(topic, topic.retention_bytes, self._log.kept_bytes):
                dropped += await self._log.enforce_retention(
                    part.storage_topic_id,
                    retention_ms,
                    share_bytes,
                    self._clock.wall_us(),
                    partial(self._readers.about_to_go, topic),
                )
        except StreamNotFound:  # the topic was removed meanwhile
            return dropped
        return dropped
