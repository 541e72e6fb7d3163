"""A client that uses what every version of the library has: it runs with an older one as well.

``send FIRST COUNT``, ``take COUNT`` or ``read``, each to its end. Prints one JSON document: records
by payload, or the condition by which it was refused.
"""

import asyncio
import json
import sys
from typing import Any

import dss_client
from dss_client import DssError

TOPIC = "orders"
FILTER = "$share/billing/orders/#"
KEYS = 7
PATIENCE_S = 60.0


async def send(client: Any, first: int, count: int) -> dict[str, Any]:  # noqa: ANN401 - of any version
    if not await client.topics.list():
        await client.topics.create(TOPIC, partitions=3)
        await client.groups.create(FILTER, start="earliest")
    sent = {}
    async with client.producer(TOPIC) as producer:
        for number in range(first, first + count):
            ack = await producer.send(b"%d" % number, key=b"%d" % (number % KEYS))
            sent[str(number)] = [ack.stream, ack.offset]
    return sent


async def take(client: Any, count: int) -> dict[str, Any]:  # noqa: ANN401 - of any version
    taken = {}
    async with client.subscribe(FILTER) as subscription:
        async for record in subscription:
            taken[record.payload.decode()] = [record.stream, record.offset]
            await record.ack(sync=True)
            if len(taken) >= count:
                break
        await subscription.drain()
    return taken


async def read(client: Any) -> dict[str, Any]:  # noqa: ANN401 - of any version
    reading = client.read(f"{TOPIC}/#", start="earliest")
    return {record.payload.decode(): [record.stream, record.offset] async for record in reading}


async def main(endpoint: str, what: str, *numbers: str) -> None:
    work: Any = {"send": send, "take": take, "read": read}[what]
    try:
        async with (
            asyncio.timeout(PATIENCE_S),
            dss_client.connect("c", endpoint=endpoint) as client,
        ):
            done = await work(client, *map(int, numbers))
    except DssError as refused:
        done = {"refused": [refused.code, refused.message]}
    print(json.dumps(done))  # noqa: T201 - its output


asyncio.run(main(*sys.argv[1:]))
