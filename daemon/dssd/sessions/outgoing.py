"""The queue of items for a client.

Records in it are bounded by the session's credit. Other items answer the client or tell of its
grants; a client that causes them and reads none is ended at a named bound.
"""

import asyncio
from collections import deque

from dssd.core.delivering import Deliver
from dssd.limits import OUTGOING_ITEMS_MAX
from dssd.sessions.items import Down


class Outgoing:
    """One producer of items and one consumer, on one loop."""

    def __init__(self) -> None:
        self._items: deque[Down] = deque()
        self._small = 0
        self._closed = False
        self._changed = asyncio.Event()

    def put(self, item: Down) -> bool:
        """Queue an item; False where the client left too many unread. After `close`: dropped."""
        if self._closed:
            return True
        if type(item) is not Deliver:
            if self._small >= OUTGOING_ITEMS_MAX:
                return False
            self._small += 1
        self._items.append(item)
        self._changed.set()
        return True

    def close(self) -> None:
        """Take no more items; those that are queued, records apart, still go."""
        self._closed = True
        self._items = deque(item for item in self._items if type(item) is not Deliver)
        self._changed.set()

    async def take(self) -> Down | None:
        """The next item; None when the queue is closed and empty."""
        while not self._items:
            if self._closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        item = self._items.popleft()
        if type(item) is not Deliver:
            self._small -= 1
        return item
