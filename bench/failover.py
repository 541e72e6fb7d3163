"""How long a group is without service when the daemon dies.

A member reads the topic; a producer in this process sends a record to every partition each few
milliseconds, so that a gap shows at once. What counts is the time from the signal to the next
delivery after the start of the new daemon.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from processes import Daemon, started_program
from workload import KEYS, PAYLOAD, TOPIC

import dss_client

SEND_EVERY_S = 0.005
WARM_DELIVERIES = 200
WAIT_SECONDS_MAX = 30.0


class Deliveries:
    """What one member prints, read as it comes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def ready(self) -> None:
        """Wait until it is subscribed."""
        assert (await self._line()).startswith("ready")

    async def next(self) -> tuple[int, str]:
        """When, and from which stream, it was given a record."""
        time_ns, stream, _ = (await self._line()).split()
        return int(time_ns), stream

    async def _line(self) -> str:
        assert self.process.stdout is not None
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            return (await self.process.stdout.readline()).decode()


@contextlib.asynccontextmanager
async def steady_producer(endpoint: str) -> AsyncIterator[None]:
    """Send on every partition until the block ends, whatever happens to the daemon."""
    async with dss_client.connect(endpoint=endpoint) as client, client.producer(TOPIC) as producer:

        async def send() -> None:
            number = 0
            while True:
                for _ in range(24):
                    await producer.enqueue(PAYLOAD, key=KEYS[number % len(KEYS)])
                    number += 1
                await asyncio.sleep(SEND_EVERY_S)

        task = asyncio.create_task(send())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def daemon_death_ms(daemon: Daemon, group: str) -> float:
    """Milliseconds from kill -9 of the daemon, started again at once, to the next delivery."""
    async with started_program("member", daemon.endpoint, group, "one") as first:
        one = Deliveries(first)
        await one.ready()
        async with steady_producer(daemon.endpoint):
            for _ in range(WARM_DELIVERIES):
                await one.next()
            killed_ns = time.monotonic_ns()
            daemon.kill()
            await daemon.process.wait()
            await daemon.start()
            while True:
                at_ns, _ = await one.next()
                if at_ns > killed_ns + 50_000_000:
                    return (at_ns - killed_ns) / 1e6
