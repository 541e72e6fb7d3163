"""Which part of a chunk of frames goes to the client next.

A delivery carries whole frames, one mask, and one pair (redelivered, attempt). So the sendable
records are cut into stretches of one mark, and a delivery has the frames that hold a stretch.
Frames in between that hold none of its records are left out; their offsets are masked, like all
other records that are not of the stretch. The rest is sent later, perhaps in the same frames under
another mask. Credit cuts between frames only: a frame sent in two halves would cost its bytes
twice.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dss_core.progress import Range, Ranges, clipped, complement, total


class FrameSpans(NamedTuple):
    """Where consecutive frames lie; each column ends with one more entry, the end of the last."""

    at: Sequence[int]
    """The first byte of each."""
    base: Sequence[int]
    """The offset of the first record of each."""


CutFrames = Callable[[bytes], FrameSpans]
"""Finds the frames of a chunk."""


class Stretch(NamedTuple):
    """A stretch of offsets of which the wanted ones may go in one delivery."""

    start: int
    end: int
    redelivered: bool
    attempt: int
    records_max: int
    doubts: int = 0
    """How many clients vanished with the records."""

    def has_mark_of(self, other: "Stretch") -> bool:
        """Whether both may go in one delivery."""
        mine = (self.redelivered, self.attempt, self.doubts)
        return mine == (other.redelivered, other.attempt, other.doubts)

    def joined(self, after: "Stretch") -> "Stretch":
        """It and the next one, of the same mark. The bound on records with attempts stays."""
        most = self.records_max
        if self.attempt == 1:
            most += after.records_max
        return self._replace(end=after.end, records_max=most)


class CreditLeft(NamedTuple):
    """How much credit is left. If there is any, one frame is sent even if it needs more."""

    records: int
    bytes: int


class DeliveryPlan(NamedTuple):
    """One delivery."""

    pieces: tuple[Range, ...]
    """The bytes of its frames, from and to."""
    size: int
    """How many bytes they are."""
    base: int
    """The offset of the first record of its frames."""
    end: int
    """The offset after their last record."""
    picked: Ranges
    """The offsets for the user; never empty."""
    mask: Ranges
    records: int
    redelivered: bool
    attempt: int
    doubts: int


def plan(spans: FrameSpans, wanted: Ranges, stretch: Stretch, room: CreditLeft) -> DeliveryPlan:
    """The next delivery of the wanted offsets: one frame at least.

    There must be some credit. The wanted ranges are not empty and lie in the frames; up to its end
    they belong to the stretch.
    """
    going = _first_records(clipped(wanted, stretch.start, stretch.end), stretch.records_max)
    if len(going) == 1:
        begin = bisect_right(spans.base, going[0][0]) - 1
        frames = [(begin, _last_of_range(spans, begin, going[0], room))]
    else:
        frames = _frames_of_ranges(spans, going, room)
    pieces = tuple((spans.at[first], spans.at[last]) for first, last in frames)
    low, high = spans.base[frames[0][0]], spans.base[frames[-1][1]]
    picked = clipped(going, low, high)
    return DeliveryPlan(
        pieces,
        total(pieces),
        low,
        high,
        picked,
        complement(picked, low, high),
        total(picked),
        stretch.redelivered,
        stretch.attempt,
        stretch.doubts,
    )


def whole_frames(spans: FrameSpans, wanted: Range, room: CreditLeft) -> tuple[int, int] | None:
    """The first frame to send and the one after the last, if all records of one mark are wanted.

    None where the range begins within a frame; `plan` makes a mask then.
    """
    begin = bisect_right(spans.base, wanted[0]) - 1
    if spans.base[begin] != wanted[0]:
        return None
    return begin, _last_of_range(spans, begin, wanted, room)


def _last_of_range(spans: FrameSpans, begin: int, going: Range, room: CreditLeft) -> int:
    """The index after the last frame that goes; by bisection: a chunk may have 1,000 frames."""
    first, last = going
    end = bisect_left(spans.base, last)
    if last - first > room.records:
        end = min(end, bisect_right(spans.base, first + room.records) - 1)
    end = min(end, bisect_right(spans.at, spans.at[begin] + room.bytes) - 1)
    return max(end, begin + 1)


def _frames_of_ranges(spans: FrameSpans, going: Ranges, room: CreditLeft) -> list[Range]:
    """The frames to send, from and to, if records between the first and the last are not wanted."""
    chosen: list[Range] = []
    records = size = 0
    for frame, inside in _frames_with(spans, going):
        records += inside
        size += spans.at[frame + 1] - spans.at[frame]
        if chosen and (records > room.records or size > room.bytes):
            break
        if chosen and chosen[-1][1] == frame:
            chosen[-1] = (chosen[-1][0], frame + 1)
        else:
            chosen.append((frame, frame + 1))
    return chosen


def _frames_with(spans: FrameSpans, going: Ranges) -> Iterator[Range]:
    """Each frame that holds any of the ranges, and how many records of them."""
    frame = inside = 0
    for start, end in going:
        at = start
        while at < end:
            if at >= spans.base[frame + 1]:
                if inside:
                    yield frame, inside
                frame, inside = bisect_right(spans.base, at, frame) - 1, 0
            upto = min(end, spans.base[frame + 1])
            inside += upto - at
            at = upto
    if inside:
        yield frame, inside


def _first_records(ranges: Ranges, records_max: int) -> Ranges:
    left = records_max
    kept: list[Range] = []
    for start, end in ranges:
        if left <= 0:
            break
        kept.append((start, min(end, start + left)))
        left -= end - start
    return tuple(kept)
