"""A daemon whose leaders and borrowers talk over a bad line: ``lossy_daemon.py SEED ARGUMENTS``.

Each message between them is lost with 20 %, comes twice with 20 %, and comes late, behind others,
with 20 %, each on its own. When it ends it says on stderr how many of each there were.
"""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Callable

import dssd.opening
from dssd.__main__ import main
from dssd.leaders.registry import Registry
from dssd.machines.messages import BorrowerId, ToBorrower, ToLeader

RATE = 0.2
LATE_S_MAX = 0.4


class Line:
    """Carries messages, badly."""

    def __init__(self, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self._random = random.Random(seed)

    def carry(self, deliver: Callable[[], None]) -> None:
        """Deliver, or not, or twice, now or later."""
        self.counts["messages"] += 1
        if self._happens("lost"):
            return
        for _ in range(2 if self._happens("doubled") else 1):
            if self._happens("late"):
                late_s = self._random.uniform(0, LATE_S_MAX)
                asyncio.get_running_loop().call_later(late_s, deliver)
            else:
                deliver()

    def _happens(self, what: str) -> bool:
        it_does = self._random.random() < RATE
        self.counts[what] += it_does
        return it_does


class LossyRegistry(Registry):
    """The registry at the other end of the line."""

    line: Line

    def to_leader(self, group_id: int, message: ToLeader) -> None:
        """Send to the leader, badly."""
        carry = super().to_leader
        self.line.carry(lambda: carry(group_id, message))

    def attach_borrower(
        self, borrower_id: BorrowerId, receive: Callable[[ToBorrower], None]
    ) -> Callable[[], None]:
        """Deliver to the borrower, badly."""
        return super().attach_borrower(
            borrower_id, lambda message: self.line.carry(lambda: receive(message))
        )


if __name__ == "__main__":
    line = LossyRegistry.line = Line(int(sys.argv[1]))
    setattr(dssd.opening, Registry.__name__, LossyRegistry)  # that is the fault
    code = main(sys.argv[2:])
    facts = ", ".join(f"{count} {what}" for what, count in line.counts.items())
    sys.stderr.write(f"line: {facts}\n")
    sys.exit(code)
