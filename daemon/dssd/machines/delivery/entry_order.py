"""The order in which the entries of both queues of a lane are told: causes before effects.

Each queue is told in the order of its offsets. But an entry that nobody reported may be made of an
entry of the other queue that nobody reported either: a dead letter that was redriven, failed again
and was redriven once more has two entries in each. Whether such an entry lives depends on its
source, so it waits until its source was told. Invariant: no entry is told before its source, and
both queues are told to their ends: an entry was made of one that was durable before it, so the two
queues never wait for each other. This module must not know how queues are read.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dss_core.lane import DEAD, RETRY
from dss_core.progress import Range
from dssd.machines.delivery.events import Entry

OTHER = {RETRY: DEAD, DEAD: RETRY}


class ToldEntries(NamedTuple):
    """Entries of one queue, in order."""

    level: int
    entries: Sequence[Entry]


class EntryOrder:
    """Of one lane: takes what is read of each queue, and says what may be told.

    ``retry`` and ``dead`` say from where to where these are told. The sources of all dead letters
    below ``dead_known`` were reported.
    """

    def __init__(self, retry: Range, dead: Range, dead_known: int) -> None:
        self._read = {RETRY: retry[0], DEAD: dead[0]}
        self._ends = {RETRY: retry[1], DEAD: dead[1]}
        self._left: dict[int, Sequence[Entry]] = {RETRY: (), DEAD: ()}
        """Read, but not told."""
        self._dead_known = dead_known

    def to_read(self) -> tuple[int, int] | None:
        """The queue to be read next, and from where on; None: everything was read and told."""
        for level in (RETRY, DEAD):
            if not self._left[level] and self._read[level] < self._ends[level]:
                return level, self._read[level]
        assert not any(self._left.values()), "each entry is durable before what is made of it"
        return None

    def take(self, level: int, entries: Sequence[Entry], end: int) -> Iterator[ToldEntries]:
        """What may be told now that these were read, below ``end``."""
        self._read[level], self._left[level] = end, entries
        while told := self._fitting(level):
            yield ToldEntries(level, told)
            level = OTHER[level]

    def read_to(self, level: int) -> int:
        """Where the reading of a queue stands."""
        return self._read[level]

    def _fitting(self, level: int) -> Sequence[Entry]:
        """Those that were read and whose sources were told, up to the first other one."""
        left, other = self._left[level], OTHER[level]
        told_to = self._told_to(other)
        fits = len(left)
        if told_to < self._ends[other]:
            waiting = (
                number
                for number, each in enumerate(left)
                if each.source_level == other
                and each.source_offset >= told_to
                and not each.is_rehomed
            )
            fits = next(waiting, fits)
        self._left[level] = left[fits:]
        return left[:fits]

    def _told_to(self, level: int) -> int:
        left = self._left[level]
        told_to = left[0].offset if left else self._read[level]
        return max(told_to, self._dead_known) if level == DEAD else told_to
