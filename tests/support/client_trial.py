"""A trial: some sixty operations of every kind on a daemon that may die during any of them.

`Trial.steps` does them one after the other and keeps a `Journal` of what was tried and what was
answered; `support.trial_verdict` judges the daemon afterwards by it. Invariant: the journal gets a
fact before the daemon can act on it (tried), or after it answered (done), never in between. All
payloads differ, and tell their producer and its order.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import dss_client
from dss_client import Client, DeliveredRecord, DssError, Producer, Subscription

ORDERS = "orders"
EXPIRING = "expiring"
"""The topic whose oldest records retention removes."""
PASSING = "passing"
"""The topic that is created and removed again."""
GROUP = "team"
FILTER = f"$share/{GROUP}/{ORDERS}/#"
MEMBER = "member"

KEPT_BYTES = 16 << 10
"""Retention of the expiring topic."""
LARGE_BYTES = 8 << 10
"""A payload so large that a few fill a segment of the trial's daemon."""
KEYS = 4
PATIENCE_S = 60.0
POLL_S = 0.01

Place = tuple[str, int]
"""Stream and offset."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation."""

    do: Callable[[], Awaitable[None]]
    adds: bool = False
    """It adds something, so a full disk may refuse it; then it may be repeated."""


@dataclass(slots=True)
class Journal:
    """What was tried, and what the daemon answered."""

    tried: dict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    """Payloads by topic."""
    stored: dict[Place, bytes] = field(default_factory=dict)
    """Acknowledged records."""
    creating: set[str] = field(default_factory=set)
    created: set[str] = field(default_factory=set)
    removing: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    handed: set[Place] = field(default_factory=set)
    """Handed to the member of the group, and reported to the daemon."""
    settling: set[Place] = field(default_factory=set)
    """Acknowledged by the member."""
    settled: set[Place] = field(default_factory=set)
    """Acknowledged, and the daemon confirmed that this is durable."""


