"""Makes a segment of frames that were built elsewhere: copies them, then stamps them in place.

::

    copy:   copy-N.tmp           head and frames, not stamped, durable
    name:   TOPIC-SEGMENT.seg    with a mark beside it, durable
    stamp:  the same, stamped    durable
    sum:    its runs             once the store has its row, and it is shown
    settle: without the mark

All steps but the stamp may take long, and block no caller. The stamp is short: it writes only the
stamps of the frames, reads nothing, and needs one sync.

Invariant: a file whose row is committed is whole and durable. One that was not published has a
temporary name, or the mark beside it, so a start removes it. Blocking; this module must not know
why offsets and times are as they are.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dss_core.errors import FrameTooLarge
from dss_core.frame import STAMP_AT, read_header, stamped
from dss_core.limits import CHUNK_BYTES_MAX, CHUNK_FRAMES_MAX, FRAME_BYTES_MAX
from dss_core.progress import Range
from dssd.log.limits import ADOPT_WRITE_BYTES
from dssd.log.port import Frames
from dssd.log.segment.file import (
    HEADER_BYTES,
    SegmentId,
    SegmentPaths,
    encode_header,
    sync_directory,
    write_all,
)
from dssd.log.segment.run_index import NOT_SUMMED, OpenRun, Run, Runs, StreamRuns

ADOPT_READ_BYTES = 1 << 20
"""Frames are read again in pieces of this size, which stay in the processor's cache."""


_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class _Copied(NamedTuple):
    partition: int
    records: int
    position: int
    length: int
    head: bytes
    """The number of bytes before a stamp."""


@dataclass(slots=True)
class Copy:
    """Frames in a file of their own, which is open until `close`."""

    path: Path
    fd: int
    frames: list[_Copied] = field(default_factory=list)
    size: int = HEADER_BYTES

    @property
    def records(self) -> int:
        """How many records all frames have."""
        return sum(frame.records for frame in self.frames)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self.fd)


class Stamp(NamedTuple):
    """What the frames of a copy are stamped with."""

    segment: SegmentId
    ends: Sequence[int]
    """The end of each stream, without these frames."""
    time_us: int
    topic_epoch: int


@dataclass(frozen=True, slots=True)
class Stamped:
    """A copy that only waits for its row."""

    runs: Runs
    """The runs, one for each frame and not summed: readers check each frame by itself."""
    ranges: dict[int, Range]
    """By partition: the offsets of its records."""
    bases: list[int]
    """The append time of each frame."""


class Copying:
    """Copies frames into a new file, piece by piece. A caller that stops early calls `abandon`."""

    def __init__(self, path: Path, frames: Frames, piece_bytes: int = ADOPT_WRITE_BYTES) -> None:
        """Make the file; each piece has this many bytes, or a few more.

        Raises:
            OSError: the disk refused; no file remains.
        """
        self.copy = Copy(path, os.open(path, _NEW_FILE, 0o600))
        self._frames = iter(frames())
        self._piece_bytes = piece_bytes
        # The disk has one piece while the next one is read and checked.
        self._syncing = ThreadPoolExecutor(1, thread_name_prefix="adopt")
        self._under_way: Future[None] | None = None

    def write_piece(self) -> int:
        """Write the next frames, and begin to sync them; returns their bytes, 0 behind the last.

        When it returns 0, all of the copy is durable, and only the copy is left open.

        Raises:
            FrameTooLarge: there are too many, or too many bytes.
            OSError: the disk refused.
        """
        begin = position = self.copy.size
        for some in self._frames:
            for frame in some:
                _note(self.copy, frame)
            write_all(self.copy.fd, some, position)
            position = self.copy.size
            if position - begin >= self._piece_bytes:
                self._synced()
                self._under_way = self._syncing.submit(os.fdatasync, self.copy.fd)
                return position - begin
        self._synced()
        self._syncing.shutdown()
        os.fsync(self.copy.fd)
        return 0

    def abandon(self) -> None:
        """Remove what was copied."""
        # Close the descriptor only when no thread syncs it.
        self._syncing.shutdown()
        self.copy.close()
        self.copy.path.unlink(missing_ok=True)

    def _synced(self) -> None:
        """Wait for the sync of a piece. A later one would not tell that this one failed.

        Raises:
            OSError: the disk refused.
        """
        if self._under_way is not None:
            self._under_way.result()


