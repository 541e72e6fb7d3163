"""Consuming in a fresh group from the beginning, by batch or by record, every record acked.

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
        began = time.perf_counter()
        await (by_batch if mode == "batch" else by_record)(subscription, records - 1)
        seconds = time.perf_counter() - began
    print(json.dumps({"records": records - 1, "seconds": seconds}))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
