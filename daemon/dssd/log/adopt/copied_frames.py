"""Makes a segment of frames that were built elsewhere: copies them, then stamps them in place.

::

    copy:   copy-N.tmp           head and frames, not stamped, durable
    stamp:  the same, stamped    ─▶ TOPIC-SEGMENT.seg, its index and a mark beside it, durable
    settle: without the mark     once the store has its row

The copy may take long, and holds nobody up. What comes after it is short: of a page of frames only
the stamps are written again.

Invariant: a file whose row is committed is whole and durable. One that was not published has a
temporary name, or the mark beside it, so a start removes it; if the power goes in between, it may
find one without the mark, and sets it aside. Blocking; this module must not know why offsets and
times are as they are.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dss_core.errors import FrameTooLarge
from dss_core.frame import HEADER_BYTES as FRAME_HEADER_BYTES
from dss_core.frame import STAMP_AT, read_header, stamped
from dss_core.limits import CHUNK_BYTES_MAX, CHUNK_FRAMES_MAX
from dss_core.progress import Range
from dssd.log.limits import ADOPT_WRITE_BYTES
from dssd.log.recovery import judge_segment
from dssd.log.segment.file import (
    HEADER_BYTES,
    SegmentId,
    SegmentPaths,
    encode_header,
    write_all,
)
from dssd.log.segment.index_file import Summary
from dssd.log.segment.run_index import OpenRun, Run, Runs, StreamRuns

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class _Copied(NamedTuple):
    partition: int
    records: int
    position: int
    length: int


@dataclass(slots=True)
class Copy:
    """Frames in a file of their own."""

    path: Path
    frames: list[_Copied] = field(default_factory=list)
    size: int = HEADER_BYTES

    @property
    def records(self) -> int:
        """Of all frames."""
        return sum(frame.records for frame in self.frames)


class Stamp(NamedTuple):
    """What the frames of a copy are stamped with."""

    segment: SegmentId
    ends: Sequence[int]
    """Of each stream, without these frames."""
    time_us: int
    topic_epoch: int


@dataclass(frozen=True, slots=True)
class Stamped:
    """A copy that only waits for its row."""

    summary: Summary
    ranges: dict[int, Range]
    """By partition: the offsets of its records."""


def copy_frames(path: Path, frames: Callable[[], Iterable[bytes]]) -> Copy:
    """Write frames to a new file, durably, without a stamp.

    Raises:
        FrameTooLarge: there are too many, or too many bytes.
        OSError: the disk refused; no file remains.
    """
    copy = Copy(path)
    fd = os.open(path, _NEW_FILE, 0o600)
    try:
        _write(fd, copy, frames())
        os.fsync(fd)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    return copy


def _write(fd: int, copy: Copy, frames: Iterable[bytes]) -> None:
    waiting: list[bytes | memoryview] = []
    written = copy.size
    for frame in frames:
        header = read_header(frame)
        copy.frames.append(_Copied(header.partition, header.records, copy.size, len(frame)))
        copy.size += len(frame)
        if copy.size > CHUNK_BYTES_MAX + HEADER_BYTES or len(copy.frames) > CHUNK_FRAMES_MAX:
            raise FrameTooLarge(size_bytes=copy.size, records=copy.records)
        waiting.append(frame)
        if copy.size - written >= ADOPT_WRITE_BYTES:
            write_all(fd, waiting, written)
            written, waiting = copy.size, []
    write_all(fd, waiting, written)


def stamp_copy(paths: SegmentPaths, copy: Copy, stamp: Stamp, run_bytes_max: int) -> Stamped:
    """Stamp the frames, index them, and give the file its place beside the segments; durably.

    Raises:
        OSError: the disk refused.
    """
    fd = os.open(copy.path, os.O_RDWR | os.O_CLOEXEC)
    try:
        write_all(fd, [encode_header(stamp.segment, stamp.time_us)], 0)
        runs = _stamped_runs(fd, copy, stamp, run_bytes_max)
        os.fdatasync(fd)
    finally:
        os.close(fd)
    os.close(os.open(paths.adopting(stamp.segment), _NEW_FILE, 0o600))
    copy.path.rename(paths.segment(stamp.segment))
    copy.path = paths.segment(stamp.segment)
    # It syncs the directory for all three.
    judge_segment.write_index(paths, stamp.segment, copy.size, runs, len(copy.frames))
    summary = judge_segment.load_summary(paths, stamp.segment)
    extents = {partition: entry.extent for partition, entry in summary.streams.items()}
    return Stamped(summary, {number: (one.start, one.end) for number, one in extents.items()})


def _stamped_runs(fd: int, copy: Copy, stamp: Stamp, run_bytes_max: int) -> Runs:
    ends = list(stamp.ends)
    runs: Runs = {}
    open_runs: dict[int, OpenRun] = {}
    for partition, records, position, length in copy.frames:
        base, ends[partition] = ends[partition], ends[partition] + records
        frame = os.pread(fd, length, position)
        head = stamped(
            frame,
            base_offset=base,
            append_time_us=stamp.time_us,
            topic_epoch=stamp.topic_epoch,
            storage_topic_id=stamp.segment.storage_topic_id,
        )
        write_all(fd, [head[STAMP_AT:]], position + STAMP_AT)
        new = Run(base, ends[partition], position, length, stamp.time_us, 0)
        pieces = (head, memoryview(frame)[FRAME_HEADER_BYTES:])
        run = open_runs.setdefault(partition, OpenRun()).add(new, pieces, run_bytes_max)
        runs.setdefault(partition, StreamRuns()).put(run, stamp.time_us)
    return runs


def drop_copy(paths: SegmentPaths, copy: Copy, segment: SegmentId | None) -> None:
    """Remove a copy that was not published, and the index that it may have as this segment.

    What the disk does not remove, the next start does.
    """
    with suppress(OSError):
        copy.path.unlink(missing_ok=True)
        if segment is not None:
            paths.index(segment).unlink(missing_ok=True)
            paths.adopting(segment).unlink(missing_ok=True)


def settle(paths: SegmentPaths, segment: SegmentId) -> None:
    """Remove the mark of a segment whose row is committed; if the disk does not, a start does."""
    with suppress(OSError):
        paths.adopting(segment).unlink(missing_ok=True)
