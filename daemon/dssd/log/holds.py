"""Records that retention must keep, because a holder still has to read them.

A holder, named by a number, holds ranges of streams. Invariant: a hold here is in the store too, or
its holder is about to commit it. Pure: no store, no clock.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from dss_core.ids import StreamId
from dss_core.progress import Range
from dssd.log.topic_state import Segment
from dssd.store.rows import HoldRow


class HeldRange(NamedTuple):
    """One held range."""

    holder: int
    partition: int
    start: int
    end: int


class Holds:
    """All holds, by storage topic."""

    def __init__(self, rows: Iterable[HoldRow] = ()) -> None:
        self._held: defaultdict[int, list[HeldRange]] = defaultdict(list)
        for row in rows:
            held = HeldRange(row.holder, row.partition, row.start, row.end)
            self._held[row.storage_topic_id].append(held)

    def add(self, holder: int, ranges: Mapping[StreamId, Range]) -> list[HoldRow]:
        """Hold these ranges from now on; returns their rows, to be committed."""
        rows: list[HoldRow] = []
        for (topic, partition), (start, end) in ranges.items():
            self._held[topic].append(HeldRange(holder, partition, start, end))
            rows.append(HoldRow(holder, topic, partition, start, end))
        return rows

    def remove(self, holder: int) -> None:
        """Hold nothing for a holder any more."""
        for topic in list(self._held):
            kept = [held for held in self._held[topic] if held.holder != holder]
            self._held[topic] = kept
            if not kept:
                del self._held[topic]

    def rows_of(self, holder: int) -> Iterator[tuple[int, int, int]]:
        """The keys of a holder's rows."""
        for topic, every in self._held.items():
            for held in every:
                if held.holder == holder:
                    yield (holder, topic, held.partition)

    def holders(self, storage_topic_id: int) -> set[int]:
        """The holders of records of a storage topic."""
        return {held.holder for held in self._held.get(storage_topic_id, ())}

    def on(self, segment: Segment) -> bool:
        """Whether a holder needs a record of the segment."""
        every = self._held.get(segment.id.storage_topic_id, ())
        return any(_touches(held, segment) for held in every)

    def limited(self, storage_topic_id: int, partition: int, offset: int) -> int:
        """How far a low watermark may rise, at most to the offset."""
        every = self._held.get(storage_topic_id, ())
        starts = [held.start for held in every if held.partition == partition]
        return min(offset, *starts) if starts else offset


def _touches(held: HeldRange, segment: Segment) -> bool:
    extent = segment.extent(held.partition)
    return extent is not None and held.start < extent.end and extent.start < held.end
