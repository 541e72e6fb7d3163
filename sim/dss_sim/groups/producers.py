"""Producers: they publish to streams, and send unanswered frames again.

A producer has one connection for all its queues. The connection keeps the order and may be cut;
each side notices at its own time. Requests sent into a cut are lost, and so are answers under way,
but a late request may arrive after requests of the next connection. The producer reconnects, and
sends everything in flight again with the same sequences. Frames that a full disk refused are
published again later, as new ones. A dead producer leaves its frames behind; the next one has a new
id.

A producer follows a topic that moved to another storage topic, as the client does: it holds the
queues of the old one until everything in flight has its answer, looks up the topic, and routes the
rest anew, the oldest first. Records published meanwhile come after that.

Invariant: an answer is told to the history at the moment at which its producer hears it.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from dss_core.errors import DiskFull, DssError, StorageTopicSealed, StreamNotFound
from dss_core.ids import StreamId
from dss_sim.groups.frame_queue import AnyFrameQueue, FrameQueue, PendingFrame
from dss_sim.groups.history import Published, Unpublished
from dss_sim.groups.log_writer import Asked, Outcome
from dss_sim.groups.record_keys import routed
from dss_sim.groups.schedule import Host
from dssd.log.recent_sequences import FirstAnswer
from dssd.topics.model import Topic

if TYPE_CHECKING:
    from dss_sim.groups.world import World

ANSWER_US = (100, 1_500)
LATE_US = (5_000, 600_000)
"""How long a late request may be under way."""
RECONNECT_US = (20_000, 300_000)
AGAIN_US = 150_000
"""How long a user waits before refused records are published again."""

DESCRIBED_US = (200, 20_000)
"""How long it takes to look up a topic."""


def new_queue(stream: StreamId) -> AnyFrameQueue:
    """A queue for a stream; tests put the client's own in its place."""
    return FrameQueue()


class Call:
    """One connection to the daemon."""

    __slots__ = ("arrives_us", "heard_us", "number", "open")

    def __init__(self, number: int) -> None:
        self.number = number
        self.open = True
        self.arrives_us = 0
        """When the last request arrives, if it is late."""
        self.heard_us = 0
        """When the last answer arrives."""


