"""One record from producer to consumer, both in this process, over the daemon; in milliseconds.

`idle`: one at a time. `loaded`: a second producer keeps a rate of 20,000 records a second. The
cost of one fdatasync of a small append to a file in the same directory is measured beside it.
"""

import asyncio
import json
import os
import statistics
import sys
import time
from pathlib import Path

from workload import KEYS, PARTITIONS, PAYLOAD, TOPIC

import dss_client

SAMPLES = 400
LOAD_PER_SECOND = 20_000
LOAD_TICK_S = 0.005
PROBE = b"probe" * 20


def fdatasync_ms(directory: Path) -> list[float]:
    path = directory / "probe"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    taken = []
    try:
        for _ in range(100):
            began = time.perf_counter()
            os.write(descriptor, PROBE)
            os.fdatasync(descriptor)
            taken.append((time.perf_counter() - began) * 1e3)
    finally:
        os.close(descriptor)
        path.unlink()
    return taken


async def load(producer: dss_client.Producer) -> None:
    per_tick = int(LOAD_PER_SECOND * LOAD_TICK_S)
    due = time.perf_counter()
    while True:
        for number in range(per_tick):
            await producer.enqueue(PAYLOAD, key=KEYS[number])
        due += LOAD_TICK_S
        await asyncio.sleep(max(0.0, due - time.perf_counter()))


async def probe(
    subscription: dss_client.Subscription, producer: dss_client.Producer, gap_s: float
) -> list[float]:
    sent: dict[bytes, float] = {}
    taken: list[float] = []

    async def receive() -> None:
        async for record in subscription:
            if record.payload.startswith(b"probe"):
                taken.append((time.perf_counter() - sent[record.payload]) * 1e3)
            await record.ack()
            if len(taken) == SAMPLES:
                return

    receiver = asyncio.create_task(receive())
    for number in range(SAMPLES):
        payload = b"probe %08d" % number
        sent[payload] = time.perf_counter()
        await producer.send(payload, key=KEYS[number])
        await asyncio.sleep(gap_s)
    await receiver
    return taken


async def main(endpoint: str, group: str, mode: str, directory: str) -> None:
    lent = asyncio.Semaphore(0)
    async with (
        dss_client.connect(endpoint=endpoint) as client,
        client.producer(TOPIC) as producer,
        client.producer(TOPIC) as loader,
        client.subscribe(
            f"$share/{group}/{TOPIC}/#", on_grant=lambda _: lent.release()
        ) as subscription,
    ):
        # The first record is sent when every stream is lent, so that joining is not in it.
        for _ in range(PARTITIONS):
            await lent.acquire()
        await producer.send(PAYLOAD)
        await loader.send(PAYLOAD)
        loading = asyncio.create_task(load(loader)) if mode == "loaded" else None
        taken = await probe(subscription, producer, 0.002)
        if loading is not None:
            loading.cancel()
    syncs = fdatasync_ms(Path(directory))
    print(
        json.dumps(
            {
                "p50_ms": statistics.median(taken),
                "p99_ms": statistics.quantiles(taken, n=100)[98],
                "fdatasync_p50_ms": statistics.median(syncs),
            }
        )
    )


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4]))
