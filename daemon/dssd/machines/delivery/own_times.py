"""Records of an ordered stream with a send time of their own: they rest there, or are suspects.

Later records of their keys would overtake them, so they are moved to the retry queue when read.
This module does not know keys or moves.
"""

from typing import NamedTuple

from dss_core.progress import Range, Ranges
from dssd.machines.delivery.stream import DeliveredStream


class OwnTime(NamedTuple):
    """A range of such records with one send time."""

    start: int
    end: int
    due_ms: int
    is_suspect: bool

    def within(self, span: Range) -> Ranges:
        """The part of the range in the span."""
        low, high = max(span[0], self.start), min(span[1], self.end)
        return ((low, high),) if low < high else ()


def own_times_of(main: DeliveredStream) -> list[OwnTime]:
    """Take these records from the stream's state."""
    rests, suspects = main.records.waiting.take_all()
    own = [OwnTime(start, end, due_ms, False) for due_ms, start, end in rests]
    own += [OwnTime(start, end, due_ms, True) for due_ms, start, end in suspects]
    return sorted(own)
