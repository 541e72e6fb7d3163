"""Backpressure: how many bytes all calls together may have in flight to the log.

The log refuses a frame when its queue is full, and a refused frame leaves a gap in the sequence of
its producer. So calls wait here, first come, first served, and a slow disk slows producers down.

Invariant: no more than the maximum is taken, except by a single call that needs more than that.
"""

import asyncio
from collections import deque


class AppendBudget:
    """A bounded number of bytes, lent first come, first served."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._taken_bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size_bytes: int) -> None:
        """Wait until so many bytes are free, and take them."""
        if not self._waiting and self._fits(size_bytes):
            self._taken_bytes += size_bytes
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(size_bytes)
            else:
                self._waiting.remove((size_bytes, turn))
                self._admit()
            raise

    def give_back(self, size_bytes: int) -> None:
        """Return bytes that were taken."""
        self._taken_bytes -= size_bytes
        assert self._taken_bytes >= 0
        self._admit()

    def _fits(self, size_bytes: int) -> bool:
        return not self._taken_bytes or self._taken_bytes + size_bytes <= self._bytes_max

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            size_bytes, turn = self._waiting.popleft()
            self._taken_bytes += size_bytes
            turn.set_result(None)
