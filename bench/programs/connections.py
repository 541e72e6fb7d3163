"""Many clients that connect and ask once, so many at a time, all of them there at the end."""

import asyncio
import json
import sys
import time
from contextlib import AsyncExitStack

import dss_client

AT_A_TIME = 50


async def main(endpoint: str, count: int) -> None:
    room = asyncio.Semaphore(AT_A_TIME)
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(dss_client.connect(endpoint=endpoint))
            for _ in range(count)
        ]

        async def ask(client: dss_client.Client) -> None:
            async with room:
                await client.topics.list()

        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for client in clients:
                tasks.create_task(ask(client))
        print(json.dumps({"seconds": time.perf_counter() - began}))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
