"""Tells when the queues of a stream are full, and when they have room again.

With full queues, records that fail stay in the stream, and no event comes, as nothing becomes a
dead letter any more. So this looks for full queues, whether anybody holds the lane or not.
Invariant: for each stream of a group there is one event when its queues are full, and one when they
have room again; after a restart there is one more event for queues that are full. This changes
nothing and starts no leader.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import NoReturn

from dss_core.counted import bytes_text, counted
from dss_core.errors import GroupDestroyed, GroupNotFound, StreamNotFound
from dss_core.ids import StreamId
from dss_core.lane import DEAD
from dssd.events.kinds import QUEUE_FULL, QUEUE_ROOM
from dssd.events.model import GROUP_FIELD, Event, EventKind, Note
from dssd.leaders.groups import Groups
from dssd.leaders.lag import Queued, queued_in
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.machines.leader.events import StreamView
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue

QUEUE_ROOM_EVERY_S = 5.0
"""The pause between looks: as long as a person waits for a list to change."""

QUEUE_ROOM_PERCENT = 90
"""Queues have room again below this percentage of their bound. So queues that fill up again as fast
as records are redriven cause one event only."""


class QueueRoom:
    """Run it as a task; it ends only by cancellation."""

    def __init__(
        self, catalogue: Catalogue, groups: Groups, registry: Registry, log: Log, note: Note
    ) -> None:
        self._catalogue = catalogue
        self._groups = groups
        self._registry = registry
        self._log = log
        self._note = note
        self._full: set[tuple[int, StreamId]] = set()
        """Groups and streams with an event of full queues, and none of room since."""

    async def run(self) -> NoReturn:
        """Look again and again."""
        while True:
            await asyncio.sleep(QUEUE_ROOM_EVERY_S)
            await self.look()

    async def look(self) -> None:
        """Look at every group with queues once."""
        turn = LoopTurn()
        known: set[tuple[int, StreamId]] = set()
        for group_id in dict.fromkeys(each.group_id for each in self._catalogue.internal_topics()):
            await turn.give_way()
            with suppress(GroupDestroyed, GroupNotFound):  # it was removed meanwhile
                group = self._groups.get(group_id)
                if self._may_be_full(group) or any(own == group_id for own, _ in self._full):
                    known |= await self._look_at(group, turn)
        self._full = known

    def _may_be_full(self, group: GroupRow) -> bool:
        """Whether the queues of a stream may be full, counting done entries that are not deleted
        yet. A cheap check, so that the progress of few groups is read."""
        held = (self._held(*queues) for queues in self._queues(group.group_id))
        return any(each.fills(group) for each in held)

    def _queues(self, group_id: int) -> Iterator[tuple[StreamId, ...]]:
        own = [each for each in self._catalogue.internal_topics() if each.group_id == group_id]
        for dead in own:
            if dead.level != DEAD:
                continue
            for retry in own:
                if retry.level != DEAD and retry.main_topic_id == dead.main_topic_id:
                    yield from zip(retry.streams(), dead.streams(), strict=False)

    def _held(self, *queues: StreamId) -> Queued:
        records = size = 0
        with suppress(StreamNotFound):  # it was removed meanwhile
            for queue in queues:
                bounds = self._log.bounds(queue)
                records += bounds.end - bounds.start
                size += bounds.bytes
        return Queued(0, 0, records, size)

    async def _look_at(self, group: GroupRow, turn: LoopTurn) -> set[tuple[int, StreamId]]:
        """The streams whose queues are full now; tells of each new one."""
        view = await self._registry.view(group, turn)
        full: set[tuple[int, StreamId]] = set()
        for each in view.streams:
            await turn.give_way()
            with suppress(StreamNotFound):
                if each.queues and self._judge(group, each):
                    full.add((group.group_id, each.stream))
        return full

    def _judge(self, group: GroupRow, view: StreamView) -> bool:
        """Whether the queues are full; once that was reported, whether they still have no room.

        Raises:
            StreamNotFound: its topic was removed.
        """
        queued = queued_in(view.queues, self._log)
        was_full = (group.group_id, view.stream) in self._full
        is_full = queued.fills(group, QUEUE_ROOM_PERCENT if was_full else 100)
        if is_full != was_full:
            name = str(self._catalogue.name_of(view.stream))
            self._note(_event(QUEUE_FULL if is_full else QUEUE_ROOM, group, name, queued))
        return is_full


def _event(kind: EventKind, group: GroupRow, stream: str, queued: Queued) -> Event:
    fields = {
        GROUP_FIELD: group.full_name,
        "stream": stream,
        "level": "dead" if queued.dead >= queued.retrying else "retry",
        "records": str(queued.fullest),
        "bytes": str(queued.fullest_bytes),
        "retrying": str(queued.retrying),
        "dead": str(queued.dead),
    }
    return Event(kind, group.full_name, _sentence(kind, group, stream, queued), fields)


def _sentence(kind: EventKind, group: GroupRow, stream: str, queued: Queued) -> str:
    held = (
        f"{counted(queued.fullest, 'record')}, {bytes_text(queued.fullest_bytes)}: "
        f"{queued.dead:,} dead, {queued.retrying:,} to come again"
    )
    if kind is QUEUE_ROOM:
        return f"The queues of {stream} have room again; they hold {held}."
    may = f"{counted(group.queue_records, 'record')} or {bytes_text(group.queue_bytes)}"
    stays = "a failed record stays in its place there, and holds up its key"
    if not group.ordered:
        stays = "a failed record comes again in its place there"
    return f"The queues of {stream} are full, and {stays}. They hold {held}; they may hold {may}."
