"""How long records of good keys take from producer to consumer, in milliseconds, while those of bad
keys fail again and again, or do not; both ends are in this process."""

import asyncio
import json
import statistics
import sys
import time

from ordered import BAD, BAD_EVERY
from workload import KEYS, TOPIC

import dss_client

A_SECOND = 1_000
SECONDS = 12
WARM_UP_S = 2
TICK_S = 0.01


async def produce(producer: dss_client.Producer) -> None:
    """So many a second, each with the time at which it was sent."""
    began, sent = time.perf_counter(), 0
    while (now := time.perf_counter() - began) < SECONDS:
        while sent < now * A_SECOND:
            number = sent % len(KEYS)
            key = BAD + KEYS[number] if number % BAD_EVERY == 0 else KEYS[number]
            producer.send_nowait(b"%.6f" % time.perf_counter(), key=key)
            sent += 1
        await asyncio.sleep(TICK_S)


async def consume(
    subscription: dss_client.Subscription, took_ms: list[float], *, fails: bool
) -> None:
    began = time.perf_counter()
    async for record in subscription:
        now = time.perf_counter()
        if record.key is not None and record.key.startswith(BAD):
            await (record.nak() if fails else record.ack())
            continue
        if now - began > WARM_UP_S:
            took_ms.append((now - float(record.payload)) * 1e3)
        await record.ack()


async def main(endpoint: str, group: str, mode: str) -> None:
    took_ms: list[float] = []
    async with (
        dss_client.connect(endpoint=endpoint) as client,
        client.producer(TOPIC) as producer,
        client.subscribe(f"$share/{group}/{TOPIC}/#") as subscription,
        asyncio.TaskGroup() as tasks,
    ):
        consuming = tasks.create_task(
            consume(subscription, took_ms, fails=mode == "fails"), name="consume"
        )
        await produce(producer)
        await asyncio.sleep(1)
        consuming.cancel()
    cuts = statistics.quantiles(took_ms, n=100)
    print(json.dumps({"p50_ms": cuts[49], "p99_ms": cuts[98], "records": len(took_ms)}))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3]))
