"""Consuming one by one, or by batch, until so many records of good keys are acknowledged; those of
bad keys are refused, or where it is said that nothing fails, acknowledged too."""

import asyncio
import json
import sys
import time

from ordered import BAD

import dss_client


async def by_record(subscription: dss_client.Subscription, good: int, *, fails: bool) -> None:
    async for record in subscription:
        if record.key is not None and record.key.startswith(BAD):
            await (record.nak() if fails else record.ack())
            continue
        await record.ack()
        good -= 1
        if not good:
            return


async def by_batch(subscription: dss_client.Subscription, good: int) -> None:
    async for batch in subscription.batches():
        await batch.ack()
        good -= len(batch)
        if good <= 0:
            return


async def main(endpoint: str, group: str, topic: str, mode: str, good: int) -> None:
    async with (
        dss_client.connect(endpoint=endpoint) as client,
        client.subscribe(f"$share/{group}/{topic}/#") as subscription,
    ):
        first = await subscription.fetch(1, timeout=20)
        await first[0].ack()
        began = time.perf_counter()
        if mode == "batch":
            await by_batch(subscription, good - 1)
        else:
            await by_record(subscription, good - 1, fails=mode == "fails")
        seconds = time.perf_counter() - began
    print(json.dumps({"records": good - 1, "seconds": seconds}))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])))
