"""One of two daemons, in memory or a process, with raw Attach calls to it."""

import asyncio
from dataclasses import dataclass
from itertools import count
from typing import Any

from dss_api.v1 import log_pb2, sessions_pb2, types_pb2
from dss_client.testing import MemoryDaemon
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import DssError
from support.raw_stubs import Stubs, condition, produced

PRODUCER = b"p" * 16
ANSWER_S_MAX = 60.0
EARLIEST = types_pb2.Start(earliest=True)
names = count(1)

Up = sessions_pb2.SessionUp
Range = types_pb2.Range


@dataclass(frozen=True, slots=True)
class Under:
    """One of the two daemons, with the topic ``t`` of two partitions, and nothing in it."""

    stubs: Stubs
    topic_epoch: int
    memory: MemoryDaemon | None

    async def produce(self, *frames: bytes) -> log_pb2.ProduceReply:
        """Answers to frames of ``t``."""
        return await produced(self.stubs, "t", self.topic_epoch, *frames)

    async def revoke_one(self, call: "Call") -> int:
        """Take one stream back from a session that holds both; returns the number of its grant."""
        if self.memory is not None:
            self.memory.revoke(1, deadline_ms=10_000)
        else:
            other = Call(self.stubs)
            await other.opened()
            await other.say(subscribe=subscribe(1, call.filter))
        return int((await call.hear("revoke")).grant)


@dataclass(frozen=True, slots=True)
class Seen:
    """One delivered record."""

    grant: int
    offset: int
    payload: bytes
    redelivered: bool
    attempt: int


class Call:
    """One Attach call. Items that a test does not ask for are skipped, as a client may do."""

    def __init__(self, stubs: Stubs) -> None:
        self.stubs = stubs
        self.call = stubs.sessions.Attach()
        self.filter = f"$share/g{next(names)}/t/#"
        self.kept: list[sessions_pb2.Deliver] = []
        self.session = sessions_pb2.Opened()

    async def say(self, **item: Any) -> None:  # noqa: ANN401 # an item of any kind
        await self.call.write(Up(**item))

    async def next(self) -> sessions_pb2.SessionDown:
        """The next item."""
        async with asyncio.timeout(ANSWER_S_MAX):
            item = await self.call.read()
        assert isinstance(item, sessions_pb2.SessionDown), "the call has ended"
        return item

    async def hear(self, kind: str) -> Any:  # noqa: ANN401 # an item of any kind
        """The next item of the kind; deliveries that come before it are kept."""
        while True:
            item = await self.next()
            if item.WhichOneof("item") == kind:
                return getattr(item, kind)
            if item.WhichOneof("item") == "deliver":
                self.kept.append(item.deliver)

    async def opened(self, **fields: Any) -> sessions_pb2.Opened:  # noqa: ANN401 # fields of Open
        await self.say(open=sessions_pb2.Open(**fields))
        self.session = await self.hear("opened")
        return self.session

    async def again(self) -> "Call":
        """A newer connection of the same session and group."""
        call = Call(self.stubs)
        call.filter = self.filter
        await call.opened(client_id=self.session.client_id, session_id=self.session.session_id)
        return call

    async def refusal(self) -> type[DssError]:
        """The condition of the next error."""
        return type(condition((await self.hear("error")).error))

    async def lent(self, number: int = 1) -> dict[str, sessions_pb2.Granted]:
        """Subscribe; returns both grants, by stream."""
        await self.say(subscribe=subscribe(number, self.filter))
        await self.hear("subscribed")
        granted = [await self.hear("granted") for _ in range(2)]
        return {each.stream: each for each in granted}

    async def records(self, number: int) -> list[Seen]:
        """This many delivered records."""
        seen: list[Seen] = []
        while len(seen) < number:
            item = self.kept.pop(0) if self.kept else await self.hear("deliver")
            decoded = decode(item.frames, tuple((each.start, each.end) for each in item.mask))
            for offset, payload in zip(decoded.offsets, decoded.payloads, strict=True):
                seen.append(Seen(item.grant, offset, payload, item.redelivered, item.attempt))
        assert len(seen) == number
        return seen

    async def settle(self, grant: int, *acked: tuple[int, int], **fields: Any) -> None:  # noqa: ANN401 # fields of Settle
        ranges = [Range(start=start, end=end) for start, end in acked]
        settle = sessions_pb2.Settle(grant=grant, acked=ranges, **fields)
        await self.say(settle=sessions_pb2.SettleBatch(settles=[settle]))

    async def settled(self, grant: int, *acked: tuple[int, int], frontier: int) -> None:
        """Settle, and wait until it is durable."""
        await self.settle(grant, *acked, frontier=frontier, token=7)
        assert (await self.hear("settled")).token == 7

    async def leave(self, number: int = 1) -> None:
        """Unsubscribe."""
        await self.say(unsubscribe=sessions_pb2.Unsubscribe(subscription=number))
        assert (await self.hear("unsubscribed")).subscription == number


def subscribe(number: int, filter: str) -> sessions_pb2.Subscribe:
    return sessions_pb2.Subscribe(subscription=number, filter=filter, start=EARLIEST)


def frame(
    sequence: int,
    *payloads: bytes,
    partition: int = 0,
    subject: str = "t",
    producer: bytes = PRODUCER,
) -> bytes:
    """A frame of records without keys."""
    columns = Columns(payloads, None, subject)
    return build_frame(columns, partition=partition, producer_id=producer, sequence=sequence)
