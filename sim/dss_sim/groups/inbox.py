"""What a client of the world holds: its grants, and records that its user was not handed yet.

Invariant: records of a grant leave in the order in which they came. Records of a neglected group,
or of a paused subscription, stay and hold up no others.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from dss_core.lane import MAIN
from dss_core.progress import Ranges
from dss_sim.groups.history import Key
from dssd.machines.delivery.events import Nak


@dataclass(slots=True)
class Held:
    """A grant in the client."""

    number: int
    subscription: int
    group: str
    stream: str
    grant_epoch: int
    frontier: int
    reported: int
    held: set[int] = field(default_factory=set)
    """Offsets handed out, neither acked nor refused."""
    acked: list[int] = field(default_factory=list)
    naks: list[Nak] = field(default_factory=list)
    again: list[int] = field(default_factory=list)
    """Offsets handed out again, or extended: their ack wait began anew."""
    all_acked: list[int] = field(default_factory=list)
    under_way: deque[Ranges] = field(default_factory=deque)
    """Acked ranges that the session may not have heard of yet."""
    hung: set[int] = field(default_factory=set)
    """Records that the user never settles, unless they are handed out again."""
    revoked: bool = False
    level: int = MAIN
    """The grants of its lane; each level has offsets of its own."""
    left: bool = False
    """Its subscription was left: records that still come are not handed out."""
    ordered: bool = False
    """One record of a key is handed out at a time."""
    top: int = 0
    """The offset after the last one that was handed out."""
    keys: dict[int, Key] = field(default_factory=dict)
    """For an ordered grant: the keys of records with the program, while their ack wait runs."""
    refused: dict[int, Key] = field(default_factory=dict)
    """For an ordered grant: refused records, until the session says that they were moved."""

    def heard(self) -> None:
        """The session has heard of the oldest acks on their way."""
        self.under_way.popleft()

    def has_news(self) -> bool:
        """Whether there is something to report."""
        return bool(self.acked or self.naks or self.again or self.frontier != self.reported)


class Arrived(NamedTuple):
    """A record that came."""

    held: Held
    offset: int
    attempt: int
    redelivered: bool
    key: Key


class Inbox:
    """Records that came and were not handed out, in order."""

    def __init__(self) -> None:
        self._ready: deque[Arrived] = deque()
        self._waiting: deque[Arrived] = deque()
        """Records of neglected groups and paused subscriptions."""
        self._neglected: set[str] = set()
        self._paused: set[int] = set()

    def __len__(self) -> int:
        """How many records may be handed out."""
        return len(self._ready)

    def add(self, arrived: Arrived) -> None:
        """Add a record."""
        (self._waiting if self._waits(arrived) else self._ready).append(arrived)

    def take(self, may: Callable[[Arrived], bool]) -> Arrived | None:
        """The next record that may be handed out, if any."""
        found = next((each for each in self._ready if may(each)), None)
        if found is not None:
            self._ready.remove(found)
        return found

    def has_any(self, may: Callable[[Arrived], bool]) -> bool:
        """Whether one may be handed out."""
        return any(may(each) for each in self._ready)

    def lowest(self, held: Held) -> int | None:
        """The lowest offset of a grant that was not handed out."""
        waiting = (each for each in (*self._ready, *self._waiting) if each.held is held)
        return min((each.offset for each in waiting), default=None)

    def neglect(self, group: str) -> None:
        """The user takes no records of the group until `attend`."""
        self._neglected.add(group)
        self._split()

    def attend(self, group: str) -> None:
        """The user takes records of the group again."""
        self._neglected.discard(group)
        self._split()

    def attend_all(self) -> None:
        """The user takes all."""
        self._neglected.clear()
        self._split()

    def pause(self, subscription: int) -> None:
        """No record of the subscription is handed out until `resume`."""
        self._paused.add(subscription)
        self._split()

    def resume(self, subscription: int) -> None:
        """Records of the subscription are handed out again."""
        self._paused.discard(subscription)
        self._split()

    def drop_over(self) -> None:
        """Drop records of revoked or left grants."""
        self._keep(lambda each: not (each.held.revoked or each.held.left))

    def drop_acked(self, held: Held, offset: int) -> None:
        """Leave out redelivered records whose earlier hand-out is acknowledged."""
        self._keep(lambda each: each.held is not held or each.offset != offset)

    def _keep(self, wanted: Callable[[Arrived], bool]) -> None:
        for entries in (self._ready, self._waiting):
            kept = [each for each in entries if wanted(each)]
            entries.clear()
            entries.extend(kept)

    def clear(self) -> None:
        """The connection is gone, and all that came over it; neglected records stay neglected."""
        self._ready.clear()
        self._waiting.clear()
        self._paused.clear()

    def _waits(self, arrived: Arrived) -> bool:
        held = arrived.held
        return held.group in self._neglected or held.subscription in self._paused

    def _split(self) -> None:
        # All records of a grant wait or none, so those that waited came later.
        entries = [*self._ready, *self._waiting]
        self._ready = deque(each for each in entries if not self._waits(each))
        self._waiting = deque(each for each in entries if self._waits(each))
