"""The queue of items for a client.

The session's credit bounds the records in it. Other items are answers or concern grants; a client
that causes them without reading them is disconnected at a named bound.

Consecutive deliveries of a stream that wait here are joined into one message, because a message
costs the client and the transport as much as a hundred records. For the same reason consecutive
deliveries are bundled into one item for clients that understand bundles. Invariant: joining moves a
delivery ahead of deliveries of other grants only, never ahead of another item.
"""

import asyncio
from collections import deque

from dss_core.progress import normalised
from dssd.limits import OUTGOING_ITEMS_MAX
from dssd.machines.delivery.events import Deliver
from dssd.sessions.client_items import Bundle, Down
from dssd.sessions.delivery_budget import DeliveryAccount

DELIVERY_BYTES_USUAL = 1 << 20
"""The size up to which waiting deliveries of a stream are joined."""

BUNDLE_DELIVERIES_MAX = 64
"""The most deliveries in one item: what a client takes in between two looks at its other work."""

DELIVERY_WRITE_COPIES = 3
"""How many copies of a message exist while it is written: the item, its encoding, and the buffer of
gRPC, until the client's flow control lets them go."""


class _Pile:
    """Deliveries of one grant that are sent as one message."""

    __slots__ = ("bytes", "deliveries")

    def __init__(self, first: Deliver) -> None:
        self.deliveries = [first]
        self.bytes = len(first.frames)

    def add(self, item: Deliver) -> bool:
        """Add a delivery, if it continues the last one and has the same marks."""
        last = self.deliveries[-1]
        if item.base != last.end or (item.redelivered, item.attempt) != last[3:5]:
            return False
        if self.bytes + len(item.frames) > DELIVERY_BYTES_USUAL:
            return False
        self.deliveries.append(item)
        self.bytes += len(item.frames)
        return True

    def joined(self) -> Deliver:
        """All deliveries of the pile, as one."""
        first, last = self.deliveries[0], self.deliveries[-1]
        if first is last:
            return first
        frames = b"".join(each.frames for each in self.deliveries)
        mask = normalised(stretch for each in self.deliveries for stretch in each.mask)
        return first._replace(frames=frames, mask=mask, end=last.end)


class Outgoing:
    """Filled and emptied on one loop; one task empties it.

    The account is told of the bytes of records, until they are `written`.
    """

    def __init__(self, account: DeliveryAccount, *, takes_bundles: bool = False) -> None:
        self.closed = False
        """It takes no more items, and ends once it is empty."""
        self._account = account
        self._bundled_max = BUNDLE_DELIVERIES_MAX if takes_bundles else 1
        self._writing = 0
        self._items: deque[Down | _Pile] = deque()
        self._piles: dict[int, _Pile] = {}
        """By grant: the pile that a delivery may still join."""
        self._small = 0
        self._changed = asyncio.Event()

    def put(self, item: Down) -> bool:
        """Queue an item; False where too many wait unread. After `close` the item is dropped."""
        if self.closed:
            return True
        if isinstance(item, Deliver):
            self._put_delivery(item)
        elif self._small >= OUTGOING_ITEMS_MAX:
            return False
        else:
            self._small += 1
            self._piles.clear()
            self._items.append(item)
        self._changed.set()
        return True

    def _put_delivery(self, item: Deliver) -> None:
        self._account.queued(len(item.frames))
        pile = self._piles.get(item.grant)
        if pile is None or not pile.add(item):
            pile = self._piles[item.grant] = _Pile(item)
            self._items.append(pile)

    def close(self) -> None:
        """Take no more items; queued items are still sent, except records."""
        self.closed = True
        dropped = sum(item.bytes for item in self._items if type(item) is _Pile)
        self._account.queued(-dropped)
        self._items = deque(item for item in self._items if type(item) is not _Pile)
        self._changed.set()

    def wake(self) -> None:
        """End the wait for a change without an item."""
        self._changed.set()

    async def changed(self) -> None:
        """Wait for the next item, or a `wake`."""
        self._changed.clear()
        await self._changed.wait()

    def take(self) -> Down | None:
        """The next item, once the last one is `written`; None where there is none."""
        if not self._items:
            return None
        item = self._items.popleft()
        if not isinstance(item, _Pile):
            self._small -= 1
            return item
        deliveries = [self._taken(item)]
        size = item.bytes
        while (pile := self._next_in_bundle(len(deliveries), size)) is not None:
            deliveries.append(self._taken(pile))
            size += pile.bytes
        self._writing = size * DELIVERY_WRITE_COPIES
        self._account.queued(self._writing - size)
        return deliveries[0] if len(deliveries) == 1 else Bundle(tuple(deliveries))

    def _next_in_bundle(self, count: int, size: int) -> _Pile | None:
        """Take the next pile that fits into a bundle of so many deliveries and bytes."""
        if count >= self._bundled_max or not self._items:
            return None
        following = self._items[0]
        if not isinstance(following, _Pile) or size + following.bytes > DELIVERY_BYTES_USUAL:
            return None
        del self._items[0]
        return following

    def _taken(self, pile: _Pile) -> Deliver:
        """Take the pile out: no further delivery joins it."""
        grant = pile.deliveries[0].grant
        if self._piles.get(grant) is pile:
            del self._piles[grant]
        return pile.joined()

    def written(self) -> None:
        """The item that was taken last is written, or never will be."""
        if self._writing:
            self._account.queued(-self._writing)
            self._writing = 0
