"""The budget of bytes that all sessions together hold: read for a client, and not yet sent.

A client that reads nothing may let its whole credit wait here; a few hundred such clients could
take all memory of the machine. So all sessions read from one budget, and none holds more than is
left free. While few sessions wait, each reads as far ahead as its credit allows. With many, each
reads a little, and sessions whose clients keep reading go on. Sessions of one owner, a principal
with a token, together hold no more than is left free: other owners have room, however many sessions
one opens. A session that holds nothing may always read a usual frame.

Invariant: the held bytes are within the budget, except for one read of each session that held
nothing, and for frames that are larger than asked for. A waiting session is tried again soon after
another one gave bytes back.
"""

import asyncio
from collections import Counter, deque

from dss_core.limits import FRAME_BYTES_USUAL
from dssd.sessions.limits import DELIVERY_BYTES_MAX

DELIVERY_ROOM_S = 0.01
"""How soon waiting sessions are tried again after another session gave bytes back."""


_Waiting = tuple[int, asyncio.Future[int]]


class DeliveryBudget:
    """How many bytes all sessions hold."""

    def __init__(self, most: int = DELIVERY_BYTES_MAX) -> None:
        self.held_bytes = 0
        self._most = most
        self._held: Counter[str] = Counter()
        """Held bytes by owner; sessions without an owner are not in it."""
        self._waiting: dict[DeliveryAccount, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def free_bytes(self) -> int:
        """How many bytes are left; below 0 while sessions that held nothing read more than that."""
        return self._most - self.held_bytes

    def account(self, owner: str = "") -> "DeliveryAccount":
        """The account of one more session; without an owner it shares a bound with no other."""
        return DeliveryAccount(self, owner)

    def held_by(self, owner: str) -> int:
        """What the sessions of an owner hold."""
        return self._held[owner]

    def waits(self, account: "DeliveryAccount") -> None:
        """A session waits to read."""
        self._waiting[account] = None

    def moved(self, by: int, owner: str) -> None:
        """An owner's sessions hold so many bytes more, or less."""
        self.held_bytes += by
        if owner:
            self._held[owner] += by
            if not self._held[owner]:
                del self._held[owner]
        if by < 0 and self._waiting and self._timer is None:
            # Not at once: each delivery gives bytes back, and there may be many sessions to ask.
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(DELIVERY_ROOM_S, self._ask)

    def _ask(self) -> None:
        self._timer = None
        for account in list(self._waiting):
            if account.admit():
                del self._waiting[account]


class DeliveryAccount:
    """What one session holds: reads under way, chunks that were read, items queued for its
    client."""

    def __init__(self, budget: DeliveryBudget, owner: str) -> None:
        self._budget = budget
        self.owner = owner
        """The owner whose sessions share a bound; empty: none."""
        self._reading = 0
        self._window = 0
        self._queued = 0
        self._waiting: deque[_Waiting] = deque()

    @property
    def held_bytes(self) -> int:
        """All of it."""
        return self._reading + self._window + self._queued

    async def take(self, wanted_bytes: int) -> int:
        """Wait until so much, or enough of it, may be read; returns how much. Then call `read`."""
        size = self.room(wanted_bytes)
        if not size:
            room: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            self._waiting.append((wanted_bytes, room))
            self._budget.waits(self)
            try:
                return await room
            except asyncio.CancelledError:
                if not room.cancelled():
                    self.read(room.result())
                raise
        self._begin(size)
        return size

    def room(self, wanted_bytes: int) -> int:
        """How much may be read at once, before a call of `window`; 0: wait for it with `take`."""
        return 0 if self._waiting else self._room(wanted_bytes)

    def read(self, size: int) -> None:
        """A read of so many bytes is over; `window` accounts for its result."""
        self._reading -= size
        self._moved(-size)

    def window(self, held: int) -> None:
        """So many bytes were read and wait for credit."""
        if held != self._window:
            by = held - self._window
            self._window = held
            self._moved(by)

    def queued(self, by: int) -> None:
        """So many bytes more wait to be written to the client, or less."""
        self._queued += by
        self._moved(by)

    def close(self) -> None:
        """The session has ended: what was read and waits for credit is dropped."""
        self.window(0)

    def admit(self) -> bool:
        """Wake waiting sessions while there is room; returns whether none waits any more."""
        while self._waiting:
            wanted_bytes, room = self._waiting[0]
            size = self._room(wanted_bytes)
            if not size:
                return False
            self._waiting.popleft()
            if not room.done():  # else it was cancelled
                self._begin(size)
                room.set_result(size)
        return True

    def _room(self, wanted_bytes: int) -> int:
        """How much may be read without holding more than is left free; 0: not worth a read."""
        held = self.held_bytes
        shared = self._budget.held_by(self.owner) if self.owner else held
        size = min(wanted_bytes, (self._budget.free_bytes - shared) // 2)
        least = min(wanted_bytes, FRAME_BYTES_USUAL)
        if size >= least:
            return size
        return 0 if held else least

    def _begin(self, size: int) -> None:
        self._reading += size
        self._budget.moved(size, self.owner)

    def _moved(self, by: int) -> None:
        self._budget.moved(by, self.owner)
        if by < 0 and self._waiting:
            self.admit()
