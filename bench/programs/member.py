"""A member of a group that prints the time of each delivery: nanoseconds of the shared clock.

With `hold` it acknowledges nothing, so that its streams have something to give back.
"""

import asyncio
import sys
import time

from workload import TOPIC

import dss_client


async def main(endpoint: str, group: str, mode: str) -> None:
    async with (
        dss_client.connect(endpoint=endpoint, client_id=f"{group}-{mode}") as client,
        client.subscribe(f"$share/{group}/{TOPIC}/#") as subscription,
    ):
        print("ready", flush=True)
        async for record in subscription:
            print(time.monotonic_ns(), record.stream, record.offset, flush=True)
            if mode != "hold":
                await record.ack()


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3]))
