"""The catalogue of topics: answers from memory, changes through the store.

Internal topics hold the queues of groups. They live as long as their group and the topic whose
records they hold. They are found by stream, never by name, and listings leave them out.

Invariant: memory equals the committed rows, and no two topics own one subject. A change is
committed first, then applied to the log, then to memory, then the watchers are told; it runs to its
end even if its caller goes away. The catalogue must not know sessions or groups; groups watch it.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from itertools import groupby
from typing import Protocol

from dss_core.errors import (
    GroupNotFound,
    StreamNotFound,
    TopicExists,
    TopicNotFound,
    TopicsOverlap,
)
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId, StreamName
from dssd.listeners import Listeners
from dssd.log.port import Ends
from dssd.loop_yield import LoopTurn
from dssd.store.paging import scan_all
from dssd.store.port import (
    Absent,
    Delete,
    Exists,
    Precondition,
    PreconditionFailed,
    Put,
    Store,
    Write,
)
from dssd.store.rows import GroupRow, StorageTopicRow, TopicNameRow, TopicRow
from dssd.store.uninterrupted import finished
from dssd.topics.growth import next_part, switched, taking_over
from dssd.topics.guard import TopicGuard, Unguarded
from dssd.topics.incarnation import incarnation_of
from dssd.topics.internal import (
    QUEUE_LEVELS,
    InternalTopics,
    grown,
    internal_topic,
    missing_parts,
    refuse_internal,
    shrunk,
)
from dssd.topics.model import NewTopic, StorageTopic, Topic
from dssd.topics.switch_commit import commit_switch
from dssd.topics.topic_writes import deletes, drops, puts

__all__ = ["Catalogue", "NewTopic", "StorageTopic", "Topic"]

Changed = Callable[[Topic, bool], None]
"""Called with a topic, and whether it was removed."""

ANY_LEVEL = "+"

STORAGE_TOPIC_ID_MAX = (1 << 32) - 1
"""Frames have 32 bits for it."""


class StreamKeeper(Protocol):
    """What the catalogue asks of the log."""

    def open_storage_topic(self, storage_topic_id: int, partitions: int) -> None:
        """Make the streams of a new storage topic appendable."""

    def sealing(
        self, storage_topic_id: int, heir: int | None = None
    ) -> AbstractAsyncContextManager[Ends]:
        """Where a storage topic ends; it is sealed once the block is left without an error.

        Meanwhile appends wait: they are refused afterwards, or stored if there was an error. The
        next storage topic has no older record, and no producer that began earlier.
        """

    async def remove_storage_topic(self, storage_topic_id: int) -> None:
        """Delete its files and rows."""


class Catalogue:
    """Built by `open`; lives as long as the daemon."""

    def __init__(self, store: Store, log: StreamKeeper, wall_ms: Callable[[], int]) -> None:
        self._store = store
        self._log = log
        self._wall_ms = wall_ms
        self.incarnation, self.restores = b"", 0
        """Of the data that its topics and offsets are of."""
        self._by_name: dict[str, Topic] = {}
        self._by_storage_topic: dict[int, tuple[Topic, StorageTopic]] = {}
        self._by_first_level: dict[str, dict[str, Topic]] = {}
        """By the first level of a pattern, then by name; a wildcard counts as ``+``."""
        self._internal = InternalTopics()
        self._watchers: Listeners[tuple[Topic, bool]] = Listeners()
        self._changing = asyncio.Lock()
        self._guard: TopicGuard = Unguarded()

    @classmethod
    async def open(
        cls, store: Store, log: StreamKeeper, *, wall_ms: Callable[[], int] | None = None
    ) -> "Catalogue":
        """Read the topics from the store. The log has opened their storage topics already."""
        catalogue = cls(store, log, wall_ms or _wall_ms)
        data = await incarnation_of(store)
        catalogue.incarnation, catalogue.restores = data.incarnation, data.number - 1
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
            InternalTopic: it is the name of one.
        """
        topic = self.find(name)
        if topic is None:
            refuse_internal(name)
            raise TopicNotFound(topic=name)
        return topic

    def find(self, name: str) -> Topic | None:
        """The topic of this name, if there is one."""
        return self._by_name.get(name)

    def topics(self) -> tuple[Topic, ...]:
        """All topics but internal ones, by name."""
        return tuple(self._by_name[name] for name in sorted(self._by_name))

    def internal_topics(self) -> tuple[Topic, ...]:
        """All internal topics, by group."""
        return self._internal.all()

    def queues_of(self, group_id: int, main: StreamId) -> tuple[StreamId, StreamId] | None:
        """The retry queue and the dead letters of a stream in a group; None: it has none."""
        owner = self._by_storage_topic.get(main.storage_topic_id)
        return owner and self._internal.queues_of(group_id, *owner, main.partition)

    def id_of(self, name: StreamName) -> StreamId:
        """The stream with this written name.

        Raises:
            StreamNotFound: there is none.
            InternalTopic: it is one of an internal topic.
        """
        refuse_internal(name.topic)
        topic = self._by_name.get(name.topic)
        part = None if topic is None else topic.part(name.ordinal)
        if part is None or not 0 <= name.partition < part.partitions:
            raise StreamNotFound(stream=name)
        return StreamId(part.storage_topic_id, name.partition)

    def name_of(self, stream: StreamId) -> StreamName:
        """The written name of the stream.

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
        """Whether a topic has this storage topic; once removed, its id is never used again."""
        return storage_topic_id in self._by_storage_topic

    def meeting(self, wanted: TopicFilter) -> tuple[Topic, ...]:
        """The topics that have a pattern overlapping the filter, by name."""
        return tuple(topic for topic in self._perhaps_meeting(wanted) if topic.meets(wanted))

    def _perhaps_meeting(self, wanted: TopicFilter) -> list[Topic]:
        """The topics whose patterns share a first level with the filter, by name."""
        first = _first_level(wanted)
        if first == ANY_LEVEL:
            return list(self.topics())
        found = self._by_first_level.get(first, {}) | self._by_first_level.get(ANY_LEVEL, {})
        return [found[name] for name in sorted(found)]

    def watch(self, changed: Changed, *, internal: bool = False) -> Callable[[], None]:
        """Call ``changed(topic, removed)`` after each change; returns how to stop watching.

        Of internal topics only who asks for it is told.
        """

        def told(change: tuple[Topic, bool]) -> None:
            if internal or not change[0].level:
                changed(*change)

        return self._watchers.add(told)

    def guard(self, guard: TopicGuard) -> None:
        """Ask this guard from now on before a topic is created or switched."""
        self._guard = guard

    def unchanging(self) -> AbstractAsyncContextManager[None]:
        """Inside this block topics do not change, except for their settings."""
        return self._changing

    async def create(self, new: NewTopic) -> Topic:
        """Create a topic with one storage topic; returns it, or the existing one if asked to.

        Raises:
            IllegalName, InternalTopic, IllegalFilter, IllegalArgument: it can never be a topic.
            TopicExists: the name is taken.
            TopicsOverlap: another topic owns some of its subjects.
            DssError: a reader of topics cannot follow it.
        """
        refuse_internal(new.name)
        new.check()
        return await finished(self._create(new), name=f"create topic {new.name}")

    async def remove(self, name: str, *, topic_id: int | None = None) -> None:
        """Remove a topic, its rows, then its files; with an id, only the topic that has it.

        Raises:
            TopicNotFound: there is none.
        """
        await finished(self._remove(name, topic_id), name=f"remove topic {name}")

    async def add_storage_topic(self, topic_id: int, ordinal: int, partitions: int) -> None:
        """Give a topic its next storage topic; nothing where it has one of that ordinal.

        Raises:
            TopicNotFound: it was removed.
            DiskFull: nothing was added.
            TopicFullyGrown, GrowthOfNoUse: it cannot be added.
        """
        work = self._add_storage_topic(topic_id, ordinal, partitions)
        await finished(work, name=f"add storage topic {ordinal} of {topic_id}")

    async def switch(self, topic_id: int, ordinal: int) -> None:
        """Switch to the storage topic of an ordinal; nothing if it has taken over already.

        Raises:
            TopicNotFound: it was removed.
            DiskFull: nothing has changed.
            DssError: a reader cannot follow; nothing has changed.
        """
        work = self._switch(topic_id, ordinal)
        await finished(work, name=f"switch topic {topic_id} to {ordinal}")

    async def drop_storage_topics(self, topic_id: int, ordinals: Collection[int]) -> None:
        """Remove storage topics: not the producing one, and no waiting one that comes before one
        that stays.

        The queues that groups have of them go along, with all that they hold.

        Raises:
            TopicNotFound: the topic was removed.
            DiskFull: nothing was removed.
        """
        work = self._drop_storage_topics(topic_id, ordinals)
        await finished(work, name=f"drop storage topics of {topic_id}")

    async def make_queues(self, group_id: int, topic: Topic) -> None:
        """Create the missing internal topics of a group and a topic.

        Raises:
            GroupNotFound, TopicNotFound: one of them is gone.
        """
        if any(
            self.queues_of(group_id, part.streams()[0]) is None for part in topic.storage_topics
        ):
            work = self._make_queues(group_id, topic)
            await finished(work, name=f"make queues of {topic.name}")

    async def remove_queues(self, group_id: int) -> None:
        """Remove the internal topics of a group, with all that they hold."""
        if self._internal.has(group_id) or self._changing.locked():
            work = self._remove_queues(lambda queue: queue.group_id == group_id)
            await finished(work, name=f"remove queues of group {group_id}")

    async def remove_lost_queues(self, has_queues: Callable[[int], bool]) -> None:
        """Remove the internal topics whose group has no queues, or whose topic is gone."""
        topic_ids = {topic.topic_id for topic in self._by_name.values()}
        await self._remove_queues(
            lambda queue: not has_queues(queue.group_id) or queue.main_topic_id not in topic_ids
        )

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
            topic_id = await self._store.next_id()
            topic = new.built(topic_id, await self._next_part_id(), self._wall_ms())
            self._guard.check_new(topic)
            await self._commit_new(topic)
            self._open(topic)
            return topic

    async def _commit_new(self, topic: Topic) -> None:
        try:
            writes = puts(topic, topic.storage_topics)
            await self._store.commit(writes, [Absent(TopicNameRow, (topic.name,))])
        except PreconditionFailed as failed:
            raise TopicExists(topic=topic.name) from failed

    def _by_id(self, topic_id: int) -> Topic:
        found = [each for each in self._by_name.values() if each.topic_id == topic_id]
        if not found:
            raise TopicNotFound(topic=topic_id)
        return found[0]

    async def _add_storage_topic(self, topic_id: int, ordinal: int, partitions: int) -> None:
        async with self._changing:
            topic = self._by_id(topic_id)
            if topic.storage_topics[-1].ordinal >= ordinal:
                return
            part = next_part(topic, partitions, await self._next_part_id())
            await self._store.commit(
                [Put(part.to_row(topic_id, [0] * partitions))], [Exists(TopicRow, (topic_id,))]
            )
            # An edit of the topic may have been committed meanwhile.
            topic = self._by_id(topic_id)
            self._open(replace(topic, storage_topics=(*topic.storage_topics, part)))

    async def _switch(self, topic_id: int, ordinal: int) -> None:
        async with self._changing:
            while (topic := self._by_id(topic_id)).produce_ordinal < ordinal:
                old, new = topic.producing.storage_topic_id, taking_over(topic).storage_topic_id
                async with self._log.sealing(old, new) as ends:
                    await commit_switch(self._store, topic, switched(topic, *ends))
                    # An edit of the topic may have been committed meanwhile.
                    after = switched(self._by_id(topic_id), *ends)
                    self._enter(after)
                    # Tell the frame checks before the waiting appends are refused.
                    self._tell(after, removed=False)

    async def _drop_storage_topics(self, topic_id: int, ordinals: Collection[int]) -> None:
        async with self._changing:
            topic = self._by_id(topic_id)
            gone = [part for part in topic.storage_topics if part.ordinal in ordinals]
            kept = tuple(part for part in topic.storage_topics if part not in gone)
            assert topic.producing in kept, "it takes records"
            assert kept[-1].ordinal - kept[0].ordinal == len(kept) - 1, "ordinals without a gap"
            if not gone:
                return
            queues = [each for each in self.internal_topics() if each.main_topic_id == topic_id]
            left = {each.topic_id: shrunk(each, ordinals) for each in queues}
            writes: list[Write] = [
                Delete(StorageTopicRow, (topic_id, part.ordinal)) for part in gone
            ]
            for each in queues:
                writes += drops(each, left[each.topic_id])
            await self._store.commit(writes)
            topic = self._by_id(topic_id)  # an edit of it may have been committed meanwhile
            left[topic_id] = replace(topic, storage_topics=kept)
            for each in (topic, *queues):
                await self._shrink(each, left[each.topic_id])

    async def _shrink(self, before: Topic, after: Topic) -> None:
        """Forget the storage topics that a topic lost, in a commit; it stays if it has others."""
        gone = tuple(part for part in before.storage_topics if part not in after.storage_topics)
        if not gone:
            return
        if after.storage_topics:
            for part in gone:
                del self._by_storage_topic[part.storage_topic_id]
            self._enter(after)
        else:
            self._leave(before)
        # Their streams are gone, and the topic is there without them.
        self._tell(replace(before, storage_topics=gone), removed=True)
        if after.storage_topics:
            self._tell(after, removed=False)
        for part in gone:
            await self._log.remove_storage_topic(part.storage_topic_id)

    async def _make_queues(self, group_id: int, topic: Topic) -> None:
        async with self._changing:
            main = self._by_name.get(topic.name)
            if main is None or main.topic_id != topic.topic_id:
                raise TopicNotFound(topic=topic.name)
            writes: list[Write] = []
            made: list[Topic] = []
            for level in QUEUE_LEVELS:
                known = self._internal.find(group_id, main.topic_id, level)
                missing = missing_parts(known, main)
                ids = [await self._next_part_id() for _ in missing]
                if known is None:
                    topic_id = await self._store.next_id()
                    known = internal_topic(level, group_id, main, topic_id, self._wall_ms())
                if ids:
                    made.append(grown(known, missing, ids))
                    writes += puts(made[-1], made[-1].storage_topics[-len(ids) :])
            try:
                await self._store.commit(writes, [Exists(GroupRow, (group_id,))])
            except PreconditionFailed as failed:
                raise GroupNotFound(group=group_id) from failed
            for queue in made:
                self._open(queue)

    async def _next_part_id(self) -> int:
        storage_topic_id = await self._store.next_id()
        assert storage_topic_id <= STORAGE_TOPIC_ID_MAX, storage_topic_id
        return storage_topic_id

    async def _remove(self, name: str, topic_id: int | None) -> None:
        async with self._changing:
            topic = self.get(name)
            if topic_id not in (None, topic.topic_id):
                raise TopicNotFound(topic=name)
            queues = [
                each for each in self.internal_topics() if each.main_topic_id == topic.topic_id
            ]
            try:
                await self._drop([topic, *queues], [Exists(TopicRow, (topic.topic_id,))])
            except PreconditionFailed as failed:
                raise TopicNotFound(topic=topic.name) from failed

    async def _remove_queues(self, unwanted: Callable[[Topic], bool]) -> None:
        async with self._changing:
            gone = [queue for queue in self.internal_topics() if unwanted(queue)]
            if gone:
                await self._drop(gone, [])

    async def _drop(self, topics: Sequence[Topic], conditions: Sequence[Precondition]) -> None:
        """Remove topics in one commit.

        Raises:
            PreconditionFailed: a condition does not hold, and nothing was removed.
        """
        writes = [write for topic in topics for write in deletes(topic)]
        await self._store.commit(writes, conditions)
        for topic in topics:
            self._leave(topic)
            self._tell(topic, removed=True)
        # If the daemon dies before this is done, the log finds files of a storage topic without a
        # row when it opens, and finishes the removal.
        for topic in topics:
            for part in topic.storage_topics:
                await self._log.remove_storage_topic(part.storage_topic_id)

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

    def _open(self, topic: Topic) -> None:
        """Add a committed topic to memory; its known storage topics stay as they are."""
        for part in topic.storage_topics:
            self._log.open_storage_topic(part.storage_topic_id, part.partitions)
        self._enter(topic)
        self._tell(topic, removed=False)

    def _enter(self, topic: Topic) -> None:
        if topic.level:
            self._internal.enter(topic)
        else:
            self._by_name[topic.name] = topic
        for pattern in topic.patterns:
            self._by_first_level.setdefault(_first_level(pattern), {})[topic.name] = topic
        for part in topic.storage_topics:
            self._by_storage_topic[part.storage_topic_id] = (topic, part)

    def _leave(self, topic: Topic) -> None:
        if topic.level:
            self._internal.leave(topic)
        else:
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
