"""The daemon dies again and again under consumers and a producer, which go on by themselves."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import dss_client
from dss_client import Producer, Subscription
from support.proof_share import share
from support.recorded_run import Place, Recorded
from support.revived_daemon import RevivedDaemon, revived
from support.settled_group import until_settled
from support.trial_verdict import read

pytestmark = pytest.mark.slow("several lives of a daemon")


KILLS = share(2, 5)
PATIENCE_S = 60.0
FILTER = "$share/g/t/#"
PARTITIONS = 4


@pytest.fixture
async def daemon() -> AsyncIterator[RevivedDaemon]:
    """A daemon with a topic."""
    async with revived() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("t", partitions=PARTITIONS)
        yield daemon


class Seen:
    """What several consumers of a group were handed."""

    def __init__(self, group: str) -> None:
        self.recorded = Recorded(group)
        self.recorded.declare(f"t/0/{partition}" for partition in range(PARTITIONS))
        self.consumers: set[str] = set()
        self._places: set[Place] = set()
        self._grown = asyncio.Condition()

    async def consume(self, subscription: Subscription, name: str) -> None:
        """Take and acknowledge until drained."""
        async for record in subscription:
            self.recorded.handed_out(name, record)
            self.consumers.add(name)
            self._places.add((record.stream, record.offset))
            async with self._grown:
                self._grown.notify_all()
            await self.recorded.acknowledge(name, record)

    async def until(self, distinct: int) -> None:
        """Wait until so many different records were handed out."""
        async with asyncio.timeout(PATIENCE_S), self._grown:
            await self._grown.wait_for(lambda: len(self._places) >= distinct)

    async def send(self, producer: Producer, first: int, count: int) -> None:
        """Send numbered records; returns when they are durable."""
        payloads = [b"%d" % number for number in range(first, first + count)]
        self.recorded.send(*payloads)
        coming = [await producer.enqueue(payload, key=payload[-2:]) for payload in payloads]
        await producer.flush()
        for payload, delivery in zip(payloads, coming, strict=True):
            self.recorded.stored(await delivery, payload)

    async def lose_daemons(self, daemon: RevivedDaemon, producer: Producer, portion: int) -> None:
        """A portion is sent and handed out for each daemon, which is killed in the midst of it."""
        for kill in range(KILLS):
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.send(producer, kill * portion, portion), name="send")
                # Some were delivered, some are on their way, some not sent yet.
                await self.until(kill * portion + portion // 3)
                self.recorded.disturb("the daemon is killed")
                await daemon.revive()
        await self.until(KILLS * portion)


@pytest.mark.parametrize("protocol", share(["borrow"], ["borrow", "lease"]))
async def test_a_shared_group_of_two_members_sees_every_record_and_each_duplicate_is_marked(
    protocol: str, daemon: RevivedDaemon, tmp_path: Path
) -> None:
    async with dss_client.connect(endpoint=daemon.endpoint) as operator:
        await operator.groups.create(FILTER, start="earliest", protocol=protocol)
    seen = Seen("g")
    told = seen.recorded.granted
    async with (
        dss_client.connect("one", endpoint=daemon.endpoint) as first,
        dss_client.connect("two", endpoint=daemon.endpoint) as second,
        first.subscribe(FILTER, start="earliest", on_grant=told) as one,
        second.subscribe(FILTER, start="earliest", on_grant=told) as two,
        first.producer("t") as producer,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(seen.consume(one, "one"), name="one")
        tasks.create_task(seen.consume(two, "two"), name="two")
        await seen.lose_daemons(daemon, producer, portion=500)
        await until_settled(first, "g")
        await one.drain()
        await two.drain()
    # Once both have left: what one gives back on leaving is lent to the other.
    async with dss_client.connect(endpoint=daemon.endpoint) as operator:
        log, standings = await read(operator, "t"), await operator.grants.list("g")
    seen.recorded.judge(tmp_path / "history.jsonl", log, standings)
    assert seen.consumers == {"one", "two"}


async def test_one_loop_over_a_private_subscription_outlives_five_daemons(
    daemon: RevivedDaemon, tmp_path: Path
) -> None:
    seen = Seen("me")
    told = seen.recorded.granted
    async with (
        dss_client.connect("me", session_expiry=600, endpoint=daemon.endpoint) as client,
        client.subscribe("t/#", start="earliest", on_grant=told) as subscription,
        client.producer("t") as producer,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(seen.consume(subscription, "me"), name="me")
        await seen.lose_daemons(daemon, producer, portion=300)
        await until_settled(client, subscription.group)
        await subscription.drain()
        log, standings = await read(client, "t"), await client.grants.list(subscription.group)
    seen.recorded.judge(tmp_path / "history.jsonl", log, standings)


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
