"""What a client of the world holds: its grants, and records that its user has not been handed yet.

Invariant: records of a grant leave in the order in which they came. Those of a group that the user
neglects stay, and hold up no others.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from dss_sim.groups.history import Key


@dataclass(slots=True)
class Held:
    """A grant in the client."""

    number: int
    group: str
    stream: str
    grant_epoch: int
    frontier: int
    reported: int
    held: set[int] = field(default_factory=set)
    """Handed out, neither acked nor refused."""
    acked: list[int] = field(default_factory=list)
    naks: list[tuple[int, int | None]] = field(default_factory=list)
    """Refused offsets, and for how long they shall rest."""
    again: list[int] = field(default_factory=list)
    """Handed out again: work on them began."""
    all_acked: list[int] = field(default_factory=list)
    hung: set[int] = field(default_factory=set)
    """The user never comes back from these, unless they are handed out again."""
    revoked: bool = False
    left: bool = False
    """Its subscription was left: what still comes is not handed out."""

    def has_news(self) -> bool:
        """Whether there is something to say of it."""
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
        self._neglected: dict[str, deque[Arrived]] = {}
        """By group, those that the user does not take."""

    def __len__(self) -> int:
        """How many the user would take."""
        return len(self._ready)

    def add(self, arrived: Arrived) -> None:
        """One more came."""
        self._neglected.get(arrived.held.group, self._ready).append(arrived)

    def take(self) -> Arrived:
        """The next one that the user takes."""
        return self._ready.popleft()

    def neglect(self, group: str) -> None:
        """The user takes none of the group until `attend`."""
        if group not in self._neglected:
            self._neglected[group] = deque(each for each in self._ready if each.held.group == group)
            self._ready = deque(each for each in self._ready if each.held.group != group)

    def attend(self, group: str) -> None:
        """The user takes those of the group again."""
        self._ready.extend(self._neglected.pop(group, ()))

    def attend_all(self) -> None:
        """The user takes all."""
        for group in list(self._neglected):
            self.attend(group)

    def drop_over(self) -> None:
        """What was revoked or left is not handed out any more."""
        for entries in (self._ready, *self._neglected.values()):
            kept = [each for each in entries if not (each.held.revoked or each.held.left)]
            entries.clear()
            entries.extend(kept)

    def clear(self) -> None:
        """The connection is gone, and all that came over it; what is neglected stays so."""
        for entries in (self._ready, *self._neglected.values()):
            entries.clear()
