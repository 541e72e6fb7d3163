"""The Produce call of one producer: frames out, answers in, and again after a loss.

It sends at once when nothing is in flight. Otherwise records gather: for a stream without a frame
in flight at most `GATHER_MS`, for another one until its answer comes or the frame is full. So the
slower the daemon answers, the larger the frames are, and the less each record costs it. Invariant:
an accepted frame stays here until it is settled. After a lost connection everything in flight is
sent again with its sequences, so the daemon answers for frames that it has stored already; only
closing the producer leaves an outcome unknown.

If the topic moved to other streams, the producer follows. The queues are held: nothing new is sent
until everything in flight is answered under the old description. Then the topic is described anew,
and the frames that were not stored are routed by that, the oldest first, as frames of a new
producer. A key had one stream before and has one now, so its records stay in order. The same
happens if the daemon has forgotten the producer: on the call that reports it, every stream answers
for its frames.
"""

import asyncio
from collections import deque
from time import time_ns
from typing import TYPE_CHECKING, NoReturn

import grpc.aio

from dss_api.v1 import log_pb2 as wire
from dss_client._backoff import Backoff
from dss_client._connection import Connection, ConnectionLostError, error_from_wire
from dss_client._known_data import KnownData
from dss_client._malloc_heap import keep_heap
from dss_client._outage_log import Outage
from dss_client._pending_frame import Ack, PendingFrame
from dss_client._producer_queue import BEGIN_ANEW, FrameQueue
from dss_client._routes import Routes
from dss_client._task_spawner import Spawn
from dss_client._untold_failures import UntoldFailures
from dss_client.limits import GATHER_MS
from dss_client.topics import Topic, routing_of
from dss_core.build import build_frame
from dss_core.errors import (
    PASSING,
    BufferFull,
    DssError,
    OutcomeUnknown,
    StaleTopicEpoch,
    TopicNotFound,
)
from dss_core.producer_ids import new_producer_id
from dss_core.routing import SWITCHES

REQUEST_BYTES_USUAL = 1_000 << 10
"""How many waiting bytes one request of a producer takes: several frames share the cost of a
message on both sides, and of a sync in the daemon."""

CROWDED_FRAMES = 8
"""After so many full frames, senders that may wait let the loop run once."""


if TYPE_CHECKING:
    Call = grpc.aio.StreamStreamCall[wire.ProduceRequest, wire.ProduceReply]


