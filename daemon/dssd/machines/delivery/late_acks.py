"""Where records went whose ack wait ran out, for an acknowledgement that comes late.

Invariant: of a lane the newest `LATE_ACKS_MAX` are known. This module does not know what becomes of
an entry that was acknowledged so.
"""

from collections.abc import Iterable, Sequence

from dss_core.lane import DEAD
from dss_core.progress import Ranges, covers
from dssd.machines.delivery.events import Entry

LATE_ACKS_MAX = 4_096
"""Of so many records whose ack wait ran out a lane knows where they went, for an ack that comes
late."""


class LateAcks:
    """Of one lane."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[tuple[int, int], int] = {}
        """The entries of what was not acknowledged in time, by its level and offset; the newest."""

    def note(self, arrived: Iterable[Entry], expired: Sequence[Ranges]) -> None:
        """Of these entries those were made because an ack wait ran out, whose source is expired:
        that is by level."""
        for entry in arrived:
            level, offset = entry.source_level, entry.source_offset
            if level != DEAD and covers(expired[level], offset):
                self._entries[level, offset] = entry.offset
        while len(self._entries) > LATE_ACKS_MAX:
            del self._entries[next(iter(self._entries))]

    def take(self, level: int, acked: Ranges) -> list[int]:
        """The entries of what is acknowledged late; they are not known any more."""
        if not self._entries:
            return []
        return [
            self._entries.pop(source)
            for start, end in acked
            for source in [each for each in self._entries if each[0] == level]
            if start <= source[1] < end
        ]
