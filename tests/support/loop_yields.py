"""Whether a call yields to other tasks while it runs."""

import asyncio
from collections.abc import Awaitable


async def turns_of_others(call: Awaitable[object]) -> int:
    """How often another task ran during the call."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(other(), name="other")
        await call
        running.cancel()
    return turns
