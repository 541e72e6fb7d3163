"""Sends heartbeats to the service manager while the daemon works.

Invariant: a heartbeat is sent from the event loop, after the log's writer has done all earlier
work. So a stuck loop or writer stops the heartbeats, and the watchdog kills the daemon.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn, Protocol


class Beaten(Protocol):
    """The receiver of heartbeats."""

    @property
    def beat_s(self) -> float:
        """How often."""

    def alive(self, status: str) -> None:
        """Send one heartbeat."""


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
        """Send heartbeats until cancelled."""
        while True:
            await self._reach_writer()
            self._manager.alive(self._status())
            await asyncio.sleep(self._manager.beat_s)
