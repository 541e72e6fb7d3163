"""Sends two records to every partition each few milliseconds, whatever happens to the daemon.

Another pause, in seconds, may be given. Prints one line when the first is acknowledged, and goes on
until it is killed.
"""

import asyncio
import sys

from workload import PAYLOAD, TOPIC, key_of_each_partition

import dss_client

SEND_EVERY_S = 0.005


async def main(endpoint: str, every_s: float) -> None:
    keys = 2 * key_of_each_partition()
    async with dss_client.connect(endpoint=endpoint) as client, client.producer(TOPIC) as producer:
        await producer.send(PAYLOAD, key=keys[0])
        print("ready", flush=True)
        while True:
            for key in keys:
                await producer.enqueue(PAYLOAD, key=key)
            await asyncio.sleep(every_s)


asyncio.run(main(sys.argv[1], float(sys.argv[2]) if sys.argv[2:] else SEND_EVERY_S))
