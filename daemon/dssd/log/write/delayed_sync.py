"""Raises ceilings and schedules syncs for frames that were reported before they are durable.

The ceilings of their streams are raised ahead of use. Their file is synced and marked `OS_SYNC_S`
after the first such frame. The writer waits for neither: a frame that ends above its ceiling is
synced before it is reported.

Invariant: the writer learns a ceiling only after the store has it. The housekeeper does all work,
one job at a time; this module decides when, and must not know files.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from dss_core.errors import DiskFull, Overloaded
from dssd.log.segment.file import SegmentId
from dssd.log.settings import LogSettings
from dssd.log.topic_state import Segment, StorageTopicState
from dssd.log.write.writer_thread import WriterThread
from dssd.store.port import Put, Store
from dssd.store.rows import CeilingRow

CEILING_RETRY_S = 1.0
"""How long after a full disk prevented it the raising of ceilings is tried again."""


Job = Callable[[], Awaitable[None]]


class DelayedSync:
    """Runs on the event loop.

    ``submit`` queues a job of the housekeeper and returns whether there was room; ``mark`` makes it
    sync and mark a file.
    """

    def __init__(
        self,
        *,
        store: Store,
        writer: WriterThread,
        settings: LogSettings,
        submit: Callable[[Job], bool],
        mark: Callable[[StorageTopicState, Segment], None],
    ) -> None:
        self._store = store
        self._writer = writer
        self._settings = settings
        self._submit = submit
        self._mark = mark
        self._timers: dict[SegmentId, asyncio.TimerHandle] = {}
        self._stopped = False

    def stop(self) -> None:
        """Start nothing any more."""
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    # Syncing

    def sync_soon(self, state: StorageTopicState, segment: Segment) -> None:
        """Schedule a sync of a file that holds frames that are not durable."""
        if segment.id not in self._timers and not self._stopped:
            loop = asyncio.get_running_loop()
            due = partial(self._sync, state, segment)
            self._timers[segment.id] = loop.call_later(self._settings.os_sync_s, due)

    def _sync(self, state: StorageTopicState, segment: Segment) -> None:
        del self._timers[segment.id]
        if segment is state.last and segment.synced < segment.size and not state.removed:
            self._mark(state, segment)
            if not segment.marking:
                self.sync_soon(state, segment)

    # Ceilings

    def stored(self, state: StorageTopicState, partition: int, end: int) -> None:
        """Raise a low ceiling, now that frames that may be lost reach ``end``."""
        ceilings = state.ceilings
        if ceilings.is_low(partition, end) and not ceilings.raising:
            ceilings.raising = self._submit(partial(self._raise, state))

    async def _raise(self, state: StorageTopicState) -> None:
        """Raise the low ceilings of a topic; until that succeeds, its frames are synced."""
        ceilings = state.ceilings
        loop = asyncio.get_running_loop()
        if state.removed:
            return
        raised = ceilings.raised([stream.end for stream in state.streams], loop.time())
        try:
            await self._store.commit(rows_of(state.storage_topic_id, raised))
        except (DiskFull, Overloaded):
            loop.call_later(CEILING_RETRY_S, _may_raise, state)
            return
        ceilings.store(raised)
        await self._writer.raise_ceilings(state.storage_topic_id, raised)
        ceilings.raising = False


def rows_of(storage_topic_id: int, ceilings: Mapping[int, int]) -> list[Put]:
    """Ceilings by partition, as the store keeps them."""
    return [Put(CeilingRow(storage_topic_id, partition, at)) for partition, at in ceilings.items()]


def _may_raise(state: StorageTopicState) -> None:
    state.ceilings.raising = False
