"""A daemon in memory, on a real socket, that a test can cut off or make refuse at any moment.

It has one topic named ``t``, lends every stream to the newest subscription, and keeps its log and
acks across cuts. So a test can check frame by frame what a client does on its own: gather, resend,
resume, mark, follow a switch. Invariant: it speaks the wire as the daemon does; where it knows
less, it does less: consumers keep the streams of the moment when they subscribed, a group begins at
the earliest record whatever start it is given, all groups share one progress, there is one session
at a time, and neither an ack wait nor a lease ever ends.
"""

import asyncio
from collections.abc import AsyncIterator
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, cast

import grpc
import grpc.aio

from dss_api.v1 import (
    log_pb2,
    log_pb2_grpc,
    sessions_pb2,
    sessions_pb2_grpc,
    topics_pb2,
    topics_pb2_grpc,
)
from dss_client.testing import memory_read
from dss_client.testing.memory_session import MemorySession, wire_error
from dss_client.testing.memory_stream import APPEND_TIME_US, MemoryStream
from dss_core import frame as frames
from dss_core.errors import (
    DssError,
    IllegalArgument,
    StaleTopicEpoch,
    StreamNotFound,
    TopicNotFound,
)
from dss_core.limits import MESSAGE_BYTES_MAX

Context = grpc.aio.ServicerContext[Any, Any]


