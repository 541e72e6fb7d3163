"""A full buffer, routed by a description of before a switch: until all of it is stored.

With another number of partitions, the topic grows to them just before, unseen by the producer.
Prints how long that took, what processor time it cost this process, and for how long its event loop
was held at most.
"""

import asyncio
import json
import sys
import time

from workload import KEYS, TOPIC

import dss_client
from dss_core.changes import GrowTopic

RECORDS = 250_000
PAYLOAD = b"x" * 85
"""So many fill the buffer of a producer, nearly."""
LOOK_S = 0.001


async def most_held_ms(looks: list[float]) -> None:
    """Note how late the loop is, until cancelled."""
    while True:
        due = time.perf_counter() + LOOK_S
        await asyncio.sleep(LOOK_S)
        looks.append((time.perf_counter() - due) * 1e3)


async def main(endpoint: str, partitions: int) -> None:
    late_ms: list[float] = []
    async with dss_client.connect(endpoint=endpoint) as client, client.producer(TOPIC) as producer:
        # Arrow is loaded by now, as in each program that sends so much.
        await producer.send_columns([PAYLOAD] * len(KEYS), KEYS)
        if partitions:
            grown = await client.operations.apply(GrowTopic(TOPIC, partitions))
            assert (await client.operations.ended(grown.number)).state == "done"
        for number in range(RECORDS):
            producer.send_nowait(PAYLOAD, key=KEYS[number % len(KEYS)])
        async with asyncio.TaskGroup() as tasks:
            looking = tasks.create_task(most_held_ms(late_ms), name="looks at the loop")
            began_s, spent_s = time.perf_counter(), time.process_time()
            await producer.flush()
            seconds, cpu_s = time.perf_counter() - began_s, time.process_time() - spent_s
            looking.cancel()
    print(json.dumps({"seconds": seconds, "cpu_ms": cpu_s * 1e3, "held_ms": max(late_ms)}))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
