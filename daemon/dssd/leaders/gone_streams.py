"""Deletes the rows that groups keep of the streams of removed topics.

When a topic is removed, the groups' rows of its streams are deleted; at a start, all rows of
storage topics that do not exist. Ids of storage topics are never reused, so a row that a crash or a
late commit leaves behind is harmless until the next start.

Invariant: a row of a storage topic that exists is never touched. Rows go in commits of a bounded
size, in a task of their own. This module must not know leaders: they write no row of a stream that
the catalogue does not have any more, so no row comes back behind the collection.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NoReturn

from dss_core.errors import DiskFull
from dssd.leaders.groups import Groups
from dssd.leaders.topic_readers import readers_of
from dssd.limits import FULL_DISK_RETRY_S
from dssd.store.keys import key_of
from dssd.store.port import Delete, Key, Store, Write
from dssd.store.rows import GrantRow, PendingMoveRow, ProgressRow
from dssd.topics.catalogue import Catalogue, Topic

GONE_ROWS_PER_COMMIT_MAX = 512
"""How many rows of removed streams one commit deletes, and one read looks at: some milliseconds,
for which commits of leaders wait."""


_StreamRow = GrantRow | ProgressRow | PendingMoveRow

_KINDS: tuple[type[_StreamRow], ...] = (GrantRow, ProgressRow, PendingMoveRow)
"""The kinds of rows that a group keeps of a stream."""


class GoneStreams:
    """Run it as a task; it ends only by cancellation."""

    def __init__(self, store: Store, catalogue: Catalogue, groups: Groups) -> None:
        self._store = store
        self._catalogue = catalogue
        self._groups = groups
        self._removed: deque[Topic] = deque()
        self._bell = asyncio.Event()
        catalogue.watch(self._topic_changed, internal=True)

    async def run(self) -> NoReturn:
        """Delete the rows that a start finds, then those that each removal leaves."""
        await self.sweep()
        while True:
            await self._bell.wait()
            self._bell.clear()
            await self.collect()

    async def sweep(self) -> int:
        """Delete all rows of storage topics that do not exist; returns how many."""
        return sum([await self._sweep(kind) for kind in _KINDS])

    async def collect(self) -> None:
        """Delete the rows of the topics that were removed since the last call."""
        while self._removed:
            topic = self._removed.popleft()
            readers = [each.group_id for each in await readers_of(topic, self._groups.groups)]
            deletes = _deletes(topic, [topic.group_id] if topic.level else readers)
            while some := list(islice(deletes, GONE_ROWS_PER_COMMIT_MAX)):
                await self._delete(some)

    async def _sweep(self, kind: type[_StreamRow]) -> int:
        count = 0
        after: Key | None = None
        while True:
            page = await self._store.scan(kind, after=after, limit=GONE_ROWS_PER_COMMIT_MAX)
            # The catalogue is asked after the read: a stream has rows only while it is there.
            gone: list[Write] = [
                Delete(kind, key_of(found.row))
                for found in page
                if not self._catalogue.has_storage_topic(found.row.storage_topic_id)
            ]
            if gone:
                await self._delete(gone)
                count += len(gone)
            if len(page) < GONE_ROWS_PER_COMMIT_MAX:
                return count
            after = key_of(page[-1].row)

    async def _delete(self, deletes: list[Write]) -> None:
        while True:
            try:
                await self._store.commit(deletes)
            except DiskFull:
                await asyncio.sleep(FULL_DISK_RETRY_S)
            else:
                return

    def _topic_changed(self, topic: Topic, removed: bool) -> None:
        if removed:
            self._removed.append(topic)
            self._bell.set()


def _deletes(topic: Topic, group_ids: Sequence[int]) -> Iterator[Write]:
    for group_id in group_ids:
        for stream in topic.streams():
            for kind in _KINDS:
                yield Delete(kind, (group_id, *stream))
