"""Every record fails once: refused by batch or one by one, until all wait in the retry queue; or
rejected by batch, each for another reason, until all are dead letters."""

import asyncio
import json
import sys
import time
from itertools import cycle

from workload import TOPIC

import dss_client

REASONS = ("a failure of the bench", "no such customer", "the bank is closed", "no stock")
"""Of batches by turns: numbers alone would make no other error of it."""


async def refuse_all(subscription: dss_client.Subscription, mode: str, records: int) -> None:
    seen, reasons = 0, cycle(REASONS)
    if mode != "record":
        async for batch in subscription.batches():
            refuse = batch.nak if mode == "batch" else batch.reject
            await refuse(error=next(reasons))
            seen += len(batch)
            if seen >= records:
                return
    async for record in subscription:
        await record.nak(error=REASONS[0])
        seen += 1
        if seen >= records:
            return


async def until_moved(client: dss_client.Client, group: str, records: int) -> None:
    while True:
        found = (await client.groups.describe(group)).group
        if found.retrying + found.dead >= records:
            return
        await asyncio.sleep(0.02)


async def main(endpoint: str, mode: str, group: str, records: int) -> None:
    async with (
        dss_client.connect(endpoint=endpoint) as client,
        client.subscribe(f"$share/{group}/{TOPIC}/#") as subscription,
    ):
        began = time.perf_counter()
        await refuse_all(subscription, mode, records)
        await until_moved(client, group, records)
        seconds = time.perf_counter() - began
    print(json.dumps({"records": records, "seconds": seconds}))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
