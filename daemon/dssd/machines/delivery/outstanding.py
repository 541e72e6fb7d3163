"""What was sent to a client and not answered yet, by offset.

A `Run` is what one delivery gave to the user: a stretch of offsets with gaps. Runs of a stream
never overlap, because a record is not sent again before its first sending was taken back; so a
sorted list with bisection finds what an ack names.
"""

from bisect import bisect_right
from dataclasses import dataclass

from dss_core.progress import Ranges, clipped, total


@dataclass(slots=True)
class Run:
    """Records of one delivery that are out. Its bytes are spread evenly over its records."""

    start: int
    end: int
    gaps: Ranges
    """Offsets between start and end that were not for the user."""
    records: int
    bytes: int
    unsure: bool = False
    """Sent again under the same grant, below the frontier, which does not tell when the records
    are handed out: that is not known yet."""
    suspects_max: int = 0
    """Not 0: it was handed out before under an older grant, so while it is out, only so many such
    records of the stream may be out."""

    def part(self, start: int, end: int) -> "Run | None":
        """What of it lies in ``[start, end)``, with its share of the bytes."""
        low, high = max(start, self.start), min(end, self.end)
        records = high - low - total(clipped(self.gaps, low, high))
        if records <= 0:
            return None
        share = self.bytes * records // self.records
        gaps = clipped(self.gaps, low, high)
        return Run(low, high, gaps, records, share, self.unsure, self.suspects_max)


class Outstanding:
    """The runs of one stream that are out, and their sums."""

    __slots__ = ("_runs", "bytes", "records", "suspects")

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self.records = 0
        self.bytes = 0
        self.suspects = 0
        """Records of suspect runs."""

    def suspect_room(self, suspects_max: int) -> int:
        """How many suspects may still go, if so many may be out with them."""
        if self.suspects:
            limits = (run.suspects_max for run in self._runs if run.suspects_max)
            suspects_max = min(suspects_max, *limits)
        return suspects_max - self.suspects

    def add(self, run: Run) -> None:
        """Enter a run that was sent."""
        runs = self._runs
        if runs and runs[-1].start > run.start:
            runs.insert(bisect_right(runs, run.start, key=_start), run)
        else:
            runs.append(run)
        self._count(run, 1)

    def take(self, start: int, end: int) -> list[Run]:
        """Remove what is out in ``[start, end)`` and return it, in order."""
        runs = self._runs
        first = max(0, bisect_right(runs, start, key=_start) - 1)
        if first < len(runs) and runs[first].end <= start:
            first += 1
        taken: list[Run] = []
        kept: list[Run] = []
        last = first
        while last < len(runs) and runs[last].start < end:
            self._divide(runs[last], start, end, taken, kept)
            last += 1
        if last > first:
            runs[first:last] = kept
        for run in taken:
            self._count(run, -1)
        return taken

    def take_all(self) -> list[Run]:
        """Remove everything that is out and return it."""
        taken, self._runs = self._runs, []
        self.records = self.bytes = self.suspects = 0
        return taken

    @staticmethod
    def _divide(run: Run, start: int, end: int, taken: list[Run], kept: list[Run]) -> None:
        if start <= run.start and run.end <= end:
            taken.append(run)
            return
        inside = run.part(start, end)
        if inside is None:
            kept.append(run)
            return
        before, after = run.part(run.start, start), run.part(end, run.end)
        rest = [part for part in (before, after) if part is not None]
        if rest:
            # Rounding must not lose bytes, or the credit would leak.
            rest[-1].bytes = run.bytes - inside.bytes - sum(part.bytes for part in rest[:-1])
        else:
            inside.bytes = run.bytes
        taken.append(inside)
        kept.extend(rest)

    def _count(self, run: Run, sign: int) -> None:
        self.records += sign * run.records
        self.bytes += sign * run.bytes
        if run.suspects_max:
            self.suspects += sign * run.records


def _start(run: Run) -> int:
    return run.start
