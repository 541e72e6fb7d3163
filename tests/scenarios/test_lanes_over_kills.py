"""A group with queues whose daemon is killed again and again while records fail."""

import asyncio
from collections import Counter

import pytest

from dss_client import Client, DeliveredRecord, Group, Reject, connect
from dss_core.lane import MAIN
from support.proof_share import share
from support.revived_daemon import RevivedDaemon, revived

KILLS, MAX_DELIVER = share(1, 4), 3
RECORDS = 200 * (KILLS + 1)
FAILS = frozenset(range(0, RECORDS, 7))
ONCE = frozenset(range(0, RECORDS, 5)) - FAILS
NEVER = frozenset(range(0, RECORDS, 11)) - FAILS - ONCE
DEAD = FAILS | NEVER
PATIENCE_S = 30.0

pytestmark = pytest.mark.slow("several lives of a daemon")


class Consumer:
    """Fails, refuses for good, or does what it is given, each record by its number."""

    def __init__(self) -> None:
        self.attempts: Counter[int] = Counter()
        self.done: Counter[int] = Counter()
        self.taken = asyncio.Condition()

    async def take(self, record: DeliveredRecord) -> None:
        number = int(record.payload)
        self.attempts[number] += 1
        async with self.taken:
            self.taken.notify_all()
        if number in NEVER:
            raise Reject(f"never {number}")
        # A refusal that died with the daemon counts nowhere, so attempts do not tell of it.
        if number in FAILS or (number in ONCE and record.level == MAIN):
            raise ValueError(f"no {number}")
        self.done[number] += 1

    async def run(self, client: Client) -> None:
        async with client.subscribe("$share/g/orders/#") as subscription:
            await subscription.run(self.take, concurrency=8)

    async def reaches(self, attempts: int) -> None:
        async with self.taken:
            await self.taken.wait_for(lambda: self.attempts.total() >= attempts)


async def filled(client: Client) -> None:
    await client.topics.create("orders", partitions=2)
    await client.groups.create(
        "$share/g/orders/#", max_deliver=MAX_DELIVER, backoff=[0.01], ack_wait=20
    )
    async with client.producer("orders") as producer:
        for number in range(RECORDS):
            await producer.enqueue(b"%d" % number, key=b"%d" % number)


async def settled(client: Client) -> Group:
    """The group, once all of its records are acknowledged or dead."""
    while True:
        group = next(each for each in await client.groups.list() if each.name == "g")
        if group.lag == 0 and group.retrying == 0 and group.dead == len(DEAD):
            return group
        await asyncio.sleep(0.05)


async def killed_under(consumer: Consumer, daemon: RevivedDaemon) -> None:
    for kill in range(1, KILLS + 1):
        await consumer.reaches(kill * RECORDS // (KILLS + 1))
        await daemon.revive()


async def test_every_record_is_done_or_dead_once_though_its_daemon_is_killed() -> None:
    consumer = Consumer()
    async with asyncio.timeout(PATIENCE_S), revived() as daemon:
        client = connect("c", endpoint=daemon.endpoint, session_expiry=60)
        async with client, asyncio.TaskGroup() as tasks:
            await filled(client)
            running = tasks.create_task(consumer.run(client))
            await killed_under(consumer, daemon)
            group = await settled(client)
            running.cancel()
    assert consumer.done.keys() == set(range(RECORDS)) - DEAD
    assert group.fates is not None
    assert group.fates.acked + group.fates.retried == RECORDS
    assert group.fates.retried >= len(DEAD | ONCE)
    # Each kill may take what was not reported yet.
    assert max(consumer.attempts[number] for number in FAILS) <= MAX_DELIVER + 2 * KILLS
