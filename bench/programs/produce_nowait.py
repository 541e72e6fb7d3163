"""Producing by one `producer.send_nowait` a record, durable acks awaited at the end."""

import asyncio
import json
import sys
import time

from workload import KEYS, PAYLOAD, TOPIC

import dss_client
from dss_client import DssError
from dss_core.errors import BufferFull


async def main(endpoint: str, records: int) -> None:
    async with dss_client.connect(endpoint=endpoint) as client, client.producer(TOPIC) as producer:
        await producer.send(PAYLOAD, key=KEYS[0])
        keys = (KEYS * (records // len(KEYS) + 1))[:records]
        began = time.perf_counter()
        for key in keys:
            try:
                producer.send_nowait(PAYLOAD, key=key)
            except BufferFull:
                await producer.enqueue(PAYLOAD, key=key)
        await producer.flush()
        seconds = time.perf_counter() - began
    print(json.dumps({"records": records, "seconds": seconds}))


try:
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
except DssError as error:
    sys.exit(f"{error.code}: {error}")
