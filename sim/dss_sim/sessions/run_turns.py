"""Whether each subscription that is consumed with `run` gets some of its work within a bound.

    K4   a run that nothing holds up, with a stream that has records which nobody was given, is
         given something within 5 s

Invariant: the rule knows what was appended and handed out. Whoever asks it sees to it that nothing
holds a run up: a handler at work, a refused record that is to come again, a pause, a process that
stands still, a disk in trouble.
"""

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from dss_sim.groups.history import Appended, Declared, Event, HandedOut
from dss_sim.groups.violation import Violation

TURN_US_MAX = 5_000_000
"""Above the 3.6 s after which a borrower in doubt of its leader hands out nothing."""


class Turn(NamedTuple):
    """A stream that is lent to a run."""

    member: str
    group: str
    stream: str


class RunTurns:
    """The notes on all runs."""

    def __init__(self) -> None:
        self._starts: dict[tuple[str, str], int] = {}
        self._ends: dict[str, int] = {}
        self._handed: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._given_us: dict[tuple[str, str], int] = {}
        """By member and group, when it was last given something."""
        self._since_us: dict[Turn, int] = {}
        """Who waits, and since when."""

    def take(self, event: Event) -> None:
        """Something happened."""
        match event:
            case HandedOut():
                self._handed[event.group, event.stream].add(event.offset)
                self._given_us[event.member, event.group] = event.at_us
            case Appended():
                self._ends[event.stream] = event.end
            case Declared():
                self._starts.update(((event.group, stream), at) for stream, at in event.starts)

    def look(self, free: Collection[Turn], now_us: int) -> None:
        """Look at the runs that nothing holds up now.

        Raises:
            Violation: one was given nothing for too long.
        """
        waiting = {turn for turn in free if self._first_waiting(turn) is not None}
        for turn in self._since_us.keys() - waiting:
            del self._since_us[turn]
        for turn in sorted(waiting):
            given_us = self._given_us.get((turn.member, turn.group), 0)
            since_us = max(given_us, self._since_us.setdefault(turn, now_us))
            if now_us - since_us > TURN_US_MAX:
                waits = f"{self._first_waiting(turn)} waits since {since_us} at {now_us}"
                raise Violation("K4", f"{turn}: {waits}")

    def _first_waiting(self, turn: Turn) -> int | None:
        """The first record that nobody was given."""
        handed = self._handed[turn.group, turn.stream]
        offsets = range(self._starts[turn.group, turn.stream], self._ends.get(turn.stream, 0))
        return next((offset for offset in offsets if offset not in handed), None)
