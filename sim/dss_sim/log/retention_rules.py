"""What retention may remove of a topic's files, and what it must remove, judged by the files. Pure.

Retention by bytes leaves at least the limit; retention by age removes nothing younger than the
limit. Afterwards neither limit would remove the whole of the oldest file.

Invariant: where a file holds frames that were copied to a newer one, or bytes that are no frames,
the log is given the benefit of the doubt. This module must not know how the log counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dss_sim.log.acts import Retain
from dssd.log.segment.file import HEADER_BYTES, SEGMENT_SUFFIX, SegmentId, parse_name
from dssd.log.segment.frame_scan import FoundFrame, scan_bytes


@dataclass(frozen=True, slots=True)
class Held:
    """A frame in a file."""

    partition: int
    base: int
    time_us: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FileFound:
    """One file of a topic."""

    segment: SegmentId
    bytes: int
    held: tuple[Held, ...] = ()


def files_of(root: Path, storage_topic_id: int) -> list[FileFound]:
    """The files of a topic, the oldest first."""
    found: list[FileFound] = []
    for path in root.glob(f"*{SEGMENT_SUFFIX}"):
        segment = parse_name(path)
        if segment is not None and segment.storage_topic_id == storage_topic_id:
            found.append(_file(path, segment))
    return sorted(found, key=lambda one: one.segment)


def _file(path: Path, segment: SegmentId) -> FileFound:
    content = path.read_bytes()
    frames = scan_bytes(content[HEADER_BYTES:], segment.storage_topic_id)
    held = (
        Held(head.partition, head.base_offset, head.append_time_us, head.frame_bytes)
        for head in (one.header for one in frames if isinstance(one, FoundFrame))
    )
    return FileFound(segment, len(content), tuple(held))


def taken_wrongly(
    before: Sequence[FileFound], after: Sequence[FileFound], act: Retain, oldest_us: int
) -> Iterator[str]:
    """What retention removed and had to keep. Records from ``oldest_us`` on are young enough."""
    stays = {file.segment for file in after}
    gone = [file for file in before if file.segment not in stays]
    # An empty file may go at any time, but its bytes counted while it was there.
    left = sum(file.bytes for file in (*after, *(one for one in gone if not one.held)))
    took_frames = any(one.held for one in gone)
    if took_frames and act.age_ms is None and act.bytes is not None and left < act.bytes:
        yield f"retention left {left} bytes, of {act.bytes} that are kept"
    copies = {(one.partition, one.base) for file in after for one in file.held}
    for one in (one for file in gone for one in file.held):
        is_gone = (one.partition, one.base) not in copies
        if is_gone and act.bytes is None and one.time_us >= oldest_us:
            yield f"retention took offset {one.base} of {one.time_us}, and keeps {oldest_us}"


def left_wrongly(
    before: Sequence[FileFound],
    after: Sequence[FileFound],
    act: Retain,
    oldest_us: int,
    *,
    is_sealed: bool = False,
) -> Iterator[str]:
    """What retention kept and had to remove, if no frame came meanwhile.

    The last file of a sealed storage topic stays, because the producers' snapshot stands beside it.
    """
    own = _without_copies(after)
    if not own or not own[0].held or (is_sealed and len(own) == 1):
        return
    first, later = own[0], own[1:]
    # If there are several, the last may have begun just now, by the roll that this call asked for.
    is_rolled = bool(later) or len(before) == 1
    if act.age_ms is not None and is_rolled and all(one.time_us < oldest_us for one in first.held):
        yield f"retention left {first.segment}, all of which is older than {oldest_us}"
    kept = sum(HEADER_BYTES + sum(one.bytes for one in file.held) for file in later)
    # While a file is being made, the one before it still takes frames and may not be removed.
    is_at_rest = before and before[-1].held and before[-1].segment == after[-1].segment
    if act.bytes is not None and later and is_at_rest and kept >= act.bytes:
        yield f"retention left {first.segment}, though {kept} bytes lie behind it"


def _without_copies(files: Sequence[FileFound]) -> list[FileFound]:
    """The files, with each frame only in the newest file that has it."""
    newer: set[tuple[int, int]] = set()
    own: list[FileFound] = []
    for file in reversed(files):
        held = tuple(one for one in file.held if (one.partition, one.base) not in newer)
        newer.update((one.partition, one.base) for one in held)
        own.append(FileFound(file.segment, file.bytes, held))
    return own[::-1]