class Trial:
    """One run. Its steps need the block of `async with` and run in order, each once."""

    def __init__(self, endpoint: str, journal: Journal) -> None:
        self.journal = journal
        self.client: Client = dss_client.connect(MEMBER, endpoint=endpoint)
        self._open = AsyncExitStack()
        self._producers: dict[str, Producer] = {}
        self._numbers: dict[bytes, int] = defaultdict(int)
        self._subscription: Subscription
        self._records: list[DeliveredRecord] = []

    async def __aenter__(self) -> Self:
        """Connect."""
        await self._open.enter_async_context(self.client)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the group and close the connection."""
        await self._open.__aexit__(kind, error, trace)

    def steps(self) -> list[Step]:
        """All operations."""
        settle, acknowledge = Step(self.settle), Step(self.acknowledge)
        return [
            Step(lambda: self.create(ORDERS, partitions=2), adds=True),
            Step(lambda: self.create(EXPIRING, retention_bytes=KEPT_BYTES), adds=True),
            *[Step(lambda: self.send(ORDERS, b"slow"), adds=True)] * 8,
            Step(lambda: self.send_many(ORDERS, b"busy", 20), adds=True),
            Step(lambda: self.send_columns(ORDERS, b"bulk", 150), adds=True),
            Step(self.join),
            Step(lambda: self.take(4)),
            *[settle] * 4,
            Step(lambda: self.create(PASSING, partitions=3), adds=True),
            *[Step(lambda: self.send(PASSING, b"pass"), adds=True)] * 3,
            Step(lambda: self.remove(PASSING)),
            *[Step(lambda: self.send(EXPIRING, b"old", LARGE_BYTES), adds=True)] * 12,
            Step(lambda: self.take(6)),
            *[settle, acknowledge] * 3,
            *[Step(lambda: self.send(ORDERS, b"large", LARGE_BYTES), adds=True)] * 6,
            Step(self.expire),
            Step(lambda: self.send_columns(ORDERS, b"bulk", 40), adds=True),
            Step(lambda: self.send_many(EXPIRING, b"busy", 10), adds=True),
            Step(lambda: self.take(6)),
            *[settle] * 6,
            Step(self.leave),
        ]

    async def create(
        self, topic: str, *, partitions: int = 1, retention_bytes: int | None = None
    ) -> None:
        """Create a topic and a producer for it."""
        self.journal.creating.add(topic)
        await self.client.topics.create(
            topic, partitions=partitions, retention_bytes=retention_bytes
        )
        self.journal.created.add(topic)
        producer = await self._open.enter_async_context(self.client.producer(topic))
        self._producers[topic] = producer

    async def remove(self, topic: str) -> None:
        """Remove a topic with its records."""
        self.journal.removing.add(topic)
        await self.client.topics.remove(topic)
        self.journal.removed.add(topic)

    async def send(self, topic: str, habit: bytes, size_bytes: int = 0) -> None:
        """Send one record and await its ack."""
        payload, key = self._next(topic, habit, size_bytes)
        ack = await self._producers[topic].send(payload, key=key)
        self.journal.stored[ack.stream, ack.offset] = payload

    async def send_many(self, topic: str, habit: bytes, count: int) -> None:
        """Have many records in flight at once."""
        producer = self._producers[topic]
        deliveries = []
        for _ in range(count):
            payload, key = self._next(topic, habit)
            deliveries.append((payload, await producer.enqueue(payload, key=key)))
        refused: DssError | None = None
        for payload, delivery in deliveries:
            try:
                ack = await delivery
            except DssError as error:
                refused = error
            else:
                self.journal.stored[ack.stream, ack.offset] = payload
        if refused is not None:
            raise refused

    async def send_columns(self, topic: str, habit: bytes, count: int) -> None:
        """Send all of them in one frame, to one stream."""
        payloads = [self._next(topic, habit)[0] for _ in range(count)]
        (ack,) = await self._producers[topic].send_columns(payloads, [habit] * count)
        for at, payload in enumerate(payloads):
            self.journal.stored[ack.stream, ack.offset + at] = payload

    async def join(self) -> None:
        """Become a member of the group, which this declares."""
        subscription = self.client.subscribe(FILTER, start="earliest")
        self._subscription = await self._open.enter_async_context(subscription)

    async def take(self, count: int) -> None:
        """Take records. The daemon learns of these hand-outs with the next settle."""
        records = await self._subscription.fetch(count, PATIENCE_S)
        assert len(records) == count
        self._records += records

    async def settle(self) -> None:
        """Acknowledge the next record; returns when that is durable."""
        record = self._records.pop(0)
        place = (record.stream, record.offset)
        self.journal.settling.add(place)
        await record.ack(sync=True)
        self.journal.settled.add(place)
        handed = {(each.stream, each.offset) for each in self._records}
        # The settle of a stream also tells how far its records were handed out.
        self.journal.handed |= {each for each in handed if each[0] == record.stream}

    async def acknowledge(self) -> None:
        """Acknowledge the next record, without waiting."""
        record = self._records.pop(0)
        self.journal.settling.add((record.stream, record.offset))
        await record.ack()

    async def leave(self) -> None:
        """Stop taking records; those that were acknowledged are settled."""
        await self._subscription.drain()
        self.journal.settled |= self.journal.settling

    async def expire(self) -> None:
        """Wait until retention has removed records."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                described = await self.client.topics.describe(EXPIRING)
                if described.producing.streams[0].start > 0:
                    return
                await asyncio.sleep(POLL_S)

    def _next(self, topic: str, habit: bytes, size_bytes: int = 0) -> tuple[bytes, bytes]:
        """The next payload of a habit, noted as tried, and its key."""
        number = self._numbers[habit + topic.encode()]
        self._numbers[habit + topic.encode()] += 1
        payload = (b"%s %d " % (habit, number)).ljust(size_bytes, b".")
        self.journal.tried[topic].add(payload)
        return payload, b"k%d" % (number % KEYS)


async def perform(journal: Journal, endpoint: str, ended: Awaitable[object]) -> bool:
    """Do the steps until all are done or the daemon ends; tells which."""

    async def every_step() -> None:
        trial = Trial(endpoint, journal)
        async with trial:
            for step in trial.steps():
                await step.do()

    return await done_before(every_step(), ended)


async def done_before(work: Coroutine[Any, Any, None], ended: Awaitable[object]) -> bool:
    """Whether work on a daemon was complete before the daemon ended; in any case the work is
    over."""
    steps = asyncio.create_task(work, name="trial")
    waiting = asyncio.ensure_future(ended)
    try:
        await asyncio.wait([steps, waiting], return_when=asyncio.FIRST_COMPLETED)
        if steps.done() and steps.exception() is not None:
            # A call may notice the end before the process is gone.
            await asyncio.wait([waiting], timeout=PATIENCE_S)
        if waiting.done():
            return False
        await steps
        return True
    finally:
        for task in (steps, waiting):
            task.cancel()
        await asyncio.gather(steps, waiting, return_exceptions=True)
