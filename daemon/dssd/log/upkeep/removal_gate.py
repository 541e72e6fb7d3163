"""Blocks removals of the log's files while a snapshot lists them.

Invariant: while the gate is held, no removal is under way and none begins. It is held for moments
only. This module must not know files.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class RemovalGate:
    """The gate of one log. Used on the event loop."""

    def __init__(self) -> None:
        self._removing = 0
        self._held = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def removing(self) -> AsyncIterator[None]:
        """Remove files inside this block; waits while the gate is held."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._held)
            self._removing += 1
        try:
            yield
        finally:
            self._removing -= 1
            await self._tell()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold the gate inside this block; waits until removals under way have ended."""
        self._held += 1
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: not self._removing)
            yield
        finally:
            self._held -= 1
            await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()
