"""The client's part of the order of keys: what a client of the world keeps of ordered grants.

The program has one record of a key at a time, over all grants of a subscription. A record that the
client refused holds its key up until the session says where it went; records that the session takes
back are dropped. Invariant: a key whose record is with the program is freed only by settling the
record, or when the session was told that the record is out and so takes it out of the order.
"""

from collections.abc import Mapping

from dss_core.lane import MAIN, grant_and_level
from dss_sim.groups.history import Key
from dss_sim.groups.inbox import Arrived, Held, Inbox
from dssd.machines.delivery.events import AskBack, TakeBack


class KeyTurns:
    """The order of one client."""

    def __init__(self, grants: Mapping[int, Held], inbox: Inbox) -> None:
        self._grants = grants
        self._inbox = inbox
        self._in_batch: set[tuple[int, int]] = set()

    def begin_batch(self) -> None:
        """Hand-outs from now on are one batch, which may have several records of a key."""
        self._in_batch.clear()

    def may(self, arrived: Arrived) -> bool:
        """Whether the record may be handed out."""
        held, key = arrived.held, arrived.key
        if not held.ordered or key is None:
            return True
        lent, _ = grant_and_level(held.number)
        for number, other in self._grants.items():
            if other.subscription != held.subscription:
                continue
            out = (at for at, each in other.keys.items() if each == key)
            if any((number, at) not in self._in_batch for at in out):
                return False
            if grant_and_level(number)[0] == lent and key in other.refused.values():
                return False
        return True

    def handed_out(self, held: Held, offset: int, key: Key, *, in_batch: bool) -> None:
        """The program has it."""
        if key is not None:
            held.keys[offset] = key
        if in_batch:
            self._in_batch.add((held.number, offset))
        if held.level == MAIN:
            held.top = max(held.top, offset + 1)
            self._raise_frontier(held)

    def settled(self, held: Held, offset: int) -> None:
        """The program acknowledged it."""
        held.keys.pop(offset, None)

    def refused(self, held: Held, offset: int) -> None:
        """The program refused it, and the later records of its key that it was handed."""
        key = held.refused[offset] = held.keys.pop(offset, None)
        for at in [at for at, each in held.keys.items() if each == key and at > offset]:
            self._let_go(held, at)

    def _let_go(self, held: Held, offset: int) -> None:
        """Refuse it uncharged: no ack of it is sent any more."""
        held.keys.pop(offset, None)
        held.held.discard(offset)
        held.hung.discard(offset)

    def taken_back(self, told: TakeBack) -> None:
        """These records belong to the daemon again."""
        held = self._grants.get(told.grant)
        if held is None:
            return
        for at in (at for span in told.ranges for at in range(*span)):
            held.refused.pop(at, None)
            self._inbox.drop_acked(held, at)
        self._raise_frontier(held)

    def asked_back(self, asked: AskBack) -> bool:
        """The ack wait of the first record ended; returns whether the program has it."""
        held = self._grants.get(asked.grant)
        first = asked.ranges[0][0]
        if held is None or first not in held.held:
            return False
        for at in (at for span in asked.ranges for at in range(*span)):
            if at not in held.held:
                self._inbox.drop_acked(held, at)
            elif at != first:
                self._let_go(held, at)
        held.keys.pop(first, None)
        self._raise_frontier(held)
        return True

    def _raise_frontier(self, held: Held) -> None:
        """Raise the frontier: every record below it was handed out, taken back, or is masked."""
        if held.level == MAIN:
            lowest = self._inbox.lowest(held)
            below = held.top if lowest is None else min(held.top, lowest)
            held.frontier = max(held.frontier, below)
