"""A steady producer: one record each few milliseconds to a topic; how long their acks take, in ms.

Records are sent by the clock, whether those before were answered or not, so that a stall counts for
all that came in it. ``live.py ENDPOINT TOPIC SECONDS``.
"""

import asyncio
import json
import statistics
import sys
import time

from workload import KEYS, PAYLOAD

import dss_client

GAP_S = 0.005
WARM_UP = 40


async def main(endpoint: str, topic: str, seconds: float) -> None:
    taken_ms: list[float] = []
    async with (
        dss_client.connect(endpoint=endpoint) as client,
        client.producer(topic) as producer,
    ):

        async def once(number: int) -> None:
            began = time.perf_counter()
            await producer.send(PAYLOAD, key=KEYS[number % len(KEYS)])
            taken_ms.append((time.perf_counter() - began) * 1e3)

        for number in range(WARM_UP):
            await once(number)
        taken_ms.clear()
        print(json.dumps({"state": "ready"}), flush=True)
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number in range(int(seconds / GAP_S)):
                await asyncio.sleep(max(0.0, began + number * GAP_S - time.perf_counter()))
                tasks.create_task(once(number), name=f"record {number}")
    quantiles = statistics.quantiles(taken_ms, n=100)
    print(json.dumps({"p50_ms": quantiles[49], "p99_ms": quantiles[98], "max_ms": max(taken_ms)}))


asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