class Producer:
    """The producers with one number, one after the other."""

    def __init__(self, world: "World", number: int) -> None:
        self.host = Host(world.schedule, f"producer{number}", rate=1_000_000, offset_ms=0)
        self._world = world
        self._number = number
        self._chance = world.chance.of(f"producer {number}")
        self._queues: dict[StreamId, AnyFrameQueue] = {}
        self._over: set[StreamId] = set()
        """Streams that take nothing more, and have no successor."""
        self._known: dict[str, int] = {}
        """The storage topic that each topic is produced to."""
        self._held: set[int] = set()
        """Storage topics that their topics have left."""
        self._call: Call | None = None
        self._contents = 0
        self._away = 0
        """Frames that will be published again later."""
        self._begin()

    @property
    def settled(self) -> bool:
        """Whether it has the outcome of everything."""
        return not self._away and not any(queue.unsettled() for queue in self._queues.values())

    def _begin(self) -> None:
        number = len(self._world.producer_names) + 1
        self._id = number.to_bytes(16)
        self.name = f"p{self._number}#{number}"
        self._world.producer_names[self._id] = self.name
        self._connect()

    # What happens to it

    def kill(self, away_us: int) -> None:
        """The process dies; another one begins later."""
        self.host.crash()
        self._queues.clear()
        self._over.clear()
        self._known.clear()
        self._held.clear()
        self._away = 0
        if self._call is not None:
            self._call.open = False
            self._call = None
        self._world.schedule.after(away_us, self._begin, self.host)

    def cut(self, notices_us: int) -> None:
        """The connection breaks; the producer notices after so long."""
        call = self._call
        if call is not None and call.open:
            call.open = False
            self._world.schedule.after(notices_us, partial(self._lost, call), self.host)

    def _lost(self, call: Call) -> None:
        if call is self._call:
            self._call = None
            for queue in self._queues.values():
                queue.lost()
            self._reconnect()

    def _reconnect(self) -> None:
        low, high = RECONNECT_US
        self._world.schedule.after(self._chance.randint(low, high), self._connect, self.host)

    def _connect(self) -> None:
        if self._call is not None:
            return
        if not self._world.writer.up:
            self._reconnect()
            return
        self._call = Call(self._world.writer.calls.begin())
        for stream in list(self._queues):
            self._pump(stream)
        for storage_topic_id in sorted(self._held):
            self._follow(storage_topic_id)

    # Publishing

    def publish(self, stream: StreamId, records: int) -> None:
        """Publish some records as one frame.

        While an older storage topic of the topic has not answered everything, they go there, and
        move with the rest.
        """
        stream = self._as_known(stream)
        if stream not in self._over:
            self._contents += 1
            keys = self._world.keys.of_frame(stream, self._id, self._contents, records)
            self._queue(stream, PendingFrame(records, self._contents, keys=keys))

    def _as_known(self, stream: StreamId) -> StreamId:
        topic = self._world.names[stream].partition("/")[0]
        known = self._known.setdefault(topic, stream.storage_topic_id)
        streams = self._world.keys.streams_of(known)
        if stream.storage_topic_id > known and not any(map(self._has_unsettled, streams)):
            known = self._known[topic] = stream.storage_topic_id
        if stream.storage_topic_id == known:
            return stream
        return streams[stream.partition % len(streams)]

    def _has_unsettled(self, stream: StreamId) -> bool:
        queue = self._queues.get(stream)
        return queue is not None and bool(queue.unsettled())

    def _queue(self, stream: StreamId, frame: PendingFrame) -> None:
        queue = self._queues.get(stream)
        if queue is None:
            queue = self._queues[stream] = new_queue(stream)
            if stream.storage_topic_id in self._held:
                queue.hold()
        queue.waiting.append(frame)
        self._pump(stream)

    def _pump(self, stream: StreamId) -> None:
        queue, call = self._queues[stream], self._call
        while call is not None and call is self._call and (frame := queue.take()) is not None:
            if call.open:
                self._send(call, stream, frame)

    def _send(self, call: Call, stream: StreamId, frame: PendingFrame) -> None:
        world, writer = self._world, self._world.writer
        answered = partial(self._answer, call, stream, frame.sequence)
        sent = (frame.sequence, frame.content, frame.keys)
        asked = Asked(stream, call.number, self._id, *sent, answered)
        world.say(self.name, asked)
        late = world.chance.strike("late_request")
        if late is not None:
            call.arrives_us = max(call.arrives_us, world.schedule.now_us + late.randint(*LATE_US))
        late_us = call.arrives_us - world.schedule.now_us
        if late_us <= 0:
            writer.append(asked)
        else:
            world.schedule.after(late_us, partial(self._arrive, writer.lives, asked))

    def _arrive(self, life: int, asked: Asked) -> None:
        """A request came late; the daemon may not have noticed that its connection is gone."""
        writer = self._world.writer
        if writer.up and writer.lives == life:
            writer.append(asked)

    def _answer(
        self, call: Call, stream: StreamId, sequence: int, outcome: Outcome, repeated: bool
    ) -> None:
        """The daemon answers; it arrives behind what it said before."""
        low, high = ANSWER_US
        now_us = self._world.schedule.now_us
        call.heard_us = max(call.heard_us, now_us + self._chance.randint(low, high))
        heard = partial(self._hear, call, stream, sequence, outcome, repeated)
        self._world.schedule.after(call.heard_us - now_us, heard, self.host)

    def _hear(
        self, call: Call, stream: StreamId, sequence: int, outcome: Outcome, repeated: bool
    ) -> None:
        if call is not self._call or not call.open:
            return
        if isinstance(outcome, FirstAnswer):
            if self._queues[stream].acked(sequence) is not None:
                self._tell_published(stream, sequence, outcome, repeated)
        elif isinstance(outcome, StreamNotFound):
            self._end(stream)
        else:
            if isinstance(outcome, StorageTopicSealed):
                self._hold(stream.storage_topic_id)
            self._refused(stream, sequence, outcome)
        self._pump(stream)
        self._follow(stream.storage_topic_id)

    # Topics that move

    def _end(self, stream: StreamId) -> None:
        """No stream takes the frames that were to be stored there."""
        self._queues[stream].clear()
        self._over.add(stream)

    def _hold(self, storage_topic_id: int) -> None:
        if storage_topic_id not in self._held:
            self._held.add(storage_topic_id)
            for stream, queue in self._queues.items():
                if stream.storage_topic_id == storage_topic_id:
                    queue.hold()

    def _of(self, storage_topic_id: int) -> dict[StreamId, AnyFrameQueue]:
        """Its queues of a storage topic."""
        return {
            stream: queue
            for stream, queue in self._queues.items()
            if stream.storage_topic_id == storage_topic_id
        }

    def _follow(self, storage_topic_id: int) -> None:
        """Look up a moved topic, once nothing is in flight to its old storage topic."""
        queues = self._of(storage_topic_id).values()
        if storage_topic_id in self._held and not any(queue.in_flight for queue in queues):
            described = partial(self._described, self._call, storage_topic_id)
            self._world.schedule.after(self._chance.randint(*DESCRIBED_US), described, self.host)

    def _described(self, call: Call | None, storage_topic_id: int) -> None:
        if call is None or call is not self._call or not call.open:
            return  # asked again over the next one
        if storage_topic_id not in self._held:
            return
        queues = self._of(storage_topic_id)
        topic = self._world.catalogue.of_part(storage_topic_id)
        self._held.discard(storage_topic_id)
        if topic is None or topic.storage_topics[-1].storage_topic_id == storage_topic_id:
            for stream in queues:
                self._end(stream)
        else:
            self._route_anew(queues, topic)

    def _route_anew(self, queues: Mapping[StreamId, AnyFrameQueue], topic: Topic) -> None:
        part = topic.storage_topics[-1]
        for queue in queues.values():
            self._known[topic.name] = part.storage_topic_id
            queue.come_back()
            waiting = list(queue.waiting)
            queue.clear()
            for frame in waiting:
                anew = routed(frame.keys, part, topic.router, frame.content)
                for at, keys in anew.items():
                    moved = PendingFrame(len(keys), frame.content, keys=keys)
                    self._queue(StreamId(part.storage_topic_id, at), moved)

    def _tell_published(
        self, stream: StreamId, sequence: int, answer: FirstAnswer, repeated: bool
    ) -> None:
        world = self._world
        if stream in world.log:
            place = (world.names[stream], self.name, sequence, answer.base_offset, answer.records)
            world.tell(Published(world.schedule.now_us, *place, repeated))

    def _refused(self, stream: StreamId, sequence: int, error: DssError) -> None:
        frame = self._queues[stream].refused(sequence, error)
        if frame is None:
            return
        world = self._world
        name = world.names[stream]
        world.tell(Unpublished(world.schedule.now_us, name, self.name, sequence, error.code))
        if isinstance(error, DiskFull):
            self._away += 1
            world.schedule.after(AGAIN_US, partial(self._again, stream, frame), self.host)

    def _again(self, stream: StreamId, frame: PendingFrame) -> None:
        self._away -= 1
        self.publish(stream, frame.records)