def _note(copy: Copy, frame: bytes | memoryview) -> None:
    """Give a frame its place behind the others.

    Raises:
        FrameTooLarge: they are too many, or too large.
    """
    header = read_header(frame)
    head = bytes(frame[:STAMP_AT])
    copy.frames.append(_Copied(header.partition, header.records, copy.size, len(frame), head))
    copy.size += len(frame)
    if copy.size > CHUNK_BYTES_MAX + HEADER_BYTES or len(copy.frames) > CHUNK_FRAMES_MAX:
        raise FrameTooLarge(size_bytes=copy.size, records=copy.records)


def name_copy(paths: SegmentPaths, copy: Copy, segment: SegmentId) -> None:
    """Give the copy its place beside the segments, durably.

    Raises:
        OSError: the disk refused.
    """
    os.close(os.open(paths.adopting(segment), _NEW_FILE, 0o600))
    # Write the mark first: it tells a start that a segment without a row is a copy.
    sync_directory(paths.directory)
    copy.path.rename(paths.segment(segment))
    copy.path = paths.segment(segment)
    sync_directory(paths.directory)


def stamp_copy(copy: Copy, stamp: Stamp) -> Stamped:
    """Stamp the frames where they lie, durably; nothing else of them is looked at.

    Raises:
        OSError: the disk refused.
    """
    ends = list(stamp.ends)
    stamped_copy = Stamped({}, {}, [])
    write_all(copy.fd, [encode_header(stamp.segment, stamp.time_us)], 0)
    for partition, records, position, length, before in copy.frames:
        base, ends[partition] = ends[partition], ends[partition] + records
        head = stamped(
            before,
            base_offset=base,
            append_time_us=stamp.time_us,
            topic_epoch=stamp.topic_epoch,
            storage_topic_id=stamp.segment.storage_topic_id,
        )
        write_all(copy.fd, [head[STAMP_AT:]], position + STAMP_AT)
        run = Run(base, ends[partition], position, length, stamp.time_us, NOT_SUMMED)
        stamped_copy.runs.setdefault(partition, StreamRuns()).put(run, stamp.time_us)
        stamped_copy.bases.append(base)
    os.fdatasync(copy.fd)
    for partition in stamped_copy.runs:
        stamped_copy.ranges[partition] = (stamp.ends[partition], ends[partition])
    return stamped_copy


def summed_runs(copy: Copy, bases: Sequence[int], time_us: int, run_bytes_max: int) -> Runs:
    """The runs of a stamped copy, joined, with the checksums of what is in the file.

    Raises:
        OSError: it cannot be read.
    """
    runs: Runs = {}
    open_runs: dict[int, OpenRun] = {}
    for base, (frame, content) in zip(bases, _read_again(copy), strict=True):
        partition = frame.partition
        new = Run(base, base + frame.records, frame.position, frame.length, time_us, NOT_SUMMED)
        run = open_runs.setdefault(partition, OpenRun()).add(new, (content,), run_bytes_max)
        runs.setdefault(partition, StreamRuns()).put(run, time_us)
    return runs


def _read_again(copy: Copy) -> Iterator[tuple[_Copied, memoryview]]:
    """The frames of a copy as they lie in the file; each is of use until the next one."""
    # One buffer for all frames, filled by few large reads: fresh pages and single calls cost more.
    buffer = memoryview(bytearray(max(ADOPT_READ_BYTES, FRAME_BYTES_MAX)))
    start = stop = 0
    for frame in copy.frames:
        end = frame.position + frame.length
        if end > stop:
            start = frame.position
            stop = start + os.preadv(copy.fd, [buffer], start)
            if end > stop:
                raise OSError(errno.EIO, "the copy became shorter")
        yield frame, buffer[frame.position - start : end - start]


def drop_copy(paths: SegmentPaths, copy: Copy, segment: SegmentId | None) -> None:
    """Remove a copy that was not published, and the mark that it may have as this segment.

    What the disk does not remove, the next start does.
    """
    with suppress(OSError):
        copy.path.unlink(missing_ok=True)
        if segment is not None:
            paths.adopting(segment).unlink(missing_ok=True)


def settle(paths: SegmentPaths, segment: SegmentId) -> None:
    """Remove the mark of a segment whose row is committed; if the disk does not, a start does."""
    with suppress(OSError):
        paths.adopting(segment).unlink(missing_ok=True)
