"""What operators discard is handed to nobody, wherever else it is by then.

    Q12 a dead letter that was discarded is not handed out again, nor what was made of it, but for
        what had left the dead letters before, as far as was stored then

Invariant: whether a record had left is known with the commit that discards it: what that says of
the retry queue was reported before.
"""

from collections.abc import Callable

from dss_sim.groups.history import HandedOut, Queued
from dss_sim.groups.violation import Violation

Place = tuple[str, str, int]
"""A group, a stream of one of its lanes, an offset."""


class GivenUpRules:
    """The dead letters that were discarded. ``source_of`` gives the place that an entry was made
    of; None for a record of a stream."""

    def __init__(self, source_of: Callable[[Place], Place | None]) -> None:
        self._source_of = source_of
        self._asked: set[Place] = set()
        """By the commit that is being told."""
        self._given_up: set[Place] = set()

    def discard(self, group: str, stream: str, offsets: set[int]) -> None:
        """An operator discards these dead letters, by a commit that is told next."""
        self._asked |= {(group, stream, at) for at in offsets}

    def commit_told(self, entry_of: Callable[[Place], tuple[Queued, int] | None]) -> None:
        """All that the commit says was told. ``entry_of`` gives the entry that a dead letter
        became, and up to which entry its queue is applied."""
        asked, self._asked = self._asked, set()
        for place in asked:
            found = entry_of(place)
            if found is None or found[0].offset >= found[1]:
                self._given_up.add(place)

    def is_given_up(self, place: Place | None) -> bool:
        """Whether a record, as it is there, was discarded, there or on its way."""
        while place is not None and self._given_up:
            if place in self._given_up:
                return True
            place = self._source_of(place)
        return False

    def handed_out(self, event: HandedOut) -> None:
        """User code got a record.

        Raises:
            Violation: Q12: it was given up.
        """
        if self.is_given_up((event.group, event.stream, event.offset)):
            raise Violation("Q12", f"an operator discarded it: {event}")
