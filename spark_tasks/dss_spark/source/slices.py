"""Cuts a read into slices: what one task reads. Pure.

A large range is cut by bytes; small ones that follow each other share a slice, so that a topic of a
thousand thin streams does not become a thousand tasks.

Invariant: each offset is in one slice, in the order of the ranges.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dss_client.job_values import SourceRange

SLICES_MAX = 100_000
"""Most tasks of one scan: with more, Spark's driver would do nothing else."""


Slice = tuple[SourceRange, ...]


@dataclass(frozen=True, slots=True)
class Sized:
    """A range, and about how large it is."""

    range: SourceRange
    bytes: int


def sliced(ranges: Sequence[Sized], slice_bytes: int) -> list[Slice]:
    """Slices of about this many bytes each; larger ones if there would be too many."""
    ranges = [each for each in ranges if each.range.start < each.range.end]
    total = sum(each.bytes for each in ranges)
    return list(_gathered(ranges, max(slice_bytes, total // SLICES_MAX + 1)))


def _gathered(ranges: Iterable[Sized], slice_bytes: int) -> Iterator[Slice]:
    held: list[SourceRange] = []
    held_bytes = 0
    for each in ranges:
        if held and held_bytes + each.bytes > slice_bytes:
            yield tuple(held)
            held, held_bytes = [], 0
        pieces = _pieces(each, slice_bytes)
        for piece in pieces[:-1]:
            yield (piece,)
        held.append(pieces[-1])
        held_bytes += each.bytes // len(pieces)
    if held:
        yield tuple(held)


def _pieces(sized: Sized, slice_bytes: int) -> list[SourceRange]:
    whole = sized.range
    records = whole.end - whole.start
    count = min(records, max(1, -(-sized.bytes // slice_bytes)))
    ends = [whole.start + records * number // count for number in range(count + 1)]
    return [replace(whole, start=start, end=end) for start, end in pairwise(ends)]
