"""A daemon in memory, on a real socket, that a test can cut off or make refuse at any moment.

It has one topic named ``t``, lends every stream to whoever subscribes, and keeps its log and acks
across cuts, so that what a client does on its own (gather, resend, resume, mark) can be tested to
the frame. Invariant: it speaks the wire as the daemon does, and decides nothing on its own.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import grpc.aio

from dss_api.v1 import (
    log_pb2,
    log_pb2_grpc,
    sessions_pb2,
    sessions_pb2_grpc,
    topics_pb2,
    topics_pb2_grpc,
    types_pb2,
)
from dss_core import frame as frames
from dss_core.errors import DssError, SequenceGap, TopicNotFound
from dss_core.limits import MESSAGE_BYTES_MAX
from dss_core.progress import Progress, Range

Context = grpc.aio.ServicerContext[Any, Any]
Down = asyncio.Queue[sessions_pb2.SessionDown]


@dataclass
class MemoryStream:
    """One stream's stamped frames, and what consumers have acknowledged."""

    end: int = 0
    frames: list[tuple[int, bytes]] = field(default_factory=list)
    producers: dict[bytes, dict[int, tuple[int, int]]] = field(default_factory=dict)
    progress: Progress = field(default_factory=lambda: Progress(0))
    frontier: int = 0

    def append(self, frame: bytes) -> tuple[int, int, bool]:
        """Base offset, records, and whether it was known."""
        header = frames.verify(frame)
        known = self.producers.setdefault(header.producer_id, {})
        if header.sequence in known:
            return (*known[header.sequence], True)
        if known and header.sequence != max(known) + 1:
            raise SequenceGap(given=header.sequence, expected_after=max(known), stream="memory")
        stamp = frames.stamped(
            frame, base_offset=self.end, append_time_us=7, topic_epoch=1, storage_topic_id=1
        )
        known[header.sequence] = (self.end, header.records)
        self.frames.append((self.end, stamp + frame[len(stamp) :]))
        base, self.end = self.end, self.end + header.records
        return base, header.records, False


