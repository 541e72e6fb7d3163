"""A topic of a daemon as one producer sees it through raw stubs: frames out, records in.

It outlives connections and daemons: each call is given the stubs to use.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

import grpc.aio

from dss_api.v1 import log_pb2, topics_pb2
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import DssError
from support.raw_stubs import Stubs, condition_of, produced


@dataclass(slots=True)
class Found:
    """The result of reading a stream."""

    records: dict[int, bytes] = field(default_factory=dict)
    """Payloads by offset."""
    damaged: list[tuple[int, int]] = field(default_factory=list)
    """Offsets that cannot be read."""
    ended: DssError | None = None
    """The condition that ended the read after them."""


class RawTopic:
    """Built by `created`; one producer of this topic, which counts its sequences."""

    def __init__(self, name: str, topic_epoch: int) -> None:
        self.name = name
        self.topic_epoch = topic_epoch
        self.producer_id = os.urandom(16)
        self._sequences: Counter[int] = Counter()

    @classmethod
    async def created(cls, stubs: Stubs, name: str, partitions: int = 1) -> Self:
        """A new topic."""
        request = topics_pb2.CreateTopicRequest(name=name, partitions=partitions)
        return cls(name, (await stubs.topics.Create(request)).topic_epoch)

    def frame(self, *payloads: bytes, partition: int = 0, subject: str = "") -> bytes:
        """The next frame for a partition, with records that have no key."""
        columns = Columns(payloads, None, subject or self.name, None, 1)
        sequence = self._sequences[partition]
        self._sequences[partition] += 1
        return build_frame(
            columns, partition=partition, producer_id=self.producer_id, sequence=sequence
        )

    async def send(self, stubs: Stubs, *frames: bytes) -> list[log_pb2.ProduceAck]:
        """Have frames stored, all in one request."""
        answers = await produced(stubs, self.name, self.topic_epoch, *frames)
        assert not answers.refusals, answers.refusals
        return list(answers.acks)

    async def put(self, stubs: Stubs, *payloads: bytes) -> list[int]:
        """Have one frame for each payload stored in the first partition; returns their offsets."""
        acks = await self.send(stubs, *map(self.frame, payloads))
        return [ack.base_offset for ack in acks]

    async def pour(self, stubs: Stubs, frames: Iterable[bytes]) -> int:
        """Have many large frames stored, one in each request; returns how many were."""
        call = stubs.log.Produce()

        async def write() -> None:
            for frame in frames:
                request = log_pb2.ProduceRequest(
                    topic=self.name, topic_epoch=self.topic_epoch, frames=[frame]
                )
                await call.write(request)
            await call.done_writing()

        stored = 0
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(write(), name="pour")
            async for reply in call:
                assert not reply.refusals, reply.refusals
                stored += len(reply.acks)
        return stored

    async def read(self, stubs: Stubs, partition: int = 0) -> Found:
        """All records of a stream."""
        found = Found()
        request = log_pb2.ReadRequest(stream=f"{self.name}/0/{partition}")
        try:
            async for reply in stubs.log.Read(request):
                found.damaged += [(each.start, each.end) for each in reply.damaged]
                if reply.frames:
                    batch = decode(reply.frames)
                    found.records.update(zip(batch.offsets, batch.payloads, strict=True))
        except grpc.aio.AioRpcError as aborted:
            found.ended = condition_of(aborted)
        return found
