"""The borrowers' mailboxes: one task hands messages to their receivers, in order of arrival.

Invariant: `put` never runs the receiver, so no machine is entered during another one's step. A full
mailbox drops new messages, as a network may; the group protocol tolerates lost messages.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from dssd.machines.messages import BorrowerId, ToBorrower

BORROWER_MAILBOX_MAX = 65_536
"""How many messages may wait for one borrower: two grants of each stream of the largest group."""

ROUND_MESSAGES_MAX = 256
"""Messages that are handed over before other tasks get their turn."""


Receive = Callable[[ToBorrower], None]


class BorrowerMailboxes:
    """Mailboxes by borrower. `run` is its one task."""

    def __init__(self) -> None:
        self._receivers: dict[BorrowerId, Receive] = {}
        self._waiting: dict[BorrowerId, int] = {}
        self._messages: deque[ToBorrower] = deque()
        """All mailboxes, in the order of arrival; each is bounded by `_waiting`."""
        self._bell = asyncio.Event()
        self.lost = 0
        """Messages dropped because their mailbox was full."""

    def attach(self, borrower_id: BorrowerId, receive: Receive) -> Callable[[], None]:
        """Hand this borrower's messages to ``receive``; returns how to stop."""
        assert borrower_id not in self._receivers, borrower_id.hex()
        self._receivers[borrower_id] = receive

        def detach() -> None:
            self._receivers.pop(borrower_id, None)

        return detach

    def put(self, message: ToBorrower) -> None:
        """Take a message for the borrower that it names; one without a receiver is lost."""
        borrower_id = message.borrower_id
        if borrower_id not in self._receivers:
            return
        waiting = self._waiting.get(borrower_id, 0)
        if waiting >= BORROWER_MAILBOX_MAX:
            self.lost += 1
            return
        self._waiting[borrower_id] = waiting + 1
        self._messages.append(message)
        self._bell.set()

    async def run(self) -> None:
        """Hand over until cancelled."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            while self._messages:
                self._hand_over()
                await asyncio.sleep(0)

    def _hand_over(self) -> None:
        for _ in range(min(len(self._messages), ROUND_MESSAGES_MAX)):
            message = self._messages.popleft()
            left = self._waiting[message.borrower_id] - 1
            if left:
                self._waiting[message.borrower_id] = left
            else:
                del self._waiting[message.borrower_id]
            receive = self._receivers.get(message.borrower_id)
            if receive is not None:
                receive(message)
