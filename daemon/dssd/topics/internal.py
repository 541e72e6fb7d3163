"""Internal topics: each holds a group's retry queues, or its dead letters, for one topic. Pure.

Each has the storage topics of the topic whose records it holds, with the same ordinals, partitions
and factors, so the queues of a stream have its number. Invariant: their names are not legal topic
names, so no caller can create or name one. They own no subjects, so no filter selects them. They
have no retention, and durability sync.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from dss_core.errors import InternalTopic
from dss_core.ids import StreamId
from dss_core.lane import DEAD, RETRY, internal_name, is_internal
from dssd.topics.model import StorageTopic, Topic

QUEUE_LEVELS = (RETRY, DEAD)


class InternalTopics:
    """All of them, by group, then by the topic whose records they hold, and level."""

    def __init__(self) -> None:
        self._of: dict[int, dict[tuple[int, int], Topic]] = {}

    def enter(self, topic: Topic) -> None:
        """Add or replace a topic."""
        own = self._of.setdefault(topic.group_id, {})
        own[topic.main_topic_id, topic.level] = topic

    def leave(self, topic: Topic) -> None:
        """Forget a topic."""
        own = self._of[topic.group_id]
        del own[topic.main_topic_id, topic.level]
        if not own:
            del self._of[topic.group_id]

    def all(self) -> tuple[Topic, ...]:
        """All, by group."""
        return tuple(each for own in self._of.values() for each in own.values())

    def has(self, group_id: int) -> bool:
        """Whether a group has any."""
        return group_id in self._of

    def find(self, group_id: int, main_topic_id: int, level: int) -> Topic | None:
        """The one of a group, of a topic, of a level, if there is one."""
        return self._of.get(group_id, {}).get((main_topic_id, level))

    def queues_of(
        self, group_id: int, main: Topic, part: StorageTopic, partition: int
    ) -> tuple[StreamId, StreamId] | None:
        """The retry queue and the dead letters of a stream of a topic, if a group has both."""
        found: list[StreamId] = []
        for level in QUEUE_LEVELS:
            queue = self.find(group_id, main.topic_id, level)
            own = None if queue is None else queue.part(part.ordinal)
            if own is None:
                return None
            found.append(StreamId(own.storage_topic_id, partition))
        retry, dead = found
        return retry, dead


def refuse_internal(named: str) -> None:
    """Refuse a text that names an internal topic: its name, one of its streams, or a filter.

    Raises:
        InternalTopic: it does.
    """
    topic = named.partition("/")[0]
    if is_internal(topic):
        raise InternalTopic(topic=topic)


def internal_topic(
    level: int, group_id: int, main: Topic, topic_id: int, created_at_ms: int
) -> Topic:
    """A new internal topic without storage topics; `grown` adds them."""
    return Topic(
        topic_id=topic_id,
        name=internal_name(level, group_id, main.topic_id),
        patterns=(),
        router=main.router,
        durability="sync",
        topic_epoch=0,
        produce_ordinal=0,
        storage_topics=(),
        retention_ms=None,
        retention_bytes=None,
        created_at_ms=created_at_ms,
        revision=topic_id,
        level=level,
        group_id=group_id,
        main_topic_id=main.topic_id,
    )


def missing_parts(internal: Topic | None, main: Topic) -> tuple[StorageTopic, ...]:
    """The storage topics of the main topic that an internal one lacks: the newest ones."""
    if internal is None:
        return main.storage_topics
    newest = internal.storage_topics[-1].ordinal
    return tuple(part for part in main.storage_topics if part.ordinal > newest)


def grown(
    internal: Topic, missing: Sequence[StorageTopic], storage_topic_ids: Sequence[int]
) -> Topic:
    """An internal topic with the storage topics that it lacked."""
    added = [
        StorageTopic(number, part.ordinal, part.partitions, part.factor, ends=None)
        for number, part in zip(storage_topic_ids, missing, strict=True)
    ]
    return replace(
        internal,
        storage_topics=(*internal.storage_topics, *added),
        topic_epoch=added[-1].storage_topic_id,
        produce_ordinal=added[-1].ordinal,
    )


def shrunk(internal: Topic, ordinals: Collection[int]) -> Topic:
    """An internal topic without some storage topics, perhaps without any."""
    kept = tuple(part for part in internal.storage_topics if part.ordinal not in ordinals)
    last = kept[-1] if kept else internal.storage_topics[-1]
    return replace(
        internal,
        storage_topics=kept,
        topic_epoch=last.storage_topic_id,
        produce_ordinal=last.ordinal,
    )