class MemoryDaemon(MemorySession):
    """One topic named ``t``, one session, every stream for whoever subscribed last.

    Use it as ``async with MemoryDaemon(path) as daemon``; clients connect to its `endpoint`.
    """

    def __init__(self, socket: Path, partitions: int = 2) -> None:
        self.endpoint = f"unix:{socket}"
        super().__init__(partitions)
        self.requests: list[log_pb2.ProduceRequest] = []
        self.mute_acks = False
        """Frames are stored, but their acks are withheld."""
        self.refuse: list[DssError] = []
        """The conditions that refuse the next frames, one each."""
        self.sealed: list[list[MemoryStream]] = []
        """The streams of sealed storage topics, the oldest storage topic first."""
        self.reshape: dict[str, Any] = {}
        """Values of ``topic_id``, ``topic_epoch`` or ``partitions`` for later descriptions of the
        topic; or ``gone``: it does not exist."""
        self._server: grpc.aio.Server | None = None
        self._grown = asyncio.Condition()

    async def __aenter__(self) -> Self:
        """Listen."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every call."""
        await self.cut()

    async def start(self) -> None:
        """Listen."""
        options = [("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX)]
        server = grpc.aio.server(options=options)
        served = cast(Any, _Served)(self)
        topics_pb2_grpc.add_TopicsServicer_to_server(served, server)
        log_pb2_grpc.add_LogServicer_to_server(served, server)
        sessions = cast(Any, _ServedSessions)(self)
        sessions_pb2_grpc.add_SessionsServicer_to_server(sessions, server)
        assert server.add_insecure_port(self.endpoint)
        await server.start()
        self._server = server

    async def cut(self) -> None:
        """End every call and listen no more; what is stored stays."""
        assert self._server is not None
        await self._server.stop(grace=None)

    def stored(self) -> int:
        """Records in all streams."""
        return sum(stream.end for stream in self.streams)

    def acknowledged(self) -> int:
        """Acknowledged records in all streams."""
        return sum(
            stream.progress.floor + sum(end - start for start, end in stream.progress.ranges)
            for stream in self.streams
        )

    def payloads(self, partition: int) -> list[bytes]:
        """What a stream holds, in order."""
        return self.streams[partition].payloads()

    def switch(self, partitions: int) -> None:
        """Let the topic go on in a new storage topic; an older one answers only for frames that it
        has."""
        for stream in self.streams:
            stream.sealed = True
        self.sealed.append(self.streams)
        ordinal = len(self.sealed)
        self.streams = [MemoryStream(f"t/{ordinal}/{number}") for number in range(partitions)]

    # Topics.

    @property
    def _topic_epoch(self) -> int:
        epoch: int = self.reshape.get("topic_epoch", 1 + len(self.sealed))
        return epoch

    async def describe(
        self, request: topics_pb2.DescribeTopicRequest, context: Context
    ) -> topics_pb2.Topic:
        """The one topic, with what `reshape` says."""
        if request.name != "t" or self.reshape.get("gone"):
            await _abort(context, TopicNotFound(topic=request.name))
        partitions = [len(streams) for streams in self.sealed]
        partitions.append(self.reshape.get("partitions", len(self.streams)))
        return topics_pb2.Topic(
            topic_id=self.reshape.get("topic_id", 1),
            name="t",
            patterns=["t/#"],
            router=topics_pb2.ROUTER_BLOCK,
            durability=topics_pb2.DURABILITY_SYNC,
            topic_epoch=self._topic_epoch,
            produce_ordinal=len(self.sealed),
            storage_topics=[
                topics_pb2.StorageTopic(
                    storage_topic_id=1 + ordinal, ordinal=ordinal, partitions=count, factor=1
                )
                for ordinal, count in enumerate(partitions)
            ],
        )

    # Log.

    async def produce(
        self, requests: AsyncIterator[log_pb2.ProduceRequest]
    ) -> AsyncIterator[log_pb2.ProduceReply]:
        """Store and acknowledge, unless `refuse` or `mute_acks` says otherwise."""
        topic = ""
        async for request in requests:
            self.requests.append(request)
            topic = request.topic or topic
            reply = log_pb2.ProduceReply()
            for frame in request.frames:
                self._answer(frame, topic, request.topic_epoch, reply)
            async with self._grown:
                self._grown.notify_all()
            if not self.mute_acks:
                yield reply

    def _answer(
        self, frame: bytes, topic: str, topic_epoch: int, reply: log_pb2.ProduceReply
    ) -> None:
        partition = sequence = 0
        try:
            header = frames.read_header(frame)
            partition, sequence = header.partition, header.sequence
            if self.refuse:
                raise self.refuse.pop(0)
            ordinal = self._ordinal_at(partition, topic, topic_epoch)
            streams = [*self.sealed, self.streams][ordinal]
            base, records, repeated = streams[partition].append(frame)
        except DssError as error:
            reply.refusals.add(partition=partition, sequence=sequence, error=wire_error(error))
            return
        reply.acks.add(
            partition=partition,
            sequence=sequence,
            ordinal=ordinal,
            base_offset=base,
            records=records,
            append_time_us=APPEND_TIME_US,
            repeated=repeated,
            durability="sync",
        )
        if not repeated and not self.hold_back and not self.sealed:
            self.deliver_new(partition, base)

    def _ordinal_at(self, partition: int, topic: str, topic_epoch: int) -> int:
        """The storage topic that took records at an epoch."""
        if not topic:
            rule = "the first request of a call must name one"
            raise IllegalArgument(argument="topic", rule=rule)
        if topic != "t" or self.reshape.get("gone"):
            raise TopicNotFound(topic=topic)
        ordinal = len(self.sealed)
        if 0 < topic_epoch <= ordinal:
            return topic_epoch - 1
        if topic_epoch != self._topic_epoch:
            raise StaleTopicEpoch(topic=topic, current=self._topic_epoch, given=topic_epoch)
        if partition >= len(self.streams):
            raise StreamNotFound(stream=f"t/{ordinal}/{partition}")
        return ordinal

    async def read(
        self, request: log_pb2.ReadRequest, context: Context
    ) -> AsyncIterator[log_pb2.ReadReply]:
        """A range of streams, or their tail."""
        streams = {stream.name: stream for stream in chain(*self.sealed, self.streams)}
        try:
            async for reply in memory_read.replies(request, streams, self._grown):
                yield reply
        except DssError as error:
            await _abort(context, error)


class _Served(topics_pb2_grpc.TopicsServicer, log_pb2_grpc.LogServicer):
    """The calls that a daemon in memory has; the generated bases refuse every other."""

    def __init__(self, daemon: MemoryDaemon) -> None:
        self._daemon = daemon

    async def Describe(
        self, request: topics_pb2.DescribeTopicRequest, context: Context
    ) -> topics_pb2.Topic:
        return await self._daemon.describe(request, context)

    async def Produce(
        self, request_iterator: AsyncIterator[log_pb2.ProduceRequest], context: Context
    ) -> AsyncIterator[log_pb2.ProduceReply]:
        async for item in self._daemon.produce(request_iterator):
            yield item

    async def Read(
        self, request: log_pb2.ReadRequest, context: Context
    ) -> AsyncIterator[log_pb2.ReadReply]:
        async for item in self._daemon.read(request, context):
            yield item


class _ServedSessions(sessions_pb2_grpc.SessionsServicer):
    """As `_Served`: another service has a method of the same name, List."""

    def __init__(self, daemon: MemoryDaemon) -> None:
        self._daemon = daemon

    async def Attach(
        self, request_iterator: AsyncIterator[sessions_pb2.SessionUp], context: Context
    ) -> AsyncIterator[sessions_pb2.SessionDown]:
        async for item in self._daemon.attach(request_iterator):
            yield item


async def _abort(context: Context, error: DssError) -> NoReturn:
    status = grpc.StatusCode[error.grpc_status]
    metadata = (("dss-error-bin", wire_error(error).SerializeToString()),)
    await context.abort(status, error.message, metadata)
    raise error
