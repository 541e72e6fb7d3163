"""Backpressure: how many bytes all calls together may have in flight to the log.

The log refuses a frame when its queue is full, and a refused frame leaves a gap in the sequence of
its producer. So calls wait here, and a slow disk slows producers down. The owner that holds least
goes first, so that no owner waits behind all of another one's calls; within an owner the order is
first come, first served.

Invariant: no more than the maximum is taken, except by a single call that needs more than that.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Hashable

_Waiting = tuple[int, asyncio.Future[None]]


class AppendBudget:
    """A bounded number of bytes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._taken_bytes = 0
        self._held: Counter[Hashable] = Counter()
        """By owner: what is taken."""
        self._waiting: dict[Hashable, deque[_Waiting]] = {}
        """Waiting calls by owner, in order of arrival."""

    def of(self, owner: Hashable) -> "AppendShare":
        """The view of the budget for calls of one owner."""
        return AppendShare(self, owner)

    async def take(self, owner: Hashable, size_bytes: int) -> None:
        """Wait until so many bytes are free for the owner, and take them."""
        if not self._waiting and self._fits(size_bytes):
            self._hold(owner, size_bytes)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        own = self._waiting.setdefault(owner, deque())
        own.append((size_bytes, turn))
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._admit()
            else:
                self.give_back(owner, size_bytes)
            raise

    def give_back(self, owner: Hashable, size_bytes: int) -> None:
        """Return bytes that were taken."""
        self._hold(owner, -size_bytes)
        self._admit()

    def _fits(self, size_bytes: int) -> bool:
        return not self._taken_bytes or self._taken_bytes + size_bytes <= self._bytes_max

    def _hold(self, owner: Hashable, size_bytes: int) -> None:
        self._taken_bytes += size_bytes
        self._held[owner] += size_bytes
        assert self._held[owner] >= 0
        if not self._held[owner]:
            del self._held[owner]

    def _admit(self) -> None:
        while self._waiting:
            owner = min(self._waiting, key=self._held.__getitem__)
            own = self._waiting[owner]
            size_bytes, turn = own[0]
            if not turn.cancelled() and not self._fits(size_bytes):
                return
            own.popleft()
            if not own:
                del self._waiting[owner]
            if not turn.cancelled():  # its caller has not resumed yet
                self._hold(owner, size_bytes)
                turn.set_result(None)


class AppendShare:
    """The budget, for calls of one owner."""

    def __init__(self, budget: AppendBudget, owner: Hashable) -> None:
        self._budget = budget
        self._owner = owner

    async def take(self, size_bytes: int) -> None:
        """Wait until so many bytes are free, and take them."""
        await self._budget.take(self._owner, size_bytes)

    def give_back(self, size_bytes: int) -> None:
        """Return bytes that were taken."""
        self._budget.give_back(self._owner, size_bytes)
