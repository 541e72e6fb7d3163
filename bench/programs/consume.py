"""Consuming in a fresh group from the beginning, every record acked: by batch, by record, a hundred
at a time, or by a handler that does nothing.

As messages, records come through the JetStream facade, in the same loop.
"""

import asyncio
import json
import sys
import time

from workload import TOPIC

import dss_client


async def by_batch(subscription: dss_client.Subscription, records: int) -> None:
    seen = 0
    async for batch in subscription.batches():
        seen += len(batch)
        await batch.ack()
        if seen >= records:
            return


async def by_record(subscription: dss_client.Subscription, records: int) -> None:
    seen = 0
    async for record in subscription:
        seen += 1
        await record.ack()
        if seen >= records:
            return


async def by_fetch(subscription: dss_client.Subscription, records: int) -> None:
    seen = 0
    while seen < records:
        fetched = await subscription.fetch(100)
        for record in fetched:
            await record.ack()
        seen += len(fetched)


async def by_run(subscription: dss_client.Subscription, records: int) -> None:
    seen, done = 0, asyncio.Event()

    async def handle(_: dss_client.DeliveredRecord) -> None:
        nonlocal seen
        seen += 1
        if seen == records:
            done.set()

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(subscription.run(handle), name="run")
        await done.wait()
        running.cancel()


WAYS = {"batch": by_batch, "record": by_record, "fetch": by_fetch, "run": by_run}


async def by_message(endpoint: str, group: str, records: int) -> float:
    async with dss_client.connect(endpoint=endpoint) as client:
        subscription = await client.jetstream().subscribe(stream=TOPIC, durable=group)
        await (await subscription.next_msg(timeout=20)).ack()
        began = time.perf_counter()
        seen = 0
        async for message in subscription.messages:
            seen += 1
            await message.ack()
            if seen >= records:
                break
        return time.perf_counter() - began


async def main(endpoint: str, mode: str, group: str, records: int) -> None:
    if mode == "message":
        seconds = await by_message(endpoint, group, records - 1)
        print(json.dumps({"records": records - 1, "seconds": seconds}))
        return
    async with (
        dss_client.connect(endpoint=endpoint) as client,
        client.subscribe(f"$share/{group}/{TOPIC}/#", start="earliest") as subscription,
    ):
        # The clock starts with the first record, so that joining is not in it.
        first = await subscription.fetch(1, timeout=20)
        await first[0].ack()
        began, spent_s = time.perf_counter(), time.process_time()
        await WAYS[mode](subscription, records - 1)
        seconds, cpu_s = time.perf_counter() - began, time.process_time() - spent_s
    print(json.dumps({"records": records - 1, "seconds": seconds, "cpu_s": cpu_s}))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
