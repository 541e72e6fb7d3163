"""A topic that is produced to, switched and lost by chance, without a transport and a disk.

`PlayedDaemon` stands in for the connection of a producer, and is the reference for it. It stores a
frame once, refuses frames that leave a gap, answers repeats of frames in sealed storage topics, and
knows no producer that began before the present storage topic took over. Connections are lost before
and after frames were stored, with answers in flight, and requests wait for a random time.
"""

import asyncio
import random
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import NoReturn

from dss_api.v1 import log_pb2, topics_pb2
from dss_client._connection import ConnectionLostError
from dss_client.testing.memory_session import wire_error
from dss_core import frame as frames
from dss_core.decode import decode
from dss_core.errors import (
    PASSING,
    DiskFull,
    DssError,
    OutcomeUnknown,
    Overloaded,
    ProducerForgotten,
    SequenceGap,
    SequenceTooOld,
    StaleTopicEpoch,
    StorageTopicSealed,
    Unreachable,
)
from dss_core.producer_ids import began_us
from dss_core.routing import Router, key_hash, partition_of


@dataclass
class Part:
    """A storage topic."""

    number: int
    """Its id, and the epoch of the topic while it takes records."""
    partitions: int
    factor: int
    begins_us: int
    """No producer of this storage topic began before this time."""
    records: dict[int, list[tuple[bytes | None, bytes]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By partition: keys and payloads."""
    known: dict[tuple[int, bytes], dict[int, tuple[int, int]]] = field(default_factory=dict)
    """By partition and producer, and by sequence: base offset and records."""


@dataclass
class Fate:
    """The chances of events."""

    switches: list[tuple[int, int]]
    """Partitions and factor of the storage topics that take over, if there is a switch."""
    faults: int
    """How often a connection is lost, or a frame refused, before everything works."""
    forgets: bool = False
    """Whether producers are also forgotten and storage topics removed: then nobody can tell the
    outcome of some frames."""


class PlayedCall:
    """A Produce call."""

    def __init__(self) -> None:
        self.inbox: deque[log_pb2.ProduceRequest] = deque()
        self.lost = False

    def cancel(self) -> None:
        self.lost = True


class PlayedDaemon:
    """One topic named ``t``."""

    class _Endpoint:
        text = "played"

    endpoint = _Endpoint()

    def __init__(
        self, chance: random.Random, router: Router, first: tuple[int, int], fate: Fate
    ) -> None:
        self._chance = chance
        self._router = router
        self._fate = fate
        self._now_us = 1
        self.parts = [Part(1, *first, begins_us=0)]
        self._forgotten_us: dict[int, int] = defaultdict(int)
        self._deaths = random.Random(fate.faults)
        """A generator of its own, so that a daemon that dies now and then does the rest like one
        that does not."""
        self._in_doubt = set[tuple[int, int, bytes]]()
        """Storage topics, partitions and producers that may go on at any higher sequence."""
        self._collected = 0
        """How many storage topics it no longer knows."""
        self.log = self.topics = self
        self.Produce = PlayedCall
        self.Describe = None

    # What a producer asks of its connection.

    async def ask(self, method: None, request: topics_pb2.DescribeTopicRequest) -> topics_pb2.Topic:
        await self._waits()
        if self._is_fault(0.2):
            raise Unreachable(endpoint="played")
        if self._chance.random() < 0.1:
            self._switch()
        self._now_us += 1
        return topics_pb2.Topic(
            topic_id=1,
            name="t",
            patterns=["t/#"],
            router=topics_pb2.Router.Value(f"ROUTER_{self._router.name}"),
            durability=topics_pb2.DURABILITY_SYNC,
            topic_epoch=self.parts[-1].number,
            produce_ordinal=len(self.parts) - 1,
            producers_begin_us=self._now_us,
            storage_topics=[
                topics_pb2.StorageTopic(
                    storage_topic_id=part.number,
                    ordinal=ordinal,
                    partitions=part.partitions,
                    factor=part.factor,
                )
                for ordinal, part in list(enumerate(self.parts))[self._collected :]
            ],
        )

    async def write(self, call: PlayedCall, request: log_pb2.ProduceRequest) -> None:
        if call.lost or self._is_fault(0.05):
            self._lose(call)
        call.inbox.append(request)
        if self._chance.random() < 0.3:
            await asyncio.sleep(0)

    async def read(self, call: PlayedCall) -> log_pb2.ProduceReply:
        await self._waits()
        while not call.inbox:
            if call.lost:
                self._lose(call)
            await asyncio.sleep(0)
        reply = self._processed(call)
        if self._is_fault(0.1):
            self._lose(call)
        return reply

    async def _waits(self) -> None:
        for _ in range(self._chance.randint(0, 12)):
            await asyncio.sleep(0)

    def _lose(self, call: PlayedCall) -> NoReturn:
        """Messages in flight still arrive, up to a random one."""
        while call.inbox and self._chance.random() < 0.7:
            self._processed(call)
        call.inbox.clear()
        call.lost = True
        if self._deaths.random() < 0.3:
            # It died, and does not know whether everything that it stored is still there.
            for part in self.parts:
                self._in_doubt.update((part.number, *key) for key in part.known)
        raise ConnectionLostError(OutcomeUnknown())

    def _is_fault(self, likely: float) -> bool:
        if self._fate.faults <= 0 or self._chance.random() >= likely:
            return False
        self._fate.faults -= 1
        return True

    # What becomes of frames.

    def forget(self, part: Part) -> None:
        """Forget the producers of a storage topic, as after a day of silence."""
        self._now_us += 1
        self._forgotten_us[part.number] = self._now_us
        part.known.clear()

    def _switch(self) -> None:
        if self._fate.switches:
            self._now_us += 1
            number = len(self.parts) + 1
            shape = self._fate.switches.pop(0)
            if self._fate.forgets and self._chance.random() < 0.3:
                self._collected = len(self.parts)
            self.parts.append(Part(number, *shape, begins_us=self._now_us))

    def _processed(self, call: PlayedCall) -> log_pb2.ProduceReply:
        request = call.inbox.popleft()
        reply = log_pb2.ProduceReply()
        # Frames that were held during a switch are judged by the rules of the sealed storage topic.
        was_held = False
        for frame in request.frames:
            if self._chance.random() < 0.1:
                self._switch()
                was_held = self._chance.random() < 0.5
            header = frames.read_header(frame)
            try:
                self._answer(frame, header, request.topic_epoch, was_held, reply)
            except DssError as error:
                reply.refusals.add(
                    partition=header.partition, sequence=header.sequence, error=wire_error(error)
                )
                if isinstance(error, PASSING):
                    # It takes no frame behind a repeated one.
                    call.inbox.clear()
                    call.lost = True
                    break
        return reply

    def _answer(
        self,
        frame: bytes,
        header: frames.Header,
        epoch: int,
        was_held: bool,
        reply: log_pb2.ProduceReply,
    ) -> None:
        part = self.parts[epoch - 1]
        if epoch <= self._collected:
            raise ProducerForgotten(stream="t/?/?")
        known = self._known(part, header)
        is_sealed = part is not self.parts[-1]
        if header.sequence not in known:
            # A new producer may begin at any sequence, also behind a frame that was refused.
            ahead = header.sequence - max(known, default=header.sequence - 1)
            if ahead < 0:
                raise SequenceTooOld(given=header.sequence, stream="t/?/?")
            key = part.number, header.partition, header.producer_id
            may_skip = ahead == 1 or key in self._in_doubt
            if not may_skip and (was_held or not is_sealed):
                raise SequenceGap(given=header.sequence, expected_after="?", stream="t/?/?")
            if is_sealed and was_held:
                raise StorageTopicSealed(topic="t", ordinal=epoch - 1)
            if is_sealed:
                raise StaleTopicEpoch(topic="t", current=self.parts[-1].number, given=epoch)
            if self._is_fault(0.05):
                raise Overloaded(what="the played daemon", limit=1)
            if self._is_fault(0.02):
                raise DiskFull
            self._in_doubt.discard(key)
            self._store(part, frame, header, known)
            repeated = False
        else:
            repeated = True
        base, records = known[header.sequence]
        reply.acks.add(
            partition=header.partition,
            sequence=header.sequence,
            ordinal=epoch - 1,
            base_offset=base,
            records=records,
            append_time_us=1,
            repeated=repeated,
            durability="sync",
        )

    def _known(self, part: Part, header: frames.Header) -> dict[int, tuple[int, int]]:
        key = header.partition, header.producer_id
        if self._fate.forgets and part.known and self._is_fault(0.1):
            self.forget(part)
        began = began_us(header.producer_id)
        assert began is not None
        if key not in part.known and began <= max(part.begins_us, self._forgotten_us[part.number]):
            raise ProducerForgotten(stream="t/?/?")
        return part.known.setdefault(key, {})

    def _store(
        self,
        part: Part,
        frame: bytes,
        header: frames.Header,
        known: dict[int, tuple[int, int]],
    ) -> None:
        stored = part.records[header.partition]
        known[header.sequence] = len(stored), header.records
        stamp = frames.stamped(
            frame, base_offset=len(stored), append_time_us=1, topic_epoch=1, storage_topic_id=1
        )
        batch = decode(stamp + frame[len(stamp) :])
        for key, payload in zip(batch.keys, batch.payloads, strict=True):
            if key is not None:
                hashed = key_hash(key)
                at = partition_of(self._router, hashed, part.partitions, part.factor)
                assert at == header.partition, "it was routed by another description"
            stored.append((key, bytes(payload)))
