"""A well-behaved pair: a record every few milliseconds, from a producer to a consumer of its own.

Prints the time of each record in milliseconds as it comes, with the moment by the clock that all
processes share; an error of either ends it. Its topic must be there.
"""

import asyncio
import sys
import time

from workload import PAYLOAD

import dss_client

SEND_EVERY_S = 0.02


async def receive(subscription: dss_client.Subscription, sent: dict[bytes, int]) -> None:
    async for record in subscription:
        now_ns = time.monotonic_ns()
        took_ms = (now_ns - sent.pop(record.payload[:8], now_ns)) / 1e6
        await record.ack()
        print(now_ns, f"{took_ms:.3f}", flush=True)


async def main(endpoint: str, topic: str) -> None:
    sent: dict[bytes, int] = {}
    async with (
        dss_client.connect("pair", endpoint=endpoint) as client,
        client.producer(topic) as producer,
        client.subscribe(f"$share/pair/{topic}/#", start="earliest") as subscription,
    ):
        receiving = asyncio.create_task(receive(subscription, sent))
        print("ready", flush=True)
        number = 0
        while not receiving.done():
            name = b"%08d" % number
            sent[name] = time.monotonic_ns()
            await producer.enqueue(name + PAYLOAD)
            number += 1
            await asyncio.sleep(SEND_EVERY_S)
        await receiving


asyncio.run(main(sys.argv[1], sys.argv[2]))
