"""Topics: create, list, describe, remove.

Invariant: values in, frozen values out; no wire message leaves this module.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from dss_api.values import decoded, number_of
from dss_client._features import check_knows
from dss_client._start_point import time_us
from dss_core.errors import IllegalArgument
from dss_core.lane import DEAD_LETTERS

if TYPE_CHECKING:
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
    begins_us: int = 0
    """When it took over from the one before; 0: it has not, or is the first."""


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
    incarnation: str = field(default="", compare=False, repr=False)
    """Of the data that its offsets are of: a restart of the daemon keeps it, a restore of a backup
    does not. Filled by `Topics.create` and `Topics.describe`; empty from an older daemon."""

    @property
    def producing(self) -> StorageTopic:
        """The storage topic that takes new records."""
        return next(one for one in self.storage_topics if one.ordinal == self.produce_ordinal)

    def state_of(self, part: StorageTopic) -> str:
        """Of a storage topic: ``sealed``, ``producing``, or ``waiting`` for a switch to it."""
        if part.sealed:
            return "sealed"
        return "producing" if part.ordinal == self.produce_ordinal else "waiting"

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
            router=number_of(topics_pb2.Router.DESCRIPTOR, "router", router),
            patterns=patterns,
            durability=number_of(topics_pb2.Durability.DESCRIPTOR, "durability", durability),
            retention_ms=retention_ms,
            retention_bytes=retention_bytes,
            if_not_exists=if_not_exists,
        )
        reply = await self._connection.change(self._connection.topics.Create, request)
        return decoded(reply, Topic)

    async def list(self) -> tuple[TopicSummary, ...]:
        """Every topic, by name."""
        from dss_api.v1 import topics_pb2

        reply = await self._connection.ask(
            self._connection.topics.List, topics_pb2.ListTopicsRequest()
        )
        return tuple(decoded(summary, TopicSummary) for summary in reply.topics)

    async def describe(self, name: str) -> Topic:
        """One topic with the bounds of its streams.

        Raises:
            TopicNotFound: there is none of this name.
        """
        from dss_api.v1 import topics_pb2

        request = topics_pb2.DescribeTopicRequest(name=name)
        reply = await self._connection.ask(self._connection.topics.Describe, request)
        return decoded(reply, Topic)

    async def locate(
        self,
        name: str,
        *,
        start: str | datetime | None = None,
        end: str | datetime | None = None,
        dead_letters: str = "",
    ) -> tuple[LocatedRange, ...]:
        """Where the records lie that were appended from one time on and before another.

        Every stream has a range, an empty one too; those of older storage topics come first. All
        that is kept is told where no times are given.

        With a group's ``dead_letters``, the ranges are those of the topic's dead letters there now,
        and the times are those of their deaths. A stream has several ranges or none, and their
        offsets are offsets of the queue.

        Raises:
            TopicNotFound: there is none of this name.
            IllegalTime, IllegalArgument: a time breaks its rule.
            GroupNotFound, GroupAmbiguous, NoneIsDead, TopicNotInGroup, DeadLettersScattered: there
                are no such dead letters, or too many pieces of them.
            DaemonReadsNoDeadLetters: it is of a version before.
        """
        from dss_api.v1 import topics_pb2

        if dead_letters:
            await check_knows(self._connection, DEAD_LETTERS)

        request = topics_pb2.LocateRequest(
            name=name,
            start_us=None if start is None else time_us(start),
            end_us=None if end is None else time_us(end),
            dead_letters=dead_letters,
        )
        reply = await self._connection.ask(self._connection.topics.Locate, request)
        return tuple(decoded(each, LocatedRange) for each in reply.ranges)

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


async def routing_of(connection: "Connection", name: str) -> Topic:
    """One topic without the bounds of its streams: what a producer routes by.

    Raises:
        TopicNotFound: there is none of this name.
    """
    from dss_api.v1 import topics_pb2

    request = topics_pb2.DescribeTopicRequest(name=name, without_streams=True)
    reply = await connection.ask(connection.topics.Describe, request)
    return decoded(reply, Topic)


def _count(number: int, argument: str) -> int:
    if not 0 < number < 1 << 31:
        raise IllegalArgument(argument=f"{argument} {number}", rule="it is a count from 1")
    return number
