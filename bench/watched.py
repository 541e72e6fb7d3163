"""What a steady watch of everything costs those who consume.

The same records are consumed with and without a dashboard that watches all there is, in turns, so
that what else the machine does hits both. Two hundred idle groups read the topic too, so that there
is something to look at.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from processes import Daemon
from workload import TOPIC

import dss_client

GROUPS = 200
TURNS = (False, True, True, False)
"""Watched or not: neither is always the first."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Means of the turns, in the unit of what was measured."""

    plain: float
    watched: float


async def compared(daemon: Daemon, consume: Callable[[str], Awaitable[float]]) -> Rates:
    """The rate of consuming, by a group of a name that is given, without and with a watcher."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        for number in range(GROUPS):
            await client.groups.create(f"$share/idle-{number}/{TOPIC}/#", start="earliest")
    rates: dict[bool, list[float]] = {False: [], True: []}
    for turn, is_watched in enumerate(TURNS):
        async with _watching(daemon) if is_watched else contextlib.nullcontext():
            rates[is_watched].append(await consume(f"turn-{turn}"))
    plain, watched = (sum(each) / len(each) for each in (rates[False], rates[True]))
    return Rates(plain, watched)


@contextlib.asynccontextmanager
async def _watching(daemon: Daemon) -> AsyncIterator[None]:
    """A dashboard, from its first complete picture on."""
    complete = asyncio.Event()

    async def watch() -> None:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            async for update in client.watch():
                if update.complete:
                    complete.set()

    watching = asyncio.create_task(watch(), name="dashboard")
    await complete.wait()
    try:
        yield
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
