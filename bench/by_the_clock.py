"""Messages that leave by the clock, one each few milliseconds, and how long each takes, in ms.

They leave whether those before were answered or not, so a stall counts for all that came in it.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable

GAP_S = 0.005
WARM_UP = 40


async def measured(send: Callable[[int], Awaitable[object]], seconds: float) -> None:
    """Print how long messages took; each has a number, and is answered when ``send`` is done."""
    taken_ms: list[float] = []

    async def once(number: int) -> None:
        began = time.perf_counter()
        await send(number)
        taken_ms.append((time.perf_counter() - began) * 1e3)

    for number in range(WARM_UP):
        await once(number)
    taken_ms.clear()
    print(json.dumps({"state": "ready"}), flush=True)
    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(int(seconds / GAP_S)):
            await asyncio.sleep(max(0.0, began + number * GAP_S - time.perf_counter()))
            tasks.create_task(once(number), name=f"message {number}")
    quantiles = statistics.quantiles(taken_ms, n=100)
    print(json.dumps({"p50_ms": quantiles[49], "p99_ms": quantiles[98], "max_ms": max(taken_ms)}))
