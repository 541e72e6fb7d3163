"""Which offsets are never given again because the frames that had them are damaged. Pure.

Where the header of a bad frame is whole, its records are known. Where not, nobody can say whose
frames the bad bytes were: every stream that has no later frame to prove where it stands moves on by
as many offsets as the bytes could at most have held, also one of which no frame is left at all::

    stream 0   ▒▒▒▒ a ▒▒▒▒ b  bad      c        c proves where the stream stood: nothing to claim
    stream 1   ▒▒▒▒▒▒▒ d ▒▒▒  bad ─────┄┄┄┄┄    claimed: d's end + bad bytes

Invariant: a claim starts at its stream's end and never reaches over a frame that is there, in
whichever later segment that lies, nor over the end at which its stream was sealed. So claims can be
made only once all segments were read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dss_core.frame import Header


class LogPosition(NamedTuple):
    """A place in the log of a storage topic; places rise in the order of the frames."""

    segment_id: int
    position: int


@dataclass(frozen=True, slots=True)
class LostBytes:
    """Bad bytes."""

    place: LogPosition
    bytes: int
    header: Header | None
    """Of a frame whose header is whole, though its body is not."""


class Claim(NamedTuple):
    """Offsets of a stream, from its end on, and the bad bytes that may have held them."""

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
    """What to claim for losses, in the order in which they lie in the log.

    ``ends`` are those of the streams without the losses, ``last_frames`` where the frames lie that
    prove them, ``sealed_ends`` where the streams of a sealed storage topic end for good.
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
    """Where a stream's offsets go on if the bad bytes held frames of it."""
    header = loss.header
    if header is not None:
        return header.base_offset + header.records if header.partition == partition else end
    return end + loss.bytes
