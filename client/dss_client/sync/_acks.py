"""Acks on their way from the user's threads to the grant, which lives in the loop.

The first ack wakes the loop; while acks come, the loop looks for them at its own pace, so that
an ack costs the user an append. Invariant: an ack that was left here reaches its grant, in order;
`deliver`, called in the loop, brings all that were left before.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dss_client._grant import HeldGrant
    from dss_client.sync._portal import Portal
    from dss_core.progress import Ranges

LEFT_ACKS_S = 0.002
"""How often the loop looks for acks that threads left, while any come; as long as records
gather."""


def _nothing() -> None:
    """The grant is told when it reports."""


class AckBox:
    """The acks of one grant."""

    __slots__ = ("_grant", "_note", "awake", "leave", "offsets", "portal", "ranges")

    def __init__(
        self, portal: "Portal", grant: "HeldGrant", note: Callable[[], None] = _nothing
    ) -> None:
        self.portal = portal
        self.offsets: list[int] = []  # bounded by the credit given to the daemon
        self.leave = self.offsets.append
        """Called with the offset of a record, by any thread."""
        self.ranges: deque[Ranges] = deque()  # bounded by the same
        """Acks of whole batches; threads only call `append`."""
        self.awake = False
        """Whether the loop looks here again by itself."""
        self._grant = grant
        self._note = note
        """Tells the grant, in the loop, which records were handed out."""

    def wake(self) -> None:
        """Make the loop look here.

        Raises:
            OpenedBeforeFork: the grant belongs to the process that this one was forked from.
        """
        self.awake = True
        self.portal.soon(self._look)

    def _look(self) -> None:
        if self.offsets or self.ranges:
            self.deliver()
            self.portal.later(LEFT_ACKS_S, self._look)
            return
        self.awake = False
        # An ack was left in between, and nothing was woken for it.
        self.deliver()

    def deliver(self) -> None:
        """Bring all acks to the grant; in the loop only."""
        self._note()
        offsets, grant = self.offsets, self._grant
        while self.ranges:
            grant.ack(self.ranges.popleft())
        if not offsets:
            return
        left = offsets[:]
        # Other threads append meanwhile, behind these.
        del offsets[: len(left)]
        grant.acks.leave_all(left)
