"""How many bytes all calls together may have handed to the log without an answer.

The log refuses what its queue has no room for; a refused frame would be a gap for those behind
it. So callers wait here instead, in the order in which they came, and a slow disk slows them down.

Invariant: at most the maximum is taken, except by a single taker who takes more than that.
"""

import asyncio
from collections import deque


class AppendBudget:
    """A bounded number of bytes, given to takers first come, first served."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._taken_bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size_bytes: int) -> None:
        """Wait for room and take it."""
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
        """Return what was taken."""
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
