"""Tells the service manager that the daemon works, as long as it does.

Invariant: a beat comes from the event loop, after the writer of the log did all that was handed to
it before. So a loop or a writer that is stuck ends the beats, and the watchdog ends the daemon.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn, Protocol


class Beaten(Protocol):
    """What takes the beats."""

    @property
    def beat_s(self) -> float:
        """How often."""

    def alive(self, status: str) -> None:
        """One beat."""


class Heartbeat:
    """Run it as a task; it ends only by cancellation."""

    def __init__(
        self,
        manager: Beaten,
        reach_writer: Callable[[], Awaitable[None]],
        status: Callable[[], str],
    ) -> None:
        self._manager = manager
        self._reach_writer = reach_writer
        self._status = status

    async def run(self) -> NoReturn:
        """Beat again and again."""
        while True:
            await self._reach_writer()
            self._manager.alive(self._status())
            await asyncio.sleep(self._manager.beat_s)
