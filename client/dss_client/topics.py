"""Topics: create, list, describe, remove.

Invariant: values in, frozen values out; no wire message leaves this module.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from dss_client._start_point import time_us
from dss_core.errors import IllegalArgument

if TYPE_CHECKING:
    from dss_api.v1 import topics_pb2
    from dss_client._connection import Connection


@dataclass(frozen=True, slots=True)
class StreamBounds:
    """What one stream keeps."""

    partition: int
    start: int
    """The first offset that is kept."""
    end: int
    """The next offset."""
    bytes: int
    records: int
    """Fewer than offsets where some are left out."""


@dataclass(frozen=True, slots=True)
class StorageTopic:
    """One generation of a topic."""

    storage_topic_id: int
    ordinal: int
    partitions: int
    factor: int
    sealed: bool
    streams: tuple[StreamBounds, ...]
    """Filled by `Topics.describe` only."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A named log and how records are routed in it."""

    topic_id: int
    name: str
    patterns: tuple[str, ...]
    """The subjects that it owns."""
    router: str
    """``block`` or ``range``."""
    durability: str
    """``sync`` or ``os``."""
    topic_epoch: int
    produce_ordinal: int
    """Which storage topic takes new records."""
    storage_topics: tuple[StorageTopic, ...]
    retention_ms: int | None
    retention_bytes: int | None
    created_at_ms: int
    revision: int
    """Rises with each edit by an operator."""
    producers_begin_us: int = field(default=0, compare=False, repr=False)
    """When it was described, by the daemon's clock: the beginning of producers that begin now."""

    @property
    def producing(self) -> StorageTopic:
        """The storage topic that takes new records."""
        return self.storage_topics[self.produce_ordinal]

    @property
    def partitions(self) -> int:
        """How many streams new records are spread over."""
        return self.producing.partitions


@dataclass(frozen=True, slots=True)
class LocatedRange:
    """A part of a stream, perhaps an empty one."""

    stream: str
    storage_topic_id: int
    partition: int
    start: int
    end: int
    bytes: int
    """About."""


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic and how much it keeps."""

    topic: Topic
    records: int
    bytes: int


class Topics:
    """Administration of topics; reached as ``client.topics``."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    async def create(
        self,
        name: str,
        *,
        partitions: int,
        factor: int | None = None,
        router: str = "block",
        patterns: Sequence[str] = (),
        durability: str = "sync",
        retention_ms: int | None = None,
        retention_bytes: int | None = None,
        if_not_exists: bool = False,
    ) -> Topic:
        """Create a topic, or describe it where it exists already and that is allowed.

        Raises:
            TopicExists: and ``if_not_exists`` was not given.
            TopicsOverlap: another topic owns some of the subjects.
            IllegalName, IllegalFilter, IllegalArgument: a value breaks its rule.
        """
        from dss_api.v1 import topics_pb2

        request = topics_pb2.CreateTopicRequest(
            name=name,
            partitions=_count(partitions, "partitions"),
            factor=factor if factor is None else _count(factor, "factor"),
            router=_router(router),
            patterns=patterns,
            durability=_durability(durability),
            retention_ms=retention_ms,
            retention_bytes=retention_bytes,
            if_not_exists=if_not_exists,
        )
        reply = await self._connection.change(self._connection.topics.Create, request)
        return topic_from_wire(reply)

    async def list(self) -> tuple[TopicSummary, ...]:
        """Every topic, by name."""
        from dss_api.v1 import topics_pb2

        reply = await self._connection.ask(
            self._connection.topics.List, topics_pb2.ListTopicsRequest()
        )
        return tuple(
            TopicSummary(topic_from_wire(summary.topic), summary.records, summary.bytes)
            for summary in reply.topics
        )

    async def describe(self, name: str) -> Topic:
        """One topic with the bounds of its streams.

        Raises:
            TopicNotFound: there is none of this name.
        """
        from dss_api.v1 import topics_pb2

        request = topics_pb2.DescribeTopicRequest(name=name)
        reply = await self._connection.ask(self._connection.topics.Describe, request)
        return topic_from_wire(reply)

    async def locate(
        self,
        name: str,
        *,
        start: str | datetime | None = None,
        end: str | datetime | None = None,
    ) -> tuple[LocatedRange, ...]:
        """Where the records lie that were appended from one time on and before another.

        Every stream has a range, an empty one too; those of older storage topics come first. All
        that is kept is told where no times are given.

        Raises:
            TopicNotFound: there is none of this name.
            IllegalTime, IllegalArgument: a time breaks its rule.
        """
        from dss_api.v1 import topics_pb2

        request = topics_pb2.LocateRequest(
            name=name,
            start_us=None if start is None else time_us(start),
            end_us=None if end is None else time_us(end),
        )
        reply = await self._connection.ask(self._connection.topics.Locate, request)
        return tuple(
            LocatedRange(
                each.stream,
                each.storage_topic_id,
                each.partition,
                each.start,
                each.end,
                each.bytes,
            )
            for each in reply.ranges
        )

    async def remove(self, name: str, *, force: bool = False, if_exists: bool = False) -> bool:
        """Remove a topic with all that it keeps; tells whether there was one.

        Raises:
            TopicNotFound: there is none, and ``if_exists`` was not given.
            TopicInUse: groups read it, and ``force`` was not given.
        """
        from dss_api.v1 import topics_pb2

        request = topics_pb2.RemoveTopicRequest(name=name, force=force, if_exists=if_exists)
        reply = await self._connection.change(self._connection.topics.Remove, request)
        return reply.removed


