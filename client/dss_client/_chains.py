"""What is to be handled next of one key: decisions only, the runner acts on them.

A *chain* is the records of one key under one grant, on all levels of a lane. A record is handled
only when no earlier record of its chain waits for redelivery. Until that one came again and is done
with, the records that follow it are *parked* here: they were not handed out, so they cost no
attempt and no redelivery. If the grant has queues, nothing waits for a refused record. Records that
are not parked hold a place in the runner's room. Parked ones hold none; otherwise the record that
they wait for might find no place when it comes again.

Invariant: a chain is busy as long as one of its records waits for a handler or is handled, and
only then do others wait in it without being parked. A chain knows nothing of tasks or handlers.
"""

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dss_client._grant import HeldGrant
    from dss_client.record import DeliveredRecord

Step = tuple["DeliveredRecord | None", int]
"""The record to handle now, if any, and how many places in the room are free again."""


class Chain:
    """The records of one key under one grant."""

    __slots__ = ("_busy", "_in_room", "_parked", "_refused", "_waiting", "grant")

    def __init__(self, grant: "HeldGrant") -> None:
        self.grant = grant
        self._busy = False
        self._in_room = False
        """Whether the record that is handled has a place in the room."""
        self._waiting: deque[DeliveredRecord] = deque()  # bounded by the runner's room
        self._parked: deque[DeliveredRecord] = deque()  # bounded by the credit given to the daemon
        self._refused: set[int] = set()
        """Offsets of refused records, which are to come again."""

    @property
    def is_idle(self) -> bool:
        """Whether the chain has no record, waiting or refused, any more."""
        return not (self._busy or self._waiting or self._parked or self._refused)

    def arrived(self, record: "DeliveredRecord") -> Step:
        """A record came, and has a place in the room."""
        self._waiting.append(record)
        return (None, 0) if self._busy else self.next()

    def finished(self) -> Step:
        """A handler returned."""
        freed = 1 if self._in_room else 0
        self._busy = self._in_room = False
        record, parked = self.next()
        return record, freed + parked

    def refused(self, record: "DeliveredRecord") -> None:
        """The record was refused; with queues it comes back later, and nothing waits for it."""
        if not self.grant.queues:
            self._refused.add(record._at)

    def handled(self, record: "DeliveredRecord") -> None:
        """The record is done with."""
        self._refused.discard(record._at)

    def look_again(self) -> bool:
        """Forget refused records that were acknowledged since; returns whether others may go on."""
        if self._refused:
            self._refused = {at for at in self._refused if self.grant.has_refused(at)}
        return not self._busy

    def next(self) -> Step:
        """The next record of a chain that is not busy."""
        if self._parked and not self._follows(self._parked[0]):
            self._busy = True
            return self._parked.popleft(), 0
        parked = 0
        while self._waiting:
            record = self._waiting.popleft()
            if not self._follows(record):
                self._busy = self._in_room = True
                return record, parked
            self._park(record)
            parked += 1
        return None, parked

    def drop(self) -> int:
        """Forget the waiting records; returns how many places in the room are free again."""
        freed = len(self._waiting)
        self._waiting.clear()
        self._parked.clear()
        self._refused.clear()
        return freed

    def take_parked(self) -> "list[DeliveredRecord]":
        """Take out the records that wait behind a refused one.

        Records that came later are taken too, or they would be handled first.
        """
        records = [*self._parked]
        if records:
            first, waiting = records[0]._at, self._waiting
            records += [record for record in waiting if record._at > first]
            self._waiting = deque(record for record in waiting if record._at < first)
        self._parked.clear()
        return records

    def empty(self) -> "list[DeliveredRecord]":
        """Take out all waiting records; none of them is handled."""
        records = [*self.take_parked(), *self._waiting]
        self._busy = self._in_room = False
        self._waiting.clear()
        return records

    def _follows(self, record: "DeliveredRecord") -> bool:
        """Whether an earlier record has to be sent again first."""
        # Each refused record has its own delay, so the order of arrival does not say which.
        return bool(self._refused) and any(offset < record._at for offset in self._refused)

    def _park(self, record: "DeliveredRecord") -> None:
        if self._parked and record._at < self._parked[-1]._at:
            self._parked = deque(sorted((*self._parked, record), key=lambda each: each._at))
        else:
            self._parked.append(record)


class Loose:
    """The records without a key under one grant: none waits for another."""

    __slots__ = ("grant",)

    is_idle = False

    def __init__(self, grant: "HeldGrant") -> None:
        self.grant = grant

    def arrived(self, record: "DeliveredRecord") -> Step:
        """The record is handled now."""
        return record, 0

    def finished(self) -> Step:
        """Nothing follows."""
        return None, 1

    def refused(self, record: "DeliveredRecord") -> None:
        """Nothing waits for it."""

    def handled(self, record: "DeliveredRecord") -> None:
        """Nothing waited for it."""

    def look_again(self) -> bool:
        """Nothing waits for what was refused."""
        return False

    def next(self) -> Step:
        """Nothing waits."""
        return None, 0

    def drop(self) -> int:
        """Nothing waits."""
        return 0

    def take_parked(self) -> "list[DeliveredRecord]":
        """Nothing waits."""
        return []

    def empty(self) -> "list[DeliveredRecord]":
        """Nothing waits."""
        return []
