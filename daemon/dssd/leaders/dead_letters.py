"""Where the dead letters of a group lie, for reading them in bulk.

Invariant: the located entries were dead letters at the time of the look, and later ones are not
included; so a copy of them is a snapshot. It starts no leader, changes nothing, and reads no
record.
"""

from collections.abc import Sequence
from contextlib import suppress
from shlex import quote
from typing import NamedTuple

from dss_core.errors import (
    DeadLettersScattered,
    NoneIsDead,
    StreamNotFound,
    TopicNotInGroup,
)
from dss_core.ids import StreamId, StreamName
from dss_core.lane import DEAD
from dss_core.progress import Ranges, clipped
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.machines.queues import QueueState
from dssd.queues.looking import waiting_in
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue, Topic

DEAD_PIECES_MAX = 10_000
"""How many pieces one reading may have: a manifest names each, in a megabyte of text for all. There
are so many only if dead letters were redriven or discarded one by one."""


class DeadPiece(NamedTuple):
    """Dead letters that follow each other in a queue."""

    name: StreamName
    """The stream whose lane holds them; some may be of a stream before it."""
    stream: StreamId
    """The queue that the offsets are of."""
    start: int
    end: int
    bytes: int
    """About how many bytes."""


class DeadLetterPlaces:
    """Finds the dead letters of groups."""

    def __init__(self, groups: Groups, registry: Registry, catalogue: Catalogue, log: Log) -> None:
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue
        self._log = log

    def group(self, text: str) -> GroupRow:
        """The group that is named.

        Raises:
            GroupNotFound, GroupAmbiguous, IllegalName: there is none.
            NoneIsDead: it has no queues.
        """
        found = self._groups.find(text)
        if not found.max_deliver:
            command = f"dssctl groups edit {quote(found.full_name)} --max-deliver 5"
            raise NoneIsDead(group=found.full_name, command=command)
        return found

    def queue_of(self, group: str, name: StreamName) -> StreamId:
        """The stream that holds the dead letters of a stream.

        Raises:
            StreamNotFound: there is no such stream, or the group does not read it.
            GroupNotFound, GroupAmbiguous, IllegalName, NoneIsDead: as `group`.
        """
        found = self.group(group)
        queues = self._catalogue.queues_of(found.group_id, self._catalogue.id_of(name))
        if queues is None:
            raise StreamNotFound(stream=name)
        return queues[DEAD - 1]

    async def located(
        self, group: str, topic: Topic, start_us: int | None, end_us: int | None
    ) -> list[DeadPiece]:
        """The dead letters of a topic in a group, by time of death; older storage topics first.

        Raises:
            GroupNotFound, GroupAmbiguous, IllegalName, NoneIsDead: as `group`.
            TopicNotInGroup: the group does not read the topic.
            DeadLettersScattered: there are too many pieces.
        """
        row = self.group(group)
        turn = LoopTurn()
        pieces: list[DeadPiece] = []
        for name, queue in await self._queues(row, topic, turn):
            await turn.give_way()
            with suppress(StreamNotFound):  # the topic or the group is being removed
                pieces += await self._pieces(name, queue, start_us, end_us)
        if len(pieces) > DEAD_PIECES_MAX:
            raise DeadLettersScattered(
                group=row.full_name,
                topic=topic.name,
                pieces=f"{len(pieces):,}",
                limit=f"{DEAD_PIECES_MAX:,}",
                command=f"dssctl dlq export {quote(row.full_name)} FILE",
            )
        return pieces

    async def _queues(
        self, group: GroupRow, topic: Topic, turn: LoopTurn
    ) -> Sequence[tuple[StreamName, QueueState]]:
        """The dead letters of each stream of the topic, as its holder reported last."""
        view = await self._registry.view(group, turn)
        topics: set[str] = set()
        found: list[tuple[StreamName, QueueState]] = []
        for each in view.streams:
            await turn.give_way()
            with suppress(StreamNotFound):  # its topic was removed meanwhile
                name = self._catalogue.name_of(each.stream)
                topics.add(name.topic)
                if name.topic == topic.name and each.queues:
                    found.append((name, each.queues[DEAD - 1]))
        if topic.name not in topics:
            read = ", ".join(sorted(topics)) or "nothing yet"
            raise TopicNotInGroup(group=group.full_name, topic=topic.name, topics=read)
        return sorted(found, key=lambda each: each[1].stream)

    async def _pieces(
        self, name: StreamName, queue: QueueState, start_us: int | None, end_us: int | None
    ) -> list[DeadPiece]:
        log, stream = self._log, queue.stream
        start = 0 if start_us is None else await log.locate(stream, start_us)
        waiting: Ranges = waiting_in(log, queue, start)
        if end_us is not None:
            waiting = tuple(clipped(waiting, 0, await log.locate(stream, end_us)))
        bounds = log.bounds(stream)
        record_bytes = bounds.bytes / max(1, bounds.end - bounds.start)
        return [
            DeadPiece(name, stream, low, high, int(record_bytes * (high - low)))
            for low, high in waiting
        ]
