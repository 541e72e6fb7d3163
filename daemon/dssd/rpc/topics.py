"""The servicer of `Topics`: decodes, calls the catalogue, encodes."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import grpc.aio

from dss_api.v1 import topics_pb2, topics_pb2_grpc
from dss_api.values import decoded, message_of
from dss_core.errors import IllegalArgument, StreamNotFound, TopicInUse, TopicNotFound
from dss_core.ids import StreamId
from dssd.leaders.dead_letters import DeadLetterPlaces
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.machines.start_point import OFFSET_MAX
from dssd.rpc.audited_calls import note_unchanged
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue, NewTopic, Topic
from dssd.topics.located import located

Context = grpc.aio.ServicerContext[Any, Any]

ReadersOf = Callable[[Topic], Awaitable[Sequence[GroupRow]]]
"""The groups that read a topic."""


class TopicsServicer(topics_pb2_grpc.TopicsServicer):
    """Serves what operators ask of topics."""

    def __init__(
        self,
        catalogue: Catalogue,
        log: Log,
        readers_of: ReadersOf,
        dead_letters: DeadLetterPlaces,
    ) -> None:
        self._catalogue = catalogue
        self._log = log
        self._readers_of = readers_of
        self._dead_letters = dead_letters

    async def Create(
        self, request: topics_pb2.CreateTopicRequest, context: Context
    ) -> topics_pb2.Topic:
        """Create a topic."""
        known = self._catalogue.find(request.name)
        topic = await self._catalogue.create(_new_topic(request))
        if known is not None and known.topic_id == topic.topic_id:
            note_unchanged()
        return await self._described(topic)

    async def List(
        self, request: topics_pb2.ListTopicsRequest, context: Context
    ) -> topics_pb2.ListTopicsReply:
        """All topics, by name, with their sizes."""
        reply = topics_pb2.ListTopicsReply(incarnation=self._catalogue.incarnation)
        turn = LoopTurn()
        for topic in self._catalogue.topics():
            with suppress(StreamNotFound):  # it was removed meanwhile
                reply.topics.append(await self._summary(topic, turn))
        return reply

    async def Describe(
        self, request: topics_pb2.DescribeTopicRequest, context: Context
    ) -> topics_pb2.Topic:
        """One topic with the bounds of its streams, where they are asked for."""
        topic = self._catalogue.get(request.name)
        return self._routing(topic) if request.without_streams else await self._described(topic)

    async def Locate(
        self, request: topics_pb2.LocateRequest, context: Context
    ) -> topics_pb2.LocateReply:
        """Where the records between two times lie."""
        topic = self._catalogue.get(request.name)
        start_us = _moment(request.start_us) if request.HasField("start_us") else None
        end_us = _moment(request.end_us) if request.HasField("end_us") else None
        reply = topics_pb2.LocateReply(incarnation=self._catalogue.incarnation)
        if request.dead_letters:
            dead = await self._dead_letters.located(request.dead_letters, topic, start_us, end_us)
            reply.ranges.extend(
                message_of(topics_pb2.LocatedRange, each, each.stream, stream=str(each.name))
                for each in dead
            )
            return reply
        try:
            async for found in located(self._log, topic, start_us, end_us):
                name = str(self._catalogue.name_of(found.stream))
                reply.ranges.append(
                    message_of(topics_pb2.LocatedRange, found, found.stream, stream=name)
                )
        except StreamNotFound as error:  # it was removed meanwhile
            raise TopicNotFound(topic=topic.name) from error
        return reply

    async def Remove(
        self, request: topics_pb2.RemoveTopicRequest, context: Context
    ) -> topics_pb2.RemoveTopicReply:
        """Remove a topic and its records."""
        try:
            topic = self._catalogue.get(request.name)
        except TopicNotFound:
            if request.if_exists:
                note_unchanged()
                return topics_pb2.RemoveTopicReply(removed=False)
            raise
        groups = () if request.force else await self._readers_of(topic)
        if groups:
            raise TopicInUse(topic=topic.name, groups=", ".join(group.name for group in groups))
        await self._catalogue.remove(topic.name)
        return topics_pb2.RemoveTopicReply(removed=True)

    async def _summary(self, topic: Topic, turn: LoopTurn) -> topics_pb2.TopicSummary:
        records = size_bytes = 0
        for stream in topic.streams():
            await turn.give_way()
            bounds = self._log.bounds(stream)
            records += self._log.count(stream, bounds.start, bounds.end)[0]
            size_bytes += bounds.bytes
        return topics_pb2.TopicSummary(topic=_topic(topic), records=records, bytes=size_bytes)

    def _routing(self, topic: Topic) -> topics_pb2.Topic:
        """The description for a producer. Its cost does not depend on the number of streams,
        because after a switch all producers of the topic ask at once."""
        message = _topic(topic)
        number = topic.producing.storage_topic_id
        message.producers_begin_us = self._log.producers_begin_us(number)
        message.incarnation = self._catalogue.incarnation
        return message

    async def _described(self, topic: Topic) -> topics_pb2.Topic:
        message = self._routing(topic)
        turn = LoopTurn()
        for storage, part in zip(message.storage_topics, topic.storage_topics, strict=True):
            for stream in part.streams():
                await turn.give_way()
                try:
                    storage.streams.append(self._bounds(stream))
                except StreamNotFound as error:  # it was removed meanwhile
                    raise TopicNotFound(topic=topic.name) from error
        return message

    def _bounds(self, stream: StreamId) -> topics_pb2.StreamBounds:
        bounds = self._log.bounds(stream)
        records = self._log.count(stream, bounds.start, bounds.end)[0]
        return message_of(topics_pb2.StreamBounds, stream, bounds, records=records)


def _new_topic(request: topics_pb2.CreateTopicRequest) -> NewTopic:
    factor = request.factor if request.HasField("factor") else 1
    return decoded(request, NewTopic, factor=factor)


def _moment(time_us: int) -> int:
    if not 0 <= time_us <= OFFSET_MAX:
        raise IllegalArgument(argument=f"time {time_us}", rule="a time since 1970")
    return time_us


def _topic(topic: Topic) -> topics_pb2.Topic:
    return message_of(
        topics_pb2.Topic,
        topic,
        patterns=[pattern.text for pattern in topic.patterns],
        storage_topics=[
            message_of(topics_pb2.StorageTopic, part, sealed=part.ends is not None)
            for part in topic.storage_topics
        ],
    )
