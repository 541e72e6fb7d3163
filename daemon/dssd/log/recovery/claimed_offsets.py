"""Which offsets are never assigned again because the frames that had them are damaged. Pure.

If the header of a bad frame is whole, its records are known. If not, the bad bytes may have been
frames of any stream. A later frame of a stream proves where the stream stood. Every other stream
skips as many offsets as the bytes could have held at most, even if it has no frame left::

    stream 0   ▒▒▒▒ a ▒▒▒▒ b  bad      c        c proves where the stream stood: nothing to claim
    stream 1   ▒▒▒▒▒▒▒ d ▒▒▒  bad ─────┄┄┄┄┄    claimed: d's end + bad bytes

Invariant: a claim starts at its stream's end. It never covers the offsets of a frame that is there,
in whichever later segment, and never passes the end at which its stream was sealed. So claims are
made only after all segments were read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dss_core.frame import Header


class LogPosition(NamedTuple):
    """A position in the log of a storage topic; positions rise in the order of the frames."""

    segment_id: int
    position: int


@dataclass(frozen=True, slots=True)
class LostBytes:
    """Bad bytes that may have held frames."""

    place: LogPosition
    bytes: int
    header: Header | None
    """The header, if it is whole and only the body is not."""


class Claim(NamedTuple):
    """Offsets of a stream from its end on, and where the bad bytes lie that may have held them."""

    place: LogPosition
    partition: int
    start: int
    end: int


def claims_of(
    losses: Iterable[LostBytes],
    ends: Sequence[int],
    last_frames: Mapping[int, LogPosition],
    sealed_ends: Sequence[int] | None = None,
) -> list[Claim]:
    """The claims for lost bytes, which are given in the order in which they lie in the log.

    ``ends`` are the ends of the streams without the lost bytes, ``last_frames`` the positions of
    the frames that prove these ends, ``sealed_ends`` the final ends of a sealed storage topic.
    """
    found: list[Claim] = []
    moved = list(ends)
    for loss in losses:
        for partition, end in enumerate(moved):
            if _is_proven(partition, loss, last_frames):
                continue
            claimed = _claimed_end(loss, partition, end)
            if sealed_ends is not None:
                claimed = min(claimed, sealed_ends[partition])
            if claimed > end:
                found.append(Claim(loss.place, partition, end, claimed))
                moved[partition] = claimed
    return found


def _is_proven(partition: int, loss: LostBytes, last_frames: Mapping[int, LogPosition]) -> bool:
    last = last_frames.get(partition)
    return last is not None and last > loss.place


def _claimed_end(loss: LostBytes, partition: int, end: int) -> int:
    """Where the offsets of a stream continue if the bad bytes held frames of it."""
    header = loss.header
    if header is not None:
        return header.base_offset + header.records if header.partition == partition else end
    return end + loss.bytes
