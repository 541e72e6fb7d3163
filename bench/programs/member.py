"""A member of a group that acknowledges each record, and prints when it was given which.

A line a record: the time in nanoseconds of the clock that all processes share, and the stream.
"""

import asyncio
import sys
import time

from workload import TOPIC

import dss_client


async def main(endpoint: str, group: str, client_id: str) -> None:
    async with (
        dss_client.connect(client_id, endpoint=endpoint) as client,
        client.subscribe(f"$share/{group}/{TOPIC}/#") as subscription,
    ):
        print("ready", flush=True)
        async for record in subscription:
            print(time.monotonic_ns(), record.stream, flush=True)
            await record.ack()


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3]))
