"""Consuming by `run` in a fresh group, where a share of the records is refused the first time."""

import asyncio
import json
import sys
import time

from refusals import is_refused
from workload import TOPIC

import dss_client


async def main(endpoint: str, group: str, records: int, percent: int, keys: int) -> None:
    handled = 0
    began = 0.0
    all_handled = asyncio.Event()

    async def handle(record: dss_client.DeliveredRecord) -> None:
        nonlocal handled, began
        began = began or time.perf_counter()
        if record.attempt == 1 and is_refused(int(record.payload), percent, keys):
            await record.nak()
            return
        handled += 1
        if handled == records:
            all_handled.set()

    async with (
        dss_client.connect(endpoint=endpoint) as client,
        client.subscribe(f"$share/{group}/{TOPIC}/#", start="earliest") as subscription,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(subscription.run(handle), name="run")
        await all_handled.wait()
        seconds = time.perf_counter() - began
        await subscription.drain()
    print(json.dumps({"seconds": seconds}))


asyncio.run(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
