"""Sends 20,000 records a second until it is killed.

Prints one line when it has begun, then one a second: how late its ticks were, at the 99th
percentile, in milliseconds. A record that is sent late says nothing of the daemon.
"""

import asyncio
import json
import statistics
import sys
import time

from workload import KEYS, PAYLOAD, TOPIC

import dss_client

RECORDS_PER_SECOND = 20_000
TICK_S = 0.005
TICKS_PER_LINE = 200


async def main(endpoint: str) -> None:
    per_tick = int(RECORDS_PER_SECOND * TICK_S)
    late_ms: list[float] = []
    async with dss_client.connect(endpoint=endpoint) as client, client.producer(TOPIC) as producer:
        await producer.send(PAYLOAD)
        print("ready", flush=True)
        due = time.perf_counter()
        while True:
            late_ms.append((time.perf_counter() - due) * 1e3)
            for number in range(per_tick):
                await producer.enqueue(PAYLOAD, key=KEYS[number])
            if len(late_ms) == TICKS_PER_LINE:
                late = statistics.quantiles(late_ms, n=100)[98]
                print(json.dumps({"late_p99_ms": late}), flush=True)
                late_ms.clear()
            due += TICK_S
            await asyncio.sleep(max(0.0, due - time.perf_counter()))


asyncio.run(main(sys.argv[1]))
