"""The one place in the daemon that appends to the queues of groups: decision 53.

A lane is named by its retry queue, as each group that reads a stream has a lane of its own. The
epoch of a lane is that of the grant under which it was opened last. Invariant: when `take_over`
returns, all appends of lower epochs are answered, and no more of them begin. So its caller then
reads all that earlier holders ever appended. Epochs of lanes are kept until their queues are
removed: otherwise an earlier holder could append again. This module must not know what an entry is.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from dss_core.errors import GrantNotHeld
from dss_core.ids import StreamId
from dssd.log.port import Append, Appended, Log
from dssd.queues.failures import FailureCounts
from dssd.topics.model import Topic

QUEUE_JOBS_MAX = 16
"""How many moves and openings of lanes run at a time in the daemon: each holds a read and its
gathered entries. They wait for one group commit together."""


REHOMINGS_MAX = 4
"""How many lanes are re-homed at a time, each with some megabytes gathered: even one keeps the loop
busy, except during its syncs."""


Results = list[Appended | BaseException]


class _Writer:
    """Who may append to the queues of one lane, and how many appends are not answered yet."""

    __slots__ = ("_idle", "_under_way", "epoch")

    def __init__(self) -> None:
        self.epoch = 0
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def begun(self) -> None:
        """An append was begun."""
        self._under_way += 1
        self._idle.clear()

    def answered(self) -> None:
        """An append was answered."""
        self._under_way -= 1
        if not self._under_way:
            self._idle.set()

    async def idle(self) -> None:
        """All appends are answered."""
        await self._idle.wait()


class QueueWriters:
    """Lives as long as the daemon."""

    def __init__(self, log: Log) -> None:
        self.room = asyncio.Semaphore(QUEUE_JOBS_MAX)
        """Each read or gathering for a queue holds a place."""
        self.rehoming = asyncio.Semaphore(REHOMINGS_MAX)
        self.failures = FailureCounts()
        self._log = log
        self._lanes: dict[StreamId, _Writer] = {}

    async def take_over(self, retry: StreamId, epoch: int) -> bool:
        """Fence earlier holders of the lane; False: there is a later one."""
        writer = self._lanes.setdefault(retry, _Writer())
        if epoch < writer.epoch:
            return False
        writer.epoch = epoch
        await writer.idle()
        return writer.epoch == epoch

    async def append(self, retry: StreamId, epoch: int, appends: Sequence[Append]) -> Results:
        """As `Log.append`; GrantNotHeld for all where the lane was taken over.

        An append that was begun is completed even if its caller is cancelled.
        """
        writer = self._lanes.get(retry)
        if writer is None or writer.epoch != epoch:
            return [GrantNotHeld(grant=epoch) for _ in appends]
        done: asyncio.Future[Results] = asyncio.get_running_loop().create_future()
        writer.begun()
        self._log.begin_append(appends, partial(_answered, writer, done))
        return await done

    def topic_changed(self, topic: Topic, removed: bool) -> None:
        """A topic of the catalogue changed; lanes whose queues were in it are forgotten."""
        if removed:
            gone = {part.storage_topic_id for part in topic.storage_topics}
            kept = self._lanes.items()
            self._lanes = {lane: each for lane, each in kept if lane.storage_topic_id not in gone}


def _answered(writer: _Writer, done: "asyncio.Future[Results]", results: Results) -> None:
    writer.answered()
    if not done.done():
        done.set_result(results)