class MemoryDaemon(
    topics_pb2_grpc.TopicsServicer, log_pb2_grpc.LogServicer, sessions_pb2_grpc.SessionsServicer
):
    """One topic named ``t``, one group, every stream for whoever subscribed last."""

    def __init__(self, socket: Path, partitions: int = 2) -> None:
        self.endpoint = f"unix:{socket}"
        self.streams = [MemoryStream() for _ in range(partitions)]
        self.requests: list[log_pb2.ProduceRequest] = []
        self.settles: list[sessions_pb2.Settle] = []
        self.opens: list[sessions_pb2.Open] = []
        self.subscribes: list[sessions_pb2.Subscribe] = []
        self.unsubscribes: list[int] = []
        self.pings = 0
        self.revoke_finished: list[int] = []
        self.mute_acks = False
        self.mute_settled = False
        self.mute_subscribed = False
        self.hold_back = False
        """Grants bring no records; a test delivers them."""
        self.refuse: list[DssError] = []
        self.down: Down | None = None
        self.lease_ms = 6_000
        self.reshape: dict[str, Any] = {}
        self._grants = count(1)
        self._grant_streams: dict[int, int] = {}
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Listen."""
        options = [("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX)]
        server = grpc.aio.server(options=options)
        topics_pb2_grpc.add_TopicsServicer_to_server(self, server)
        log_pb2_grpc.add_LogServicer_to_server(self, server)
        sessions_pb2_grpc.add_SessionsServicer_to_server(self, server)
        assert server.add_insecure_port(self.endpoint)
        await server.start()
        self._server = server

    async def cut(self) -> None:
        """Gone, with every call; what it stored stays."""
        assert self._server is not None
        await self._server.stop(grace=None)

    def stored(self) -> int:
        """Records in all streams."""
        return sum(stream.end for stream in self.streams)

    def payloads(self, partition: int) -> list[bytes]:
        """What a stream holds, in order."""
        from dss_core.decode import decode

        joined = b"".join(frame for _, frame in self.streams[partition].frames)
        return list(decode(joined).payloads) if joined else []

    # Topics.

    async def Describe(
        self, request: topics_pb2.DescribeTopicRequest, context: Context
    ) -> topics_pb2.Topic:
        """The one topic, with what `reshape` says."""
        if request.name != "t":
            error = TopicNotFound(topic=request.name)
            await context.abort(
                grpc.StatusCode.NOT_FOUND,
                error.message,
                (("dss-error-bin", wire_error(error).SerializeToString()),),
            )
        fields: dict[str, Any] = {"topic_epoch": 1, "partitions": len(self.streams)}
        fields |= self.reshape
        return topics_pb2.Topic(
            topic_id=1,
            name="t",
            patterns=["t/#"],
            router=topics_pb2.ROUTER_BLOCK,
            durability=topics_pb2.DURABILITY_SYNC,
            topic_epoch=fields["topic_epoch"],
            storage_topics=[
                topics_pb2.StorageTopic(
                    storage_topic_id=1, partitions=fields["partitions"], factor=1
                )
            ],
        )

    # Log.

    async def Produce(
        self, request_iterator: AsyncIterator[log_pb2.ProduceRequest], context: Context
    ) -> AsyncIterator[log_pb2.ProduceReply]:
        """Store and acknowledge, unless `refuse` or `mute_acks` says otherwise."""
        async for request in request_iterator:
            self.requests.append(request)
            reply = log_pb2.ProduceReply()
            for frame in request.frames:
                self._append(frame, reply)
            if not self.mute_acks:
                yield reply

    def _append(self, frame: bytes, reply: log_pb2.ProduceReply) -> None:
        header = frames.read_header(frame)
        try:
            if self.refuse:
                raise self.refuse.pop(0)
            base, records, repeated = self.streams[header.partition].append(frame)
        except DssError as error:
            reply.refusals.add(
                partition=header.partition, sequence=header.sequence, error=wire_error(error)
            )
        else:
            reply.acks.add(
                partition=header.partition,
                sequence=header.sequence,
                base_offset=base,
                records=records,
                append_time_us=7,
                repeated=repeated,
                durability="sync",
            )

    # Sessions.

    async def Attach(
        self, request_iterator: AsyncIterator[sessions_pb2.SessionUp], context: Context
    ) -> AsyncIterator[sessions_pb2.SessionDown]:
        """One session, the same for every client."""
        down: Down = asyncio.Queue()
        self.down = down
        reading = asyncio.create_task(self._read_session(request_iterator, down))
        try:
            while (item := await down.get()).WhichOneof("item"):
                yield item
        finally:
            reading.cancel()

    async def _read_session(self, items: AsyncIterator[sessions_pb2.SessionUp], down: Down) -> None:
        async for up in items:
            self.take_up(up, down)
        down.put_nowait(sessions_pb2.SessionDown())

    def take_up(self, up: sessions_pb2.SessionUp, down: Down) -> None:
        """An item came from the client."""
        match up.WhichOneof("item"):
            case "open":
                self._on_open(up.open)
            case "subscribe":
                self.subscribes.append(up.subscribe)
                if self.mute_subscribed:
                    return
                self.say(subscribed=sessions_pb2.Subscribed(subscription=up.subscribe.subscription))
                self.grant_all(up.subscribe.subscription)
            case "unsubscribe":
                number = up.unsubscribe.subscription
                self.unsubscribes.append(number)
                self.say(unsubscribed=sessions_pb2.Unsubscribed(subscription=number))
            case "settle":
                for settle in up.settle.settles:
                    self.on_settle(settle)
            case "ping":
                self.pings += 1
                self.say(pong=sessions_pb2.Pong(token=up.ping.token))
            case "revoke_finished":
                self.revoke_finished.append(up.revoke_finished.grant)

    def _on_open(self, item: sessions_pb2.Open) -> None:
        resumed = item.session_id == b"s" * 16
        self.opens.append(item)
        self.say(
            opened=sessions_pb2.Opened(
                client_id=item.client_id or "chosen",
                session_id=b"s" * 16,
                session_epoch=len(self.opens),
                session_present=resumed,
                lease_ms=self.lease_ms,
                credit_records=1_000,
                credit_bytes=8 << 20,
            )
        )

    def on_settle(self, settle: sessions_pb2.Settle) -> None:
        """Acks and a frontier came."""
        self.settles.append(settle)
        stream = self.streams[self._grant_streams[settle.grant]]
        acked = [(each.start, each.end) for each in settle.acked]
        stream.progress = stream.progress.with_acked(acked)
        stream.frontier = max(stream.frontier, settle.frontier)
        if settle.token and not self.mute_settled:
            self.say(settled=sessions_pb2.Settled(token=settle.token))

    def say(self, **item: Any) -> None:  # noqa: ANN401 - any one item of the wire
        """Send one item down the live session."""
        assert self.down is not None
        self.down.put_nowait(sessions_pb2.SessionDown(**item))

    def grant_all(self, subscription: int) -> None:
        """Lend every stream and deliver what is not acknowledged."""
        for partition in range(len(self.streams)):
            grant = self.grant(subscription, partition)
            if not self.hold_back:
                self.deliver(grant)

    def grant(self, subscription: int, partition: int) -> int:
        """Lend a stream."""
        grant = next(self._grants)
        progress = self.streams[partition].progress
        self._grant_streams[grant] = partition
        self.say(
            granted=sessions_pb2.Granted(
                grant=grant,
                subscription=subscription,
                stream=f"t/0/{partition}",
                grant_epoch=grant,
                progress=types_pb2.Progress(
                    floor=progress.floor,
                    ranges=[types_pb2.Range(start=a, end=b) for a, b in progress.ranges],
                ),
            )
        )
        return grant

    def deliver(self, grant: int, redelivered: bool = False) -> None:
        """Send what the grant's stream holds, acknowledged offsets masked."""
        stream = self.streams[self._grant_streams[grant]]
        done = Progress(0).merged(stream.progress)
        self._deliver(grant, [(0, done.floor), *done.ranges], redelivered)

    def deliver_part(self, grant: int, start: int, end: int, *, redelivered: bool = False) -> None:
        """Send the frames that hold some offsets, all others masked."""
        stream = self.streams[self._grant_streams[grant]]
        self._deliver(grant, [(0, start), (end, stream.end)], redelivered)

    def _deliver(self, grant: int, mask: list[Range], redelivered: bool) -> None:
        for base, frame in self.streams[self._grant_streams[grant]].frames:
            last = base + frames.read_header(frame).records
            if any(start <= base and last <= end for start, end in mask):
                continue
            self.say(
                deliver=sessions_pb2.Deliver(
                    grant=grant,
                    frames=frame,
                    mask=[types_pb2.Range(start=a, end=b) for a, b in mask if a < b],
                    redelivered=redelivered,
                    attempt=1,
                )
            )


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until the condition holds, for at most five seconds."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - no event tells what another task has seen
            await asyncio.sleep(0)


def wire_error(error: DssError) -> types_pb2.Error:
    """An error as the wire has it."""
    return types_pb2.Error(
        code=error.code, message=error.message, fields=error.fields, definite=error.definite
    )
