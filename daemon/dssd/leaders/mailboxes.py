"""How leaders and borrowers reach each other: through mailboxes only, also within one process.

Delivery is asynchronous: sending returns at once, and the receiver runs later on the loop. A
message may be lost, repeated or reordered; the machines tolerate that.
"""

from collections.abc import Callable
from typing import Protocol

from dssd.machines.messages import BorrowerId, ToBorrower, ToLeader


class Mailboxes(Protocol):
    """Carries messages of the group protocol."""

    def attach_borrower(
        self, borrower_id: BorrowerId, receive: Callable[[ToBorrower], None]
    ) -> Callable[[], None]:
        """Deliver what is sent to this borrower to ``receive``; returns how to stop."""

    def to_leader(self, group_id: int, message: ToLeader) -> None:
        """Send to the leader of the group; `LeaderWanted` starts it where there is none."""
