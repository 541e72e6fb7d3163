"""Measures the delay of the event loop, which every call and timer pays.

Invariant: it costs one timer ten times a second, and changes nothing.
"""

import asyncio
from typing import NoReturn

from dssd.measuring.latencies import Latencies
from dssd.measuring.limits import LATENCY_BOUNDS_S, LOOP_LOOK_S


class LoopDelay:
    """Run it as a task; it ends only by cancellation."""

    def __init__(self) -> None:
        self.delays = Latencies(LATENCY_BOUNDS_S)

    async def run(self) -> NoReturn:
        """Sample until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due_s = loop.time() + LOOP_LOOK_S
            await asyncio.sleep(LOOP_LOOK_S)
            self.delays.note(max(0.0, loop.time() - due_s))
