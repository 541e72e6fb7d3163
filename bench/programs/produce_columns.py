"""Producing by the columns API: `producer.send_columns`, durable acks awaited."""

import asyncio
import json
import sys
import time

from workload import KEYS, PAYLOAD, TOPIC

import dss_client

COLUMNS_RECORDS = 24_000
IN_FLIGHT = 4


async def main(endpoint: str, records: int, topic: str = TOPIC) -> None:
    keys = (KEYS * (COLUMNS_RECORDS // len(KEYS) + 1))[:COLUMNS_RECORDS]
    payloads = [PAYLOAD] * COLUMNS_RECORDS
    async with dss_client.connect(endpoint=endpoint) as client, client.producer(topic) as producer:
        await producer.send_columns(payloads=payloads, keys=keys)
        calls = records // COLUMNS_RECORDS

        async def send() -> None:
            nonlocal calls
            while calls > 0:
                calls -= 1
                await producer.send_columns(payloads=payloads, keys=keys)

        sent = calls * COLUMNS_RECORDS
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(IN_FLIGHT):
                tasks.create_task(send())
        seconds = time.perf_counter() - began
    print(json.dumps({"records": sent, "seconds": seconds}))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
