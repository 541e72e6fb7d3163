"""Records of an ordered stream that come in their own time: they rest there, or are suspects.

Later records of their keys would pass them, so whoever meets them moves them to the retry queue.
This module does not know keys or moves.
"""

from typing import NamedTuple

from dss_core.progress import Range, Ranges
from dssd.machines.delivery.stream import DeliveredStream


class OwnTime(NamedTuple):
    """Some that come together."""

    start: int
    end: int
    due_ms: int
    is_suspect: bool

    def within(self, span: Range) -> Ranges:
        """What of them lies in the span."""
        low, high = max(span[0], self.start), min(span[1], self.end)
        return ((low, high),) if low < high else ()


def own_times_of(main: DeliveredStream) -> list[OwnTime]:
    """Those of a stream, which forgets them."""
    rests, suspects = main.records.waiting.take_all()
    own = [OwnTime(start, end, due_ms, False) for due_ms, start, end in rests]
    own += [OwnTime(start, end, due_ms, True) for due_ms, start, end in suspects]
    return sorted(own)
