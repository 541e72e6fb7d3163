"""Waits until nobody holds a stream of a group, and finds the queues to lend the streams with then.

Invariant: the waiter is woken even if the leader ends first. This module must not know what is done
while nobody holds a stream.
"""

import asyncio
from collections.abc import Iterable

from dss_core.ids import StreamId
from dssd.leaders.lanes import NamesQueues
from dssd.leaders.takeover import present_streams
from dssd.machines.leader.events import Parents
from dssd.machines.queues import Queues
from dssd.store.paging import scan_all
from dssd.store.port import Store
from dssd.store.rows import GroupRow, ProgressRow
from dssd.topics.model import Topic


class Waiter:
    """The wait at one leader; one caller at a time."""

    def __init__(self) -> None:
        self._waits: asyncio.Future[bool] | None = None
        self.ended = False

    async def held(self) -> bool:
        """Whether nobody holds a stream now; else the leader ended."""
        if self.ended:
            return False
        self._waits = asyncio.get_running_loop().create_future()
        return await self._waits

    def tell(self, *, held: bool) -> None:
        """Nobody holds a stream, or the leader ends."""
        self.ended = self.ended or not held
        if self._waits is not None and not self._waits.done():
            self._waits.set_result(held)


async def lanes_by_stream(
    store: Store, catalogue: NamesQueues, group: GroupRow, topics: Iterable[Topic]
) -> tuple[tuple[StreamId, Queues, Parents], ...]:
    """The queues and parents of all streams, as the group's row says and as they are stored."""
    found = await scan_all(store, ProgressRow, (group.group_id,))
    rows = {StreamId(each.row.storage_topic_id, each.row.partition): each.row for each in found}
    return tuple(
        (present.stream, present.queues, present.parents)
        for topic in topics
        for present in present_streams(topic, catalogue, group, rows)
    )
