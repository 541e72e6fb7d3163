"""Records of a topic that are dead in a group, on a daemon process."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from dss_client import Client

GROUP = "billing@orders/#"
SUBSCRIBED = "$share/billing/orders/#"
PATIENCE_S = 30.0
KEYS = 6


def key_of(number: int) -> bytes:
    """The key of a record; its payload is the number."""
    return b"k%d" % (number % KEYS)


async def produce(client: Client, numbers: Iterable[int]) -> None:
    """Publish records with these numbers; each has a header of its own."""
    async with client.producer("orders") as producer:
        for number in numbers:
            producer.send_nowait(
                b"%d" % number, key=key_of(number), subject="orders/eu", headers=[("n", b"own")]
            )
        await producer.flush()


async def grouped(client: Client, partitions: int = 2) -> None:
    """The topic, and a group in which a record is dead once it is rejected."""
    await client.topics.create("orders", partitions=partitions)
    await client.groups.create(SUBSCRIBED, max_deliver=3, backoff=(3_600.0,))


async def rejected(client: Client, numbers: Iterable[int]) -> None:
    """A member takes these records and rejects them; it keeps its streams."""
    async with member(client, numbers):
        pass


@asynccontextmanager
async def member(client: Client, numbers: Iterable[int]) -> AsyncIterator[None]:
    """A member that has rejected these records, and holds their streams."""
    left = set(numbers)
    async with client.subscribe(SUBSCRIBED) as subscription:
        async with asyncio.timeout(PATIENCE_S):
            records = aiter(subscription)
            while left:
                record = await anext(records)
                number = int(record.payload)
                left.discard(number)
                await record.reject(error=f"no price for {number}")
        yield


async def dead(client: Client) -> list[int]:
    """The numbers of the records that are dead now."""
    return sorted(
        [int(each.payload) async for each in client.queues.dead_letters(GROUP, whole=True)]
    )
