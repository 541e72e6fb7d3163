"""Whether each subscription that is consumed with `run` gets a record within a bound.

    K4   a run that nothing holds up, with a stream that has records which nobody was given, is
         given something within 5 s

A record that may have been out with several clients as they vanished may wait: it is delivered
alone, after a rest. Records appended later were out with fewer of them.

Invariant: the rule knows what was appended and handed out, and which clients vanished. Whoever asks
it makes sure that nothing blocks a run: a handler at work, a refused record that is to come again,
a pause, a process that stands still, a disk in trouble.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from dss_sim.groups.history import Appended, Declared, Event, HandedOut
from dss_sim.groups.violation import Violation
from dssd.limits import ISOLATE_AFTER_DOUBTS

TURN_US_MAX = 5_000_000
"""Above the 3.6 s after which a borrower in doubt of its leader hands out nothing."""


class Turn(NamedTuple):
    """A stream that is lent to a run."""

    member: str
    group: str
    stream: str


class RunTurns:
    """Notes on all runs."""

    def __init__(self) -> None:
        self._starts: dict[tuple[str, str], int] = {}
        self._appended: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        """By stream: each end of the stream, and since when it has it."""
        self._vanished: defaultdict[str, list[int]] = defaultdict(list)
        """By group, a time for each client that vanished: it may have had records appended by
        then."""
        self._handed: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._given_us: dict[tuple[str, str], int] = {}
        """By member and group, when it last got something."""
        self._since_us: dict[Turn, int] = {}
        """The runs that wait, and since when."""

    def take(self, event: Event) -> None:
        """Note an event."""
        match event:
            case HandedOut():
                self._handed[event.group, event.stream].add(event.offset)
                self._given_us[event.member, event.group] = event.at_us
            case Appended():
                self._appended[event.stream].append((event.end, event.at_us))
            case Declared():
                self._starts.update(((event.group, stream), at) for stream, at in event.starts)

    def vanished(self, groups: Iterable[str], until_us: int) -> None:
        """A client of these groups vanished; it was sent records until then at most."""
        for group in groups:
            self._vanished[group].append(until_us)

    def look(self, free: Collection[Turn], now_us: int) -> None:
        """Check the runs that nothing blocks now.

        Raises:
            Violation: one got nothing for too long.
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
        """The first record that nobody got, and that is not delivered alone."""
        handed, appended = self._handed[turn.group, turn.stream], self._appended[turn.stream]
        end = appended[-1][0] if appended else 0
        offsets = range(self._starts[turn.group, turn.stream], end)
        waiting = (offset for offset in offsets if offset not in handed)
        return next((offset for offset in waiting if not self._may_come_alone(turn, offset)), None)

    def _may_come_alone(self, turn: Turn, offset: int) -> bool:
        """Whether so many clients may have vanished with it that it is delivered alone."""
        appended = self._appended[turn.stream]
        _, since_us = appended[bisect_right(appended, offset, key=lambda each: each[0])]
        vanished = self._vanished[turn.group]
        return sum(since_us <= until_us for until_us in vanished) >= ISOLATE_AFTER_DOUBTS
