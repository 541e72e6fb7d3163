"""Finds the retry entry of a record that was acknowledged after its ack wait ran out.

Invariant: a lane remembers the newest `LATE_ACKS_MAX` such records. This module does not know what
becomes of an entry whose record was acknowledged late.
"""

from collections.abc import Iterable, Sequence

from dss_core.lane import DEAD
from dss_core.progress import Ranges, covers
from dssd.machines.delivery.events import Entry

LATE_ACKS_MAX = 4_096
"""How many records with an expired ack wait a lane remembers, to match late acks to entries."""


class LateAcks:
    """The records of one lane with an expired ack wait."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[tuple[int, int], int] = {}
        """By level and offset of a record with an expired ack wait: the offset of its entry."""

    def note(self, arrived: Iterable[Entry], expired: Sequence[Ranges]) -> None:
        """Remember the arrived entries whose source is among the expired ranges of its level."""
        for entry in arrived:
            level, offset = entry.source_level, entry.source_offset
            if level != DEAD and covers(expired[level], offset):
                self._entries[level, offset] = entry.offset
        while len(self._entries) > LATE_ACKS_MAX:
            del self._entries[next(iter(self._entries))]

    def take(self, level: int, acked: Ranges) -> list[int]:
        """Take the offsets of the entries whose records are acknowledged late."""
        if not self._entries:
            return []
        return [
            self._entries.pop(source)
            for start, end in acked
            for source in [each for each in self._entries if each[0] == level]
            if start <= source[1] < end
        ]
