"""Makes the queues of a group's streams before its leader hears of them.

Changes of topics are told in their order: a new or grown topic once its queues are made, and later
changes after it. Each leader has a task for this, so a full disk or a busy catalogue holds up
neither leaders nor other groups. Invariant: the leader is told of no stream without its queues.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, Protocol

from dss_core.errors import DiskFull, GroupNotFound, TopicNotFound
from dssd.limits import FULL_DISK_RETRY_S
from dssd.topics.model import Topic


class MakesQueues(Protocol):
    """What this asks of the catalogue."""

    async def make_queues(self, group_id: int, topic: Topic) -> None:
        """Make the queues of the topic's streams for a group, as far as they are missing."""


class LaneTopics:
    """The topics of one group that has queues."""

    def __init__(
        self,
        group_id: int,
        catalogue: MakesQueues,
        tell: Callable[[Topic, bool], None],
        are_wanted: Callable[[], bool],
    ) -> None:
        self._group_id = group_id
        self._are_wanted = are_wanted
        self._catalogue = catalogue
        self._tell = tell
        self._changed: deque[tuple[Topic, bool]] = deque()
        self._bell = asyncio.Event()

    def change(self, topic: Topic, removed: bool) -> None:
        """A topic appeared, changed or went."""
        self._changed.append((topic, removed))
        self._bell.set()

    async def make(self, topic: Topic) -> None:
        """Make the queues of a topic, unless it was removed or the group lost its queues.


        Raises:
            DiskFull: they need room.
        """
        if not self._are_wanted():
            return
        with suppress(GroupNotFound, TopicNotFound):
            await self._catalogue.make_queues(self._group_id, topic)

    async def run(self) -> NoReturn:
        """Tell of what changes, until cancelled."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            while self._changed:
                topic, removed = self._changed.popleft()
                if not removed:
                    await self.make_with_patience(topic)
                self._tell(topic, removed)

    async def make_with_patience(self, topic: Topic) -> None:
        """Make them as soon as there is room."""
        while True:
            try:
                await self.make(topic)
            except DiskFull:
                await asyncio.sleep(FULL_DISK_RETRY_S)
            else:
                return
