import asyncio
import time

from dssd.measuring.limits import LOOP_LOOK_S
from dssd.measuring.loop_delay import LoopDelay


async def test_a_loop_that_was_held_is_seen_to_be_late() -> None:
    delay = LoopDelay()
    looking = asyncio.create_task(delay.run())
    await asyncio.sleep(0)
    time.sleep(2 * LOOP_LOOK_S)  # noqa: ASYNC251 - holds the loop
    async with asyncio.timeout(60):
        while not delay.delays.sum_s:  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(0)
    looking.cancel()
    assert delay.delays.sum_s >= LOOP_LOOK_S / 2
