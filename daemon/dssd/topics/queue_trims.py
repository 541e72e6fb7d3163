"""Removes finished entries of groups' queues: at start, then at intervals, queue after queue.

Queues have no retention. Invariant: only whole files are removed, and only after the group's stored
progress covers all their entries and the sources of these. The log names the queues with a
removable file; only their progress is read.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import NoReturn, Protocol

from dss_core.errors import DiskFull, Overloaded, StreamNotFound
from dssd.limits import RETENTION_INTERVAL_S
from dssd.log.port import AskFloors
from dssd.loop_yield import LoopTurn
from dssd.store.paging import scan_all
from dssd.store.port import Store
from dssd.store.rows import ProgressRow
from dssd.topics.catalogue import Catalogue, StorageTopic

_LOG = logging.getLogger(__name__)


class TrimmedBelow(Protocol):
    """What is asked of the log."""

    async def trim_below(self, storage_topic_id: int, ask_floors: AskFloors) -> int:
        """Drop whole segments below the floors; returns how many went."""


class QueueTrims:
    """Run it as a task; it ends only by cancellation."""

    def __init__(self, store: Store, catalogue: Catalogue, log: TrimmedBelow) -> None:
        self._store = store
        self._catalogue = catalogue
        self._log = log

    async def run(self) -> NoReturn:
        """Trim all queues, again and again."""
        while True:
            await self.trim()
            await asyncio.sleep(RETENTION_INTERVAL_S)

    async def trim(self) -> int:
        """Trim all queues once; returns how many segments went."""
        dropped = 0
        turn = LoopTurn()
        for topic in self._catalogue.internal_topics():
            for part in topic.storage_topics:
                await turn.give_way()
                floors = partial(done_below, self._store, topic.group_id, part)
                try:
                    dropped += await self._log.trim_below(part.storage_topic_id, floors)
                except StreamNotFound:  # the topic was removed meanwhile
                    continue
                except (DiskFull, Overloaded) as error:
                    _LOG.warning(
                        "queues in %s are trimmed later: %s",
                        topic.name,
                        error,
                        extra={"event": "queues.trimmed-later"},
                    )
        return dropped


async def done_below(store: Store, group_id: int, queue: StorageTopic) -> Sequence[int]:
    """The offset below which all entries of a queue are finished, by partition; 0 without a row."""
    floors = [0] * queue.partitions
    for found in await scan_all(store, ProgressRow, (group_id, queue.storage_topic_id)):
        floors[found.row.partition] = min(found.row.floor, found.row.applied_end)
    return floors
