"""A steady producer, by the clock: one record each few milliseconds, until its ack.

``live.py ENDPOINT TOPIC SECONDS``.
"""

import asyncio
import sys

from by_the_clock import measured
from workload import KEYS, PAYLOAD

import dss_client


async def main(endpoint: str, topic: str, seconds: float) -> None:
    async with (
        dss_client.connect(endpoint=endpoint) as client,
        client.producer(topic) as producer,
    ):

        async def send(number: int) -> None:
            await producer.send(PAYLOAD, key=KEYS[number % len(KEYS)])

        await measured(send, seconds)


asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