class ProduceCall:
    """Owns the queues of one producer and the call that empties them."""

    def __init__(self, connection: Connection, topic: Topic, *, buffer_bytes: int) -> None:
        partitions = topic.producing.partitions
        self.routes = Routes(topic)
        """The description of the topic; replaced when the topic has moved."""
        self.room_bytes = buffer_bytes
        """How many more bytes may be accepted."""
        self.crowded = False
        """Enough was accepted for now: callers that can wait let the loop run."""
        self.open_frames: list[PendingFrame | None] = [None] * partitions
        """By partition: the frame that takes further records."""
        self._buffer_bytes = buffer_bytes
        self._connection = connection
        self._topic = topic
        self._queues = _queues(topic)
        self._later_queues: list[FrameQueue] = []
        """Frames that came while others are routed anew."""
        self._gathering: dict[int, None] = {}
        self._ready: dict[int, FrameQueue] = {}
        self._flying: dict[int, FrameQueue] = {}
        self._due = False
        self._carried: list[bytes] = []
        """A frame that was taken, but was too large for the last request: it leads the next one."""
        self._closed_frames = 0
        self._gather_timer: asyncio.TimerHandle | None = None
        self._wake = asyncio.Event()
        self._room_waiters: deque[asyncio.Future[None]] = deque()
        self._stopped = False
        self._held_by: DssError | None = None
        """The refusal after which a new producer goes on, once the topic is described anew."""
        self._failed: DssError | None = None
        self._failures = UntoldFailures()
        self._backoff = Backoff()
        whose = f"the producer of {topic.name}"
        self._outage = Outage(whose, connection.endpoint.text)
        self._data = KnownData(whose, bytes.fromhex(topic.incarnation))
        self._task: asyncio.Task[None]

    def start(self, spawn: Spawn) -> None:
        """Begin to send."""
        keep_heap()
        self._task = spawn(self._run(), f"dss producer of {self._topic.name}")
        # Also where it is cancelled with the tasks of its client: whoever waits is told.
        self._task.add_done_callback(lambda _: self._fail(self._failed or OutcomeUnknown()))

    async def stop(self) -> None:
        """End the call; what is not settled has an unknown outcome."""
        self._stopped = True
        self._task.cancel()
        await asyncio.wait([self._task])

    @property
    def failed(self) -> DssError | None:
        """Why nothing can be published any more."""
        return self._failed

    # Taking records in.

    def begin(self, partition: int, subject: str) -> PendingFrame:
        """An open frame for a partition that has none; its first record has the subject.

        Raises:
            DssError: nothing can be published any more.
        """
        if self._failed is not None:
            raise self._failed
        frame = self.open_frames[partition] = PendingFrame(time_ns() // 1_000, subject)
        self._gathering[partition] = None
        self._schedule()
        return frame

    def close(self, partition: int) -> None:
        """The open frame of the partition takes no further record."""
        frame = self.open_frames[partition]
        if frame is not None:
            del self._gathering[partition]
            self.open_frames[partition] = None
            self._queue(partition, frame)

    def add(self, routes: Routes, partition: int, frame: PendingFrame) -> None:
        """Take in a whole frame, behind the gathered records of its partition.

        Args:
            routes: the routing that it was built by; if that is outdated, the frame is routed anew.
            partition: its partition by that routing.
            frame: its records.

        Raises:
            DssError: nothing can be published any more.
        """
        if self._failed is not None:
            raise self._failed
        self.room_bytes -= frame.size_bytes
        routed = [(partition, frame)] if routes is self.routes else self.routes.rerouted(frame)
        for now_partition, part in routed:
            self.close(now_partition)
            self._queue(now_partition, part)

    def refuse_unless_empty(self) -> None:
        """Let a record into an empty buffer only, however large it is.

        Raises:
            BufferFull: there is something in it.
        """
        if self.room_bytes < self._buffer_bytes:
            raise BufferFull(limit=self._buffer_bytes)

    async def pause(self) -> None:
        """Let the loop run, so that accepted records are sent."""
        await asyncio.sleep(0)

    async def room(self) -> None:
        """Wait until something is settled."""
        if self._failed is not None:
            return
        self._due = True
        self._wake.set()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._room_waiters.append(waiter)
        await waiter

    async def room_for(self, size_bytes: int) -> None:
        """Wait until there is room for so many bytes, or the buffer is empty."""
        while (
            self._failed is None
            and self.room_bytes < size_bytes
            and self.room_bytes < self._buffer_bytes
        ):
            await self.room()

    async def flush(self) -> None:
        """Wait until everything accepted so far is settled.

        Raises:
            DssError: something failed that nobody awaited.
        """
        opened = [frame for frame in self.open_frames if frame is not None]
        frames = self._unsettled()
        self._due = True
        self._wake.set()
        for frame in (*frames, *opened):
            await frame.wait()
        self._failures.tell()

    def _queue(self, partition: int, frame: PendingFrame) -> None:
        queue = self._queues[partition]
        queue.waiting.append(frame)
        self._ready[partition] = queue
        self._closed_frames += 1
        self.crowded = self._closed_frames >= CROWDED_FRAMES
        self._wake.set()

    def _schedule(self) -> None:
        """Records gather: send them now if nothing is in flight, else soon."""
        if not self._flying:
            self._gather_over()
        elif self._gather_timer is None:
            loop = asyncio.get_running_loop()
            self._gather_timer = loop.call_later(GATHER_MS / 1_000, self._gather_over)

    def _gather_over(self) -> None:
        if self._gather_timer is not None:
            self._gather_timer.cancel()
            self._gather_timer = None
        self._due = True
        self._wake.set()

    # The call.

    async def _run(self) -> None:
        # A task group that ends by an exception may swallow the cancellation of its parent.
        while not self._stopped:
            epoch = self._topic.topic_epoch
            reason = await self._go_on()
            if isinstance(reason, PASSING):
                self._outage.began(reason)
            elif reason is not None:
                self._fail(reason)
                return
            if self._topic.topic_epoch == epoch:
                await asyncio.sleep(self._backoff.pause_s())

    async def _go_on(self) -> DssError | None:
        """Serve a call, and describe the topic anew if its end asks for that.

        Returns why it cannot go on now, or at all; None if it can.
        """
        if self._held_by is None or self._flying:
            reason = await self._serve()
            for queue in self._queues:
                queue.lost()
                self._note(queue)
            if not isinstance(reason, BEGIN_ANEW):
                return reason
        try:
            topic = await routing_of(self._connection, self._topic.name)
        except TopicNotFound:
            # The topic may be created again; until then every frame is refused by itself.
            topic = self._topic
        except DssError as error:
            return error
        await self._adopt(topic)
        return None

    async def _serve(self) -> DssError:
        """Run one call until it is lost; returns why."""
        reasons: list[DssError] = []
        call = self._connection.log.Produce()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(call), name="dss producer reader")
                tasks.create_task(self._write(call), name="dss producer writer")
        except* ConnectionLostError as lost:
            reasons.extend(e.reason for e in lost.exceptions if isinstance(e, ConnectionLostError))
        finally:
            call.cancel()
        return reasons[0]

    async def _adopt(self, topic: Topic) -> None:
        """Go on by a description; if it has a later epoch, once nothing is in flight any more."""
        before = self._topic
        is_moved = topic.topic_epoch != before.topic_epoch
        is_same = topic.topic_id == before.topic_id
        if is_same and is_moved and self._flying:
            epochs = {"current": topic.topic_epoch, "given": before.topic_epoch}
            self._hold(StaleTopicEpoch(topic=topic.name, **epochs))
            return
        self._topic = topic
        if self._held_by is None and not is_moved and is_same:
            self._name_unused()
            return
        await self._route_anew(Routes(topic))

    def _hold(self, reason: DssError) -> None:
        """Go on as a new producer: send nothing new until nothing is in flight any more."""
        if self._held_by is None:
            self._held_by = reason
            for queue in self._queues:
                queue.hold()

    def _name_unused(self) -> None:
        """Producers that have sent nothing begin now."""
        producer_id = new_producer_id(self._topic.producers_begin_us)
        for queue in self._queues:
            if queue.is_unused:
                queue.producer_id = producer_id

    async def _route_anew(self, routes: Routes) -> None:
        """Route all unsettled frames, and those that come meanwhile, to where they belong now.

        If the topic was removed and made anew, these include the frames in flight.
        """
        # Sequences begin at 0 again, which only a new producer may do.
        self._later_queues = _queues(self._topic)
        for queue in self._queues:
            queue.come_back()
        while waiting := self._waiting_anew():
            frame = waiting.popleft()
            frame.in_doubt = False
            for partition, part in routes.rerouted(frame):
                self._later_queues[partition].waiting.append(part)
            # A frame may take milliseconds, and there may be hundreds.
            await asyncio.sleep(0)
        self.routes = routes
        self._held_by = None
        self._queues, self._later_queues = self._later_queues, []
        self.open_frames = [None] * len(self._queues)
        self._ready.clear()
        self._flying.clear()
        for queue in self._queues:
            self._note(queue)

    def _waiting_anew(self) -> deque[PendingFrame] | None:
        """The frames of a stream to route again; the one that still gathers comes last."""
        for queue in self._queues:
            if queue.waiting:
                return queue.waiting
        for partition in list(self._gathering):
            self.close(partition)
        return next((queue.waiting for queue in self._queues if queue.waiting), None)

    def _unsettled(self) -> list[PendingFrame]:
        """Every frame that takes no further record and has no outcome yet."""
        queues = (*self._queues, *self._later_queues)
        return [frame for queue in queues for frame in queue.unsettled()]

    async def _write(self, call: "Call") -> NoReturn:
        self._wake.set()
        self._carried.clear()
        topic = self._topic.name
        epoch = self._topic.topic_epoch
        while True:
            await self._wake.wait()
            self._wake.clear()
            while frames := self._next_frames():
                request = wire.ProduceRequest(topic=topic, topic_epoch=epoch, frames=frames)
                if topic:
                    # Both are named on the first request of a call.
                    request.features.append(SWITCHES)
                    topic = ""
                await self._connection.write(call, request)
            self._closed_frames = 0
            self.crowded = False

    def _next_frames(self) -> list[bytes]:
        """The frames of the next request."""
        if self._due:
            self._due = False
            self._close_gathered()
        frames, self._carried = self._carried, []
        size_bytes = sum(map(len, frames))
        while self._ready and size_bytes < REQUEST_BYTES_USUAL:
            encoded = self._next_encoded()
            if not encoded:
                continue
            if frames and size_bytes + len(encoded) > REQUEST_BYTES_USUAL:
                self._carried.append(encoded)
                break
            frames.append(encoded)
            size_bytes += len(encoded)
        return frames

    def _next_encoded(self) -> bytes:
        """A frame of the next queue in turn; empty if that queue has none to send."""
        partition = next(iter(self._ready))
        queue = self._ready.pop(partition)
        frame = queue.take()
        if frame is None:
            return b""
        # Behind the others: every stream has its turn.
        self._ready[partition] = queue
        encoded = frame.encoded if self._encode(queue, frame) else b""
        self._note(queue)
        return encoded

    def _close_gathered(self) -> None:
        for partition in list(self._gathering):
            # Behind a frame in flight, records go on gathering: its answer sends them.
            if self._queues[partition].is_idle:
                self.close(partition)

    def _encode(self, queue: FrameQueue, frame: PendingFrame) -> bool:
        if frame.encoded:
            return True
        try:
            frame.encoded = build_frame(
                frame.to_columns(),
                partition=queue.partition,
                producer_id=queue.producer_id,
                sequence=frame.sequence,
            )
        except DssError as error:
            queue.dropped(frame)
            self._settle(frame, None, error)
            return False
        return True

    async def _read(self, call: "Call") -> NoReturn:
        while True:
            reply = await self._connection.read(call)
            self._data.note(reply.incarnation)
            for ack in reply.acks:
                self._on_ack(ack)
            for refusal in reply.refusals:
                self._on_refusal(refusal)
            # Wait for an answer: a daemon that only accepts connections is not back yet.
            self._backoff.reset()
            self._outage.ended()
            self._after_answers()
            if self._held_by is not None and not self._flying:
                raise ConnectionLostError(self._held_by)

    def _on_ack(self, item: wire.ProduceAck) -> None:
        queue = self._queues[item.partition]
        frame = queue.acked(item.sequence)
        if frame is not None:
            ack = Ack(
                stream=f"{self._topic.name}/{item.ordinal}/{item.partition}",
                offset=item.base_offset,
                append_time_us=item.append_time_us,
                durability=item.durability,
                repeated=item.repeated,
                records=item.records,
            )
            self._settle(frame, ack, None)
        self._answered(queue)

    def _on_refusal(self, item: wire.ProduceRefusal) -> None:
        error = error_from_wire(item.error)
        if isinstance(error, PASSING):
            # The frame is not at fault: it is sent again over a new call.
            raise ConnectionLostError(error)
        queue = self._queues[item.partition]
        if isinstance(error, BEGIN_ANEW):
            self._hold(error)
        frame = queue.refused(item.sequence, error)
        if frame is not None:
            self._settle(frame, None, error)
        self._answered(queue)

    def _answered(self, queue: FrameQueue) -> None:
        self._ready[queue.partition] = queue
        self._note(queue)

    def _after_answers(self) -> None:
        self._wake.set()
        if self._gathering:
            self._schedule()

    def _note(self, queue: FrameQueue) -> None:
        if queue.is_idle:
            self.close(queue.partition)
        if queue.in_flight:
            self._flying[queue.partition] = queue
        else:
            self._flying.pop(queue.partition, None)
        if queue.has_work():
            self._ready[queue.partition] = queue

    # Outcomes.

    def _settle(self, frame: PendingFrame, ack: Ack | None, error: DssError | None) -> None:
        if error is not None and not frame.is_awaited:
            self._failures.add(error)
        self._give_back(frame, ack, error)
        while self._room_waiters:
            waiter = self._room_waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def _give_back(self, frame: PendingFrame, ack: Ack | None, error: DssError | None) -> None:
        """Settle a frame, and the frame that it was the last open part of."""
        self.room_bytes += frame.size_bytes
        frame.settle(ack, error)
        whole = frame.whole
        if whole is not None and all(part.settled for part in whole.parts):
            errors = [part.error for part in whole.parts if part.error is not None]
            self._give_back(whole, whole.parts[0].ack, errors[0] if errors else None)

    def _fail(self, error: DssError) -> None:
        """Nothing can be published any more: fail every frame, and all that come later."""
        self._failed = error
        frames = self._unsettled()
        frames.extend(frame for frame in self.open_frames if frame is not None)
        for queue in (*self._queues, *self._later_queues):
            queue.clear()
        self.open_frames = [None] * len(self.open_frames)
        self._gathering.clear()
        self._flying.clear()
        if self._gather_timer is not None:
            self._gather_timer.cancel()
        for frame in frames:
            self._settle(frame, None, error)


def _queues(topic: Topic) -> list[FrameQueue]:
    """The queues of a producer that begins now, one for each partition."""
    producer_id = new_producer_id(topic.producers_begin_us)
    return [FrameQueue(number, producer_id) for number in range(topic.producing.partitions)]
