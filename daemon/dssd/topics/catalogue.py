"""The catalogue of topics: answers from memory, changes through the store.

Invariant: memory equals the committed rows, and no two topics own one subject. A change is
committed first, then applied to the log, then to memory, then the watchers are told; it runs to its
end even if its caller goes away. The catalogue must not know groups or sessions: they watch it.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol

from dss_core.errors import StreamNotFound, TopicExists, TopicNotFound, TopicsOverlap
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId, StreamName
from dssd.listeners import Listeners
from dssd.loop_yield import LoopTurn
from dssd.store.paging import scan_all
from dssd.store.port import Absent, Delete, Exists, PreconditionFailed, Put, Store, Write
from dssd.store.rows import StorageTopicRow, TopicNameRow, TopicRow
from dssd.store.uninterrupted import finished
from dssd.topics.model import NewTopic, StorageTopic, Topic

__all__ = ["Catalogue", "NewTopic", "StorageTopic", "Topic"]

Changed = Callable[[Topic, bool], None]
"""Told of a topic, and whether it was removed."""

ANY_LEVEL = "+"

STORAGE_TOPIC_ID_MAX = (1 << 32) - 1
"""Frames have 32 bits for it."""


class StreamKeeper(Protocol):
    """What the catalogue asks of the log."""

    def open_storage_topic(self, storage_topic_id: int, partitions: int) -> None:
        """Make the streams of a new storage topic appendable."""

    async def remove_storage_topic(self, storage_topic_id: int) -> None:
        """Delete its files and rows."""


class Catalogue:
    """Built by `open`; lives as long as the daemon."""

    def __init__(self, store: Store, log: StreamKeeper, wall_ms: Callable[[], int]) -> None:
        self._store = store
        self._log = log
        self._wall_ms = wall_ms
        self._by_name: dict[str, Topic] = {}
        self._by_storage_topic: dict[int, tuple[Topic, StorageTopic]] = {}
        self._by_first_level: dict[str, dict[str, Topic]] = {}
        """By how a pattern begins, then by name; those that begin with a wildcard under ``+``."""
        self._watchers: Listeners[tuple[Topic, bool]] = Listeners()
        self._changing = asyncio.Lock()

    @classmethod
    async def open(
        cls, store: Store, log: StreamKeeper, *, wall_ms: Callable[[], int] | None = None
    ) -> "Catalogue":
        """Read the topics from the store. The log has opened their storage topics already."""
        catalogue = cls(store, log, wall_ms or _wall_ms)
        rows = {found.row.topic_id: found.row for found in await scan_all(store, TopicRow)}
        parts = [found.row for found in await scan_all(store, StorageTopicRow)]
        for topic_id, own in groupby(parts, key=lambda part: part.topic_id):
            catalogue._enter(Topic.from_rows(rows.pop(topic_id), list(own)))
        assert not rows, f"topics without a storage topic: {sorted(rows)}"
        return catalogue

    def get(self, name: str) -> Topic:
        """The topic of this name.

        Raises:
            TopicNotFound: there is none.
        """
        topic = self.find(name)
        if topic is None:
            raise TopicNotFound(topic=name)
        return topic

    def find(self, name: str) -> Topic | None:
        """The topic of this name, if there is one."""
        return self._by_name.get(name)

    def topics(self) -> tuple[Topic, ...]:
        """All topics, by name."""
        return tuple(self._by_name[name] for name in sorted(self._by_name))

    def id_of(self, name: StreamName) -> StreamId:
        """The stream that people write like this.

        Raises:
            StreamNotFound: there is none.
        """
        topic = self._by_name.get(name.topic)
        if topic is None or not 0 <= name.ordinal < len(topic.storage_topics):
            raise StreamNotFound(stream=name)
        part = topic.storage_topics[name.ordinal]
        if not 0 <= name.partition < part.partitions:
            raise StreamNotFound(stream=name)
        return StreamId(part.storage_topic_id, name.partition)

    def name_of(self, stream: StreamId) -> StreamName:
        """How people write the stream.

        Raises:
            StreamNotFound: there is none.
        """
        topic, part = self._owner(stream)
        return StreamName(topic.name, part.ordinal, stream.partition)

    def topic_of(self, stream: StreamId) -> Topic:
        """The topic that the stream belongs to.

        Raises:
            StreamNotFound: there is none.
        """
        return self._owner(stream)[0]

    def has_storage_topic(self, storage_topic_id: int) -> bool:
        """Whether some topic has this storage topic; once it is removed, none ever has again."""
        return storage_topic_id in self._by_storage_topic

    def meeting(self, wanted: TopicFilter) -> tuple[Topic, ...]:
        """The topics that have a pattern overlapping the filter, by name."""
        return tuple(
            topic
            for topic in self._perhaps_meeting(wanted)
            if any(pattern.overlaps(wanted) for pattern in topic.patterns)
        )

    def _perhaps_meeting(self, wanted: TopicFilter) -> list[Topic]:
        """The topics that have a pattern which may begin like the filter, by name."""
        first = _first_level(wanted)
        if first == ANY_LEVEL:
            return list(self.topics())
        found = self._by_first_level.get(first, {}) | self._by_first_level.get(ANY_LEVEL, {})
        return [found[name] for name in sorted(found)]

    def watch(self, changed: Changed) -> Callable[[], None]:
        """Call ``changed(topic, removed)`` after each change; returns how to stop watching."""
        return self._watchers.add(lambda told: changed(*told))

    async def create(self, new: NewTopic) -> Topic:
        """Create a topic with one storage topic; returns it, or the existing one if asked to.

        Raises:
            IllegalName, IllegalFilter, IllegalArgument: it can never be a topic.
            TopicExists: the name is taken.
            TopicsOverlap: another topic owns some of its subjects.
        """
        new.check()
        return await finished(self._create(new), name=f"create topic {new.name}")

    async def remove(self, name: str, *, topic_id: int | None = None) -> None:
        """Remove a topic, its rows, then its files; with an id, only the topic that has it.

        Raises:
            TopicNotFound: there is none.
        """
        await finished(self._remove(name, topic_id), name=f"remove topic {name}")

    def note_edited(self, row: TopicRow) -> None:
        """A commit edited the row of a topic; a concurrent removal wins."""
        topic = self._by_name.get(row.name)
        if topic is None or topic.topic_id != row.topic_id:
            return
        edited = topic.edited(row)
        self._enter(edited)
        self._tell(edited, removed=False)

    async def _create(self, new: NewTopic) -> Topic:
        async with self._changing:
            existing = self._by_name.get(new.name)
            if existing is not None and new.if_not_exists:
                return existing
            if existing is not None:
                raise TopicExists(topic=new.name)
            await self._refuse_overlap(new.parsed_patterns())
            topic = await self._built(new)
            await self._commit_new(topic)
            for part in topic.storage_topics:
                self._log.open_storage_topic(part.storage_topic_id, part.partitions)
            self._enter(topic)
            self._tell(topic, removed=False)
            return topic

    async def _built(self, new: NewTopic) -> Topic:
        topic_id = await self._store.next_id()
        storage_topic_id = await self._store.next_id()
        assert storage_topic_id <= STORAGE_TOPIC_ID_MAX, storage_topic_id
        return Topic(
            topic_id=topic_id,
            name=new.name,
            patterns=new.parsed_patterns(),
            router=new.router,
            durability=new.durability,
            # Not 1: a producer of a removed topic must notice that the next of its name is another.
            topic_epoch=storage_topic_id,
            produce_ordinal=0,
            # Not 0: no plan for a topic that was removed fits the next of its name.
            revision=topic_id,
            storage_topics=(
                StorageTopic(storage_topic_id, 0, new.partitions, new.factor, ends=None),
            ),
            retention_ms=new.retention_ms,
            retention_bytes=new.retention_bytes,
            created_at_ms=self._wall_ms(),
        )

    async def _commit_new(self, topic: Topic) -> None:
        writes: list[Write] = [Put(topic.to_row()), Put(TopicNameRow(topic.name, topic.topic_id))]
        writes += [
            Put(part.to_row(topic.topic_id, [0] * part.partitions)) for part in topic.storage_topics
        ]
        try:
            await self._store.commit(writes, [Absent(TopicNameRow, (topic.name,))])
        except PreconditionFailed as failed:
            raise TopicExists(topic=topic.name) from failed

    async def _remove(self, name: str, topic_id: int | None) -> None:
        async with self._changing:
            topic = self.get(name)
            if topic_id not in (None, topic.topic_id):
                raise TopicNotFound(topic=name)
            await self._commit_removal(topic)
            self._leave(topic)
            self._tell(topic, removed=True)
            # If the daemon dies before this is done, the log finds files of a storage topic
            # without a row when it opens, and finishes the removal.
            for part in topic.storage_topics:
                await self._log.remove_storage_topic(part.storage_topic_id)

    async def _commit_removal(self, topic: Topic) -> None:
        deletes: list[Write] = [
            Delete(TopicRow, (topic.topic_id,)),
            Delete(TopicNameRow, (topic.name,)),
        ]
        deletes += [
            Delete(StorageTopicRow, (topic.topic_id, part.ordinal)) for part in topic.storage_topics
        ]
        try:
            await self._store.commit(deletes, [Exists(TopicRow, (topic.topic_id,))])
        except PreconditionFailed as failed:
            raise TopicNotFound(topic=topic.name) from failed

    async def _refuse_overlap(self, patterns: Sequence[TopicFilter]) -> None:
        """Refuse a subject that has an owner. Nothing changes meanwhile: `_changing` is held."""
        turn = LoopTurn()
        for ours in patterns:
            for topic in self._perhaps_meeting(ours):
                await turn.give_way()
                for theirs in topic.patterns:
                    if ours.overlaps(theirs):
                        raise TopicsOverlap(
                            pattern=ours.text, other=topic.name, other_pattern=theirs.text
                        )

    def _owner(self, stream: StreamId) -> tuple[Topic, StorageTopic]:
        owner = self._by_storage_topic.get(stream.storage_topic_id)
        if owner is None or not 0 <= stream.partition < owner[1].partitions:
            raise StreamNotFound(stream=stream)
        return owner

    def _enter(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        for pattern in topic.patterns:
            self._by_first_level.setdefault(_first_level(pattern), {})[topic.name] = topic
        for part in topic.storage_topics:
            self._by_storage_topic[part.storage_topic_id] = (topic, part)

    def _leave(self, topic: Topic) -> None:
        del self._by_name[topic.name]
        for first in {_first_level(pattern) for pattern in topic.patterns}:
            named = self._by_first_level[first]
            del named[topic.name]
            if not named:
                del self._by_first_level[first]
        for part in topic.storage_topics:
            del self._by_storage_topic[part.storage_topic_id]

    def _tell(self, topic: Topic, *, removed: bool) -> None:
        self._watchers.tell((topic, removed))


def _first_level(wanted: TopicFilter) -> str:
    """The first level of what matches a filter, or `ANY_LEVEL`."""
    return wanted.levels[0] if wanted.levels else ANY_LEVEL


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
