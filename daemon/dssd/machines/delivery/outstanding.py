"""What was sent to a client and not settled yet, by offset.

A `SentRange` has records that one delivery gave to the user: each offset from start to end.
Invariant: the ranges of a stream never overlap, because a record is sent again only after its
first sending was taken out; so a sorted list with bisection finds what an ack names.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dss_core.progress import Range, Ranges, clipped, complement, total


@dataclass(slots=True)
class SentRange:
    """Records of one delivery that are out. Its bytes are spread evenly over its records."""

    start: int
    end: int
    bytes: int
    unsure: bool = False
    """Sent again under the same grant, after a hand-out. The frontier does not tell whether the
    records were handed out again, and the client has not said so yet."""
    suspects_max: int = 0
    """Not 0: its records are suspects, handed out before under an older grant. While they are out,
    at most this many suspects of the stream may be out."""
    again: bool = False
    """Sent again under the same grant, wherever the frontier is."""

    @property
    def records(self) -> int:
        """How many there are."""
        return self.end - self.start

    def part(self, start: int, end: int) -> "SentRange | None":
        """What of it lies in ``[start, end)``, with its share of the bytes."""
        low, high = max(start, self.start), min(end, self.end)
        if low >= high:
            return None
        share = self.bytes * (high - low) // self.records
        return SentRange(low, high, share, self.unsure, self.suspects_max, self.again)


class Freed(NamedTuple):
    """How much of one delivery is out no more."""

    records: int
    bytes: int
    again: bool


class GivenBack(Protocol):
    """Credit that comes back."""

    @property
    def records(self) -> int:
        """How many records."""

    @property
    def bytes(self) -> int:
        """How many bytes."""

    @property
    def again(self) -> bool:
        """Whether it was sent again under the same grant."""


class Outstanding:
    """The ranges of one stream that are out, and their sums."""

    __slots__ = ("_ranges", "bytes", "records", "suspects")

    def __init__(self) -> None:
        self._ranges: list[SentRange] = []
        self.records = 0
        self.bytes = 0
        self.suspects = 0
        """Records of suspect ranges."""

    def suspect_room(self, suspects_max: int) -> int:
        """How many more suspects may be sent, if at most ``suspects_max`` may be out with them."""
        if self.suspects:
            limits = (sent.suspects_max for sent in self._ranges if sent.suspects_max)
            suspects_max = min(suspects_max, *limits)
        return suspects_max - self.suspects

    def add(self, sent: SentRange) -> None:
        """Enter a range that was sent."""
        ranges = self._ranges
        if ranges and ranges[-1].start > sent.start:
            ranges.insert(bisect_right(ranges, sent.start, key=_start), sent)
        else:
            ranges.append(sent)
        self._count(sent, 1)

    def within(self, start: int, end: int) -> list[Range]:
        """What of ``[start, end)`` is out, in order."""
        first = max(0, bisect_right(self._ranges, start, key=_start) - 1)
        found: list[Range] = []
        for sent in self._ranges[first:]:
            if sent.start >= end:
                break
            if sent.end > start:
                found.append((max(sent.start, start), min(sent.end, end)))
        return found

    def is_unsure(self, offset: int) -> bool:
        """Whether the record is out again, and the client has not reported that hand-out."""
        index = bisect_right(self._ranges, offset, key=_start) - 1
        return index >= 0 and offset < self._ranges[index].end and self._ranges[index].unsure

    def take(self, start: int, end: int) -> list[SentRange]:
        """Remove what is out in ``[start, end)`` and return it, in order."""
        ranges = self._ranges
        first = max(0, bisect_right(ranges, start, key=_start) - 1)
        if first < len(ranges) and ranges[first].end <= start:
            first += 1
        taken: list[SentRange] = []
        kept: list[SentRange] = []
        last = first
        while last < len(ranges) and ranges[last].start < end:
            self._divide(ranges[last], start, end, taken, kept)
            last += 1
        if last > first:
            ranges[first:last] = kept
        for sent in taken:
            self._count(sent, -1)
        return taken

    def take_among(self, ranges: Ranges) -> list[Freed]:
        """Remove what is out in normalised ranges, of which there may be thousands. Each affected
        delivery is gone through once."""
        freed: list[Freed] = []
        left: list[SentRange] = []
        for sent in self._ranges:
            inside = clipped(ranges, sent.start, sent.end)
            if not inside:
                left.append(sent)
                continue
            records, before = total(inside), sent.records
            size = sent.bytes * records // before
            freed.append(Freed(records, size, sent.again))
            self._count(sent, -1)
            left += self._divided(sent, complement(inside, sent.start, sent.end), sent.bytes - size)
        self._ranges = left
        return freed

    def _divided(self, sent: SentRange, parts: Ranges, size: int) -> list[SentRange]:
        """The parts that are left of a sent range, with ``size`` bytes together; counts them."""
        records, unsure, most, again = total(parts), sent.unsure, sent.suspects_max, sent.again
        share = size // max(records, 1)
        left = [
            SentRange(low, high, share * (high - low), unsure, most, again) for low, high in parts
        ]
        if left:
            # Rounding must not lose bytes, or the credit would leak.
            left[-1].bytes += size - share * records
        self.records += records
        self.bytes += size if records else 0
        self.suspects += records if most else 0
        return left

    def take_all(self) -> list[SentRange]:
        """Remove everything that is out and return it."""
        taken, self._ranges = self._ranges, []
        self.records = self.bytes = self.suspects = 0
        return taken

    @staticmethod
    def _divide(
        sent: SentRange, start: int, end: int, taken: list[SentRange], kept: list[SentRange]
    ) -> None:
        if start <= sent.start and sent.end <= end:
            taken.append(sent)
            return
        inside = sent.part(start, end)
        if inside is None:
            kept.append(sent)
            return
        before, after = sent.part(sent.start, start), sent.part(end, sent.end)
        rest = [part for part in (before, after) if part is not None]
        if rest:
            # Rounding must not lose bytes, or the credit would leak.
            rest[-1].bytes = sent.bytes - inside.bytes - sum(part.bytes for part in rest[:-1])
        else:
            inside.bytes = sent.bytes
        taken.append(inside)
        kept.extend(rest)

    def _count(self, sent: SentRange, sign: int) -> None:
        self.records += sign * sent.records
        self.bytes += sign * sent.bytes
        if sent.suspects_max:
            self.suspects += sign * sent.records


def checked(ranges: Iterable[Range], first: int, sent: int) -> tuple[Ranges, Range | None]:
    """The ranges that lie in ``[first, sent)``, and the first of those that do not."""
    good: list[Range] = []
    bad: Range | None = None
    for start, end in ranges:
        if first <= start < end <= sent:
            good.append((start, end))
        elif bad is None:
            bad = (start, end)
    return tuple(good), bad


def _start(sent: SentRange) -> int:
    return sent.start
