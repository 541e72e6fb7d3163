"""The topics of a run, as a leader's claim asks for them, and the rows of its groups."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from dss_core.errors import GrowthOfNoUse, StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId, StreamName
from dss_core.routing import Router
from dss_sim.groups.plan import GroupPlan
from dssd.machines.queues import backoff_text
from dssd.store.port import Put, Write
from dssd.store.rows import GroupRow, ProgressRow
from dssd.topics.growth import next_part
from dssd.topics.model import StorageTopic, Topic

PARTS_FROM = 100
"""The first id of storage topics by which topics grow, above those of the first ones."""
QUEUES_FROM = 100_000
"""The first id of storage topics for queues, above all others."""


class SimulatedCatalogue:
    """Part of `dssd.topics.catalogue.Catalogue`."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.queues: dict[tuple[int, StreamId], tuple[StreamId, StreamId]] = {}
        """The queues, by group and stream."""
        self.to_seal: dict[int, Callable[[], None]] = {}
        """Storage topics that a switch is to seal, and the callbacks for when they are."""
        self._parts = PARTS_FROM
        self._queues = 0

    def next_part(self) -> int:
        """The id of a storage topic by which a topic grows. No id is used twice: a producer may
        still hold frames for a removed one."""
        self._parts += 1
        return self._parts

    def meeting(self, wanted: TopicFilter) -> tuple[Topic, ...]:
        """The topics whose patterns meet the filter."""
        return tuple(
            topic
            for topic in self.topics.values()
            if any(pattern.overlaps(wanted) for pattern in topic.patterns)
        )

    def of_part(self, storage_topic_id: int) -> Topic | None:
        """The topic of a storage topic; None: it is gone."""
        for topic in self.topics.values():
            if any(part.storage_topic_id == storage_topic_id for part in topic.storage_topics):
                return topic
        return None

    def topic_of(self, stream: StreamId) -> Topic:
        """As in the catalogue.

        Raises:
            StreamNotFound: there is none.
        """
        for topic in self.topics.values():
            if stream in topic.streams():
                return topic
        raise StreamNotFound(stream=stream)

    def name_of(self, stream: StreamId) -> StreamName:
        """A name for reports of trouble, which nobody judges."""
        return StreamName("t", stream.storage_topic_id, stream.partition)

    def queues_of(self, group_id: int, main: StreamId) -> tuple[StreamId, StreamId] | None:
        """As in the catalogue."""
        return self.queues.get((group_id, main))

    def make_queues(self, group_id: int, main: StreamId) -> tuple[StreamId, StreamId]:
        """A retry queue and dead letters of a stream."""
        self._queues += 2
        first = QUEUES_FROM + self._queues
        made = StreamId(first, main.partition), StreamId(first + 1, main.partition)
        self.queues[group_id, main] = made
        return made


def grown_by(topic: Topic, partitions: int, storage_topic_id: int) -> StorageTopic:
    """The storage topic by which a topic grows. If one of so many partitions would route like the
    last one, which no daemon makes, it gets one partition more."""
    try:
        return next_part(topic, partitions, storage_topic_id)
    except GrowthOfNoUse:
        return next_part(topic, partitions + 1, storage_topic_id)


def new_topic(topic_id: int, name: str, partitions: int, durability: str, router: Router) -> Topic:
    """A topic of one storage topic, whose id is the topic's."""
    pattern = TopicFilter.parse(f"{name}/#")
    part = StorageTopic(topic_id, 0, partitions, 1, None)
    return Topic(topic_id, name, (pattern,), router, durability, 1, 0, (part,), None, None, 0)


def new_group(planned: GroupPlan, topic: Topic, group_id: int) -> GroupRow:
    """The row of a group that reads the topic."""
    owner = b"c0#1" if planned.private else None
    kind = "exclusive" if planned.private else "shared"
    wait_ms, protocol = planned.ack_wait_ms, planned.protocol
    row = GroupRow(
        group_id, planned.name, f"{topic.name}/#", kind, "", owner, wait_ms, 0, 0, protocol,
        on_damage=planned.on_damage,
    )  # fmt: skip
    policy = planned.queues
    if policy is None:
        return row
    return replace(
        row,
        max_deliver=policy.max_deliver,
        backoff_ms=backoff_text(policy.backoff_ms),
        queue_records=policy.queue_records,
        queue_bytes=policy.queue_bytes,
        ordered=policy.ordered,
        on_dead_letter="block" if policy.blocks else "skip",
        keyless="dead" if policy.keyless_dead else "deliver",
        shards=max(planned.shards, 0),
        allocation="shard" if planned.shards else "sticky",
    )


def declaration(row: GroupRow, starts: Mapping[StreamId, int]) -> list[Write]:
    """The event of a group that begins at these offsets."""
    progress: list[Write] = [
        Put(ProgressRow(row.group_id, *stream, start, b"", start, b"", False, 0))
        for stream, start in starts.items()
    ]
    return [Put(row), *progress]
