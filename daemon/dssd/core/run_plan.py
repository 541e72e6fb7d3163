"""Which part of a chunk of frames goes to the client next.

A delivery carries whole frames, one mask, and one pair (redelivered, attempt). So the records that
may go are cut into stretches of one *class*, and the frames to those that hold the stretch; what
remains goes later, perhaps in the same frames under another mask. Credit cuts between frames only:
a frame sent in two halves would cost its bytes twice.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from dss_core.progress import Range, Ranges, clipped, complement, total


class FrameSpan(NamedTuple):
    """Where a frame lies among others."""

    at: int
    """Its first byte."""
    end: int
    base: int
    """The offset of its first record."""
    records: int


class Class(NamedTuple):
    """A stretch of offsets that may go in one delivery."""

    start: int
    end: int
    redelivered: bool
    attempt: int
    records_max: int


class Room(NamedTuple):
    """How much credit is left; where there is any, one frame goes even if it needs more."""

    records: int
    bytes: int


class Plan(NamedTuple):
    """One delivery."""

    first_byte: int
    last_byte: int
    base: int
    """The offset of the first record of its frames."""
    end: int
    """The offset behind their last record."""
    picked: Ranges
    """The offsets for the user; never empty."""
    mask: Ranges
    records: int
    redelivered: bool
    attempt: int


def plan(spans: Sequence[FrameSpan], wanted: Ranges, classes: Sequence[Class], room: Room) -> Plan:
    """The next delivery of the wanted offsets: one frame at least.

    There is some credit, the wanted ranges are not empty, they lie in the frames, and the classes
    cover them in order.
    """
    first = wanted[0][0]
    kind = next(each for each in classes if first < each.end)
    stretch = _first_records(clipped(wanted, first, kind.end), kind.records_max)
    taken: list[FrameSpan] = []
    records = size = 0
    # By index, not by slice: a chunk of many small frames is cut many times.
    for index in range(bisect_right(spans, first, key=_base) - 1, len(spans)):
        span = spans[index]
        inside = _inside(stretch, span.base, span.base + span.records)
        if inside == 0:
            break
        bytes_ = span.end - span.at
        fits = records + inside <= room.records and size + bytes_ <= room.bytes
        if not fits and taken:
            break
        taken.append(span)
        records += inside
        size += bytes_
        if not fits:
            break
    assert taken, (spans, wanted, classes)
    low, high = taken[0].base, taken[-1].base + taken[-1].records
    picked = clipped(stretch, low, high)
    mask = complement(picked, low, high)
    return Plan(
        taken[0].at,
        taken[-1].end,
        low,
        high,
        picked,
        mask,
        records,
        kind.redelivered,
        kind.attempt,
    )


def _base(span: FrameSpan) -> int:
    return span.base


def _inside(ranges: Ranges, start: int, end: int) -> int:
    """How many offsets of the ranges lie in ``[start, end)``."""
    if len(ranges) > 1:
        return total(clipped(ranges, start, end))
    low, high = ranges[0]
    return max(0, min(high, end) - max(low, start))


def _first_records(ranges: Ranges, records_max: int) -> Ranges:
    left = records_max
    kept: list[Range] = []
    for start, end in ranges:
        if left <= 0:
            break
        kept.append((start, min(end, start + left)))
        left -= end - start
    return tuple(kept)