def topic_from_wire(topic: "topics_pb2.Topic") -> Topic:
    """A topic as values of our own."""
    from dss_api.v1 import topics_pb2

    return Topic(
        topic_id=topic.topic_id,
        name=topic.name,
        patterns=tuple(topic.patterns),
        router=topics_pb2.Router.Name(topic.router).removeprefix("ROUTER_").lower(),
        durability=topics_pb2.Durability.Name(topic.durability).removeprefix("DURABILITY_").lower(),
        topic_epoch=topic.topic_epoch,
        produce_ordinal=topic.produce_ordinal,
        storage_topics=tuple(_storage_topic(storage) for storage in topic.storage_topics),
        retention_ms=topic.retention_ms if topic.HasField("retention_ms") else None,
        retention_bytes=topic.retention_bytes if topic.HasField("retention_bytes") else None,
        created_at_ms=topic.created_at_ms,
        revision=topic.revision,
        producers_begin_us=topic.producers_begin_us,
    )


def _storage_topic(storage: "topics_pb2.StorageTopic") -> StorageTopic:
    return StorageTopic(
        storage_topic_id=storage.storage_topic_id,
        ordinal=storage.ordinal,
        partitions=storage.partitions,
        factor=storage.factor,
        sealed=storage.sealed,
        streams=tuple(
            StreamBounds(bounds.partition, bounds.start, bounds.end, bounds.bytes, bounds.records)
            for bounds in storage.streams
        ),
    )


def _count(number: int, argument: str) -> int:
    if not 0 < number < 1 << 31:
        raise IllegalArgument(argument=f"{argument} {number}", rule="it is a count from 1")
    return number


def _router(name: str) -> "topics_pb2.Router.ValueType":
    from dss_api.v1 import topics_pb2

    routers = {"block": topics_pb2.ROUTER_BLOCK, "range": topics_pb2.ROUTER_RANGE}
    if name not in routers:
        raise IllegalArgument(argument=f"router {name}", rule=f"it is one of {', '.join(routers)}")
    return routers[name]


def _durability(name: str) -> "topics_pb2.Durability.ValueType":
    from dss_api.v1 import topics_pb2

    modes = {"sync": topics_pb2.DURABILITY_SYNC, "os": topics_pb2.DURABILITY_OS}
    if name not in modes:
        raise IllegalArgument(
            argument=f"durability {name}", rule=f"it is one of {', '.join(modes)}"
        )
    return modes[name]
