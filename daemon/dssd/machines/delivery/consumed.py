"""The progress of a grant's stream, and why each offset is done: it is counted once, by kind.

Invariant: the counts by kind rise by exactly the offsets that progress newly covers, so their sum
is the number of offsets that progress covers. Progress never falls. This module does not know which
records are out or resting.
"""

from dss_core.progress import Progress, Ranges, clipped, normalised, without
from dssd.limits import DAMAGED_RANGES_MAX
from dssd.machines.delivery.events import ChunkRead
from dssd.machines.fate import Fate


class Consumed:
    """Progress, and what became of the records that it covers."""

    __slots__ = ("counts", "damaged", "progress")

    def __init__(self, progress: Progress, fate: Fate) -> None:
        self.progress = progress
        self.counts = fate.counts
        self.damaged = fate.damaged

    def done(self) -> Ranges:
        """Every offset that the group is done with."""
        floor, ranges = self.progress.floor, self.progress.ranges
        return ((0, floor), *ranges) if floor else ranges

    def ack(self, acked: Ranges) -> None:
        """The user acknowledged disjoint ranges."""
        self.counts = self.counts.plus("acked", self._newly(acked))
        floor, ranges = self.progress.floor, self.progress.ranges
        if len(acked) == 1 and not ranges and acked[0][0] <= floor:
            if acked[0][1] > floor:
                self.progress = Progress(acked[0][1])
        else:
            self.progress = self.progress.with_acked(acked)

    def reject(self, ranges: Ranges) -> None:
        """The filter rejects disjoint ranges."""
        self._pass(ranges, "filtered")

    def close(self, ranges: Ranges, kind: str) -> None:
        """Disjoint ranges are done; count them under this kind."""
        self._pass(ranges, kind)

    def pass_by(self, chunk: ChunkRead, ranges: Ranges, kind: str = "filtered") -> None:
        """Count disjoint offsets that the chunk leaves out: by its kinds, else under ``kind``."""
        if chunk.lost or chunk.damaged:
            damaged = without(_met(chunk.damaged, ranges), self.done())
            self._pass(damaged, "damaged")
            self._pass(_met(chunk.lost, ranges), "lost")
            if damaged:
                self.damaged = normalised((*self.damaged, *damaged))[-DAMAGED_RANGES_MAX:]
        self._pass(ranges, kind)

    def _pass(self, ranges: Ranges, kind: str) -> None:
        new = self._newly(ranges)
        if new:
            self.counts = self.counts.plus(kind, new)
            self.progress = self.progress.with_acked(ranges)

    def _newly(self, ranges: Ranges) -> int:
        """How many offsets of disjoint ranges are not done yet."""
        acked_in = self.progress.acked_in
        return sum(end - start - acked_in(start, end) for start, end in ranges if start < end)


def _met(ranges: Ranges, by: Ranges) -> Ranges:
    """The intersection of both."""
    return tuple(each for start, end in by for each in clipped(ranges, start, end))
