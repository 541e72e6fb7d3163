"""One step of a leader under way.

Invariant: effects are carried out in the order in which they were added. Grants are gathered and
sent after them, in one message to each borrower. This module knows no rule of the leader.
"""

from dssd.machines.leader.events import LeaderEffect, Send
from dssd.machines.leader.lent_stream import LentStream
from dssd.machines.leader.state import Leader
from dssd.machines.messages import BorrowerId, ToBorrower


class LeaderTurn:
    """One step under way: the time, and the effects so far."""

    __slots__ = ("effects", "grants", "now_ms", "state")

    def __init__(self, state: Leader, now_ms: int) -> None:
        self.state = state
        self.now_ms = now_ms
        self.effects: list[LeaderEffect] = []
        self.grants: dict[BorrowerId, list[LentStream]] = {}
        """Grants that leave at the end of the step, one message a borrower."""

    def send(self, message: ToBorrower) -> None:
        """Let the message leave."""
        self.effects.append(Send(message))
