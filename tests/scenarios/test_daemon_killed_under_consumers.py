"""The daemon dies again and again under consumers and a producer, which go on by themselves."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator

import pytest

import dss_client
from dss_client import DeliveredRecord, Producer, Subscription
from dssd.testing.revived import RevivedDaemon, revived

KILLS = 5
PATIENCE_S = 30.0
FILTER = "$share/g/t/#"


@pytest.fixture
async def daemon() -> AsyncIterator[RevivedDaemon]:
    """A daemon with a topic."""
    async with revived() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("t", partitions=4)
        yield daemon


class Seen:
    """What several consumers were handed, in the order in which they were."""

    def __init__(self) -> None:
        self.places: Counter[tuple[str, int]] = Counter()
        self.payloads: set[bytes] = set()
        self.unmarked: list[DeliveredRecord] = []
        self.by_consumer: Counter[str] = Counter()
        self._grown = asyncio.Condition()

    async def note(self, consumer: str, record: DeliveredRecord) -> None:
        place = (record.stream, record.offset)
        if self.places[place] and not record.redelivered:
            self.unmarked.append(record)
        self.places[place] += 1
        self.payloads.add(record.payload)
        self.by_consumer[consumer] += 1
        async with self._grown:
            self._grown.notify_all()

    async def until(self, distinct: int) -> None:
        """Wait until so many different records were handed out."""
        async with asyncio.timeout(PATIENCE_S), self._grown:
            await self._grown.wait_for(lambda: len(self.places) >= distinct)

    def assert_complete(self, payloads: set[bytes]) -> None:
        """No record is missing, none is there twice under two offsets, no stream has a gap."""
        assert self.payloads == payloads
        assert len(self.places) == len(payloads)
        offsets: dict[str, list[int]] = defaultdict(list)
        for stream, offset in self.places:
            offsets[stream].append(offset)
        for found in offsets.values():
            assert sorted(found) == list(range(len(found)))


async def consume(subscription: Subscription, seen: Seen, name: str) -> None:
    """Take and acknowledge until drained."""
    async for record in subscription:
        await seen.note(name, record)
        await record.ack()


async def send(producer: Producer, first: int, count: int) -> None:
    """Send numbered records; returns when they are durable."""
    for number in range(first, first + count):
        await producer.enqueue(b"%d" % number, key=b"%d" % (number % 50))
    await producer.flush()


async def test_a_shared_group_of_two_members_sees_every_record_and_each_duplicate_is_marked(
    daemon: RevivedDaemon,
) -> None:
    portion = 500
    seen = Seen()
    async with (
        dss_client.connect("one", endpoint=daemon.endpoint) as first,
        dss_client.connect("two", endpoint=daemon.endpoint) as second,
        first.subscribe(FILTER, start="earliest") as one,
        second.subscribe(FILTER, start="earliest") as two,
        first.producer("t") as producer,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(consume(one, seen, "one"), name="one")
        tasks.create_task(consume(two, seen, "two"), name="two")
        for kill in range(KILLS):
            sending = tasks.create_task(send(producer, kill * portion, portion), name="send")
            # In the midst of it: some were delivered, some are on their way, some not sent yet.
            await seen.until(kill * portion + portion // 3)
            await daemon.revive()
            await sending
        await seen.until(KILLS * portion)
        await one.drain()
        await two.drain()
    seen.assert_complete({b"%d" % number for number in range(KILLS * portion)})
    assert seen.unmarked == []
    assert set(seen.by_consumer) == {"one", "two"}


async def test_one_loop_over_a_private_subscription_outlives_five_daemons(
    daemon: RevivedDaemon,
) -> None:
    portion = 300
    seen = Seen()
    async with (
        dss_client.connect("me", session_expiry=600, endpoint=daemon.endpoint) as client,
        client.subscribe("t/#", start="earliest") as subscription,
        client.producer("t") as producer,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(consume(subscription, seen, "me"), name="me")
        for kill in range(KILLS):
            sending = tasks.create_task(send(producer, kill * portion, portion), name="send")
            await seen.until(kill * portion + portion // 3)
            await daemon.revive()
            await sending
        await seen.until(KILLS * portion)
        await subscription.drain()
    seen.assert_complete({b"%d" % number for number in range(KILLS * portion)})
    assert seen.unmarked == []


async def test_a_resumed_private_subscription_gets_exactly_the_unacknowledged_in_order_and_marked(
    daemon: RevivedDaemon,
) -> None:
    handed, acked, total = 20, 8, 40
    async with (
        dss_client.connect("me", session_expiry=600, endpoint=daemon.endpoint) as client,
        client.subscribe("t/#", start="earliest") as subscription,
    ):
        async with client.producer("t") as producer:
            for number in range(total):
                await producer.send(b"%d" % number, key=b"one stream")
        for _ in range(2):
            records = await subscription.fetch(handed, PATIENCE_S)
            base = records[0].offset
            # Of every two one is acknowledged, so what is left has gaps.
            for record in records[: 2 * acked : 2]:
                await record.ack()
            await records[2 * acked - 2].ack(sync=True)
            kept = [r for r in records if r.offset not in range(base, base + 2 * acked, 2)]
            await daemon.revive()
            again = await subscription.fetch(len(kept), PATIENCE_S)
            assert [(r.stream, r.offset, r.payload) for r in again] == [
                (r.stream, r.offset, r.payload) for r in kept
            ]
            assert all(record.redelivered for record in again)
            for record in again[:-1]:
                await record.ack()
            await again[-1].ack(sync=True)
            async with client.producer("t") as producer:
                for number in range(handed):
                    await producer.send(b"more %d" % number, key=b"one stream")
