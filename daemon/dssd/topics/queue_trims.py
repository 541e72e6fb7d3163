"""Trims the queues of groups behind what is done: at start, then at intervals, queue after queue.

No retention is theirs. Invariant: only whole files go, and of a record no file goes before its
group's stored progress says that it is done, and that the record it was made of is acknowledged.
The log says which queues have a file that could go; only of those the progress is read.
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
    """Below which offset all in a queue is done, by partition; nothing is where there is no row."""
    floors = [0] * queue.partitions
    for found in await scan_all(store, ProgressRow, (group_id, queue.storage_topic_id)):
        floors[found.row.partition] = min(found.row.floor, found.row.applied_end)
    return floors
