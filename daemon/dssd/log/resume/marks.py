"""Marks: the runs and producers of an active segment, stored with its watermark. A start does not
read the frames below them.

Beside the segment lies a file of *marks*. Each mark describes the part of the segment from the mark
before up to its own end::

    segment   ║ frames ........ │ frames ........ │ frames ...
           header          mark 1            mark 2            a start reads from here on

Little endian. Marks lie in the file in the order of their parts; the first part starts after the
segment's header::

    ┌ head, 64 bytes ──────────────────────────────────────────────────────────────────┐
    │ magic DSSMARK1 │ u32 version │ u32 storage topic │ u64 segment │ u64 start │ u64 end │
    │ u64 frames of the segment up to the end │ u32 streams │ u32 runs │ u64 bytes of changes │
    ├ one per stream with runs in the part, 16 bytes ──────────────────────────────────┤
    │ u32 partition │ u32 runs │ u64 append time of its last frame                         │
    ├ the runs, stream after stream, 48 bytes each (fields of Run) ────────────────────┤
    │ changes of producers (`Producers.take_changes`)                                      │
    │ u64 checksum of all above (xxh3-64)                                                  │
    └──────────────────────────────────────────────────────────────────────────────────┘

Invariant: a mark is written after its part of the segment is durable, and counts only if the
watermark in the segment's row covers it. `load` gives what was written, up to the first mark that
is torn, damaged, missing or above the watermark. So the file is a cache and need not be durable.
Blocking; this module must not know frames.
"""

import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import xxhash

from dssd.log.segment.file import (
    HEADER_BYTES,
    SegmentId,
    SegmentPaths,
    sync_directory,
    write_all,
)
from dssd.log.segment.run_index import RUN_BYTES, Runs, StreamRuns
from dssd.log.sequences import SnapshotPosition
from dssd.log.writer_messages import Marked

_MAGIC = b"DSSMARK1"
_VERSION = 2
"""Rises with the layout of the changes of producers too. Marks of another version are left aside,
and the frames below them are read."""
_HEAD = struct.Struct("<8sIIQQQQIIQ")
_STREAM = struct.Struct("<IIQ")
_CHECKSUM = struct.Struct("<Q")


@dataclass(slots=True)
class Marks:
    """How far the file of marks of a segment goes."""

    size: int = 0
    """Bytes of whole marks in it."""
    end: int = HEADER_BYTES
    """Where the last part that they describe ends in the segment."""
    frames: int = 0
    """How many frames of the segment lie below that."""
    unstored: bytes = b""
    """Changes of producers of a mark that could not be written; the next mark has them."""


@dataclass(slots=True)
class LoadedMarks:
    """The content of the marks of a segment."""

    marks: Marks = field(default_factory=Marks)
    runs: Runs = field(default_factory=dict)
    changes: list[bytes] = field(default_factory=list)
    """Changes of producers, in order, without those that the snapshot covers."""


class _Mark(NamedTuple):
    """One mark, as it stands in the file."""

    end: int
    frames: int
    streams: list[tuple[int, int, int]]
    runs: memoryview
    changes: bytes
    size: int


def add(
    paths: SegmentPaths,
    segment: SegmentId,
    marks: Marks,
    runs: Runs,
    marked: Marked,
    *,
    durably: bool = False,
) -> None:
    """Add a mark of the segment's frames up to ``marked.size``.

    ``runs`` are all runs of the segment. No run reaches over that position, and the runs below it
    do not change any more; later runs may be added meanwhile.

    Raises:
        OSError: the disk refused. The marks before are whole, and the call may be repeated.
    """
    if marked.size == marks.end:
        marks.unstored += marked.changes
        return
    changes = marks.unstored + marked.changes
    mark = _encoded(segment, marks.end, runs, marked, changes)
    marks.unstored = changes
    fd = os.open(paths.marks(segment), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(fd, marks.size)
        write_all(fd, [mark], marks.size)
        if durably:
            os.fsync(fd)
    finally:
        os.close(fd)
    if durably:
        sync_directory(paths.directory)
    marks.size += len(mark)
    marks.end, marks.frames, marks.unstored = marked.size, marked.frames, b""


def _encoded(segment: SegmentId, start: int, runs: Runs, marked: Marked, changes: bytes) -> bytes:
    entries: list[bytes] = []
    packed: list[bytes] = []
    # A copy, because streams may be added meanwhile.
    for partition, own in list(runs.items()):
        first, behind = own.between(start, marked.size)
        if first == behind:
            continue
        assert own.extent is not None
        last_us = min(own.extent.last_us, marked.last_us)
        entries.append(_STREAM.pack(partition, behind - first, last_us))
        packed.append(own.packed(first, behind))
    run_count = sum(map(len, packed)) // RUN_BYTES
    head = _HEAD.pack(
        _MAGIC,
        _VERSION,
        *segment,
        start,
        marked.size,
        marked.frames,
        len(entries),
        run_count,
        len(changes),
    )
    content = b"".join((head, *entries, *packed, changes))
    return content + _CHECKSUM.pack(xxhash.xxh3_64_intdigest(content))


def load(
    paths: SegmentPaths, segment: SegmentId, watermark: int, covered: SnapshotPosition
) -> LoadedMarks:
    """Load the marks of a segment below its watermark.

    ``covered`` is the position up to which a snapshot knows the producers.

    Raises:
        OSError: the disk failed in a way that does not mean that the marks are lost.
    """
    known = LoadedMarks()
    try:
        content = paths.marks(segment).read_bytes()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EIO):
            raise
        return known
    for mark in _marks_in(content, segment, watermark):
        _learn(known, mark)
        if (segment.segment_id, mark.end) > (covered.segment_id, covered.position):
            known.changes.append(mark.changes)
    return known


def _learn(known: LoadedMarks, mark: _Mark) -> None:
    at = 0
    for partition, runs, last_us in mark.streams:
        size = runs * RUN_BYTES
        own = known.runs.setdefault(partition, StreamRuns())
        own.extend_packed(mark.runs[at : at + size], last_us)
        at += size
    known.marks.size += mark.size
    known.marks.end, known.marks.frames = mark.end, mark.frames


def _marks_in(content: bytes, segment: SegmentId, watermark: int) -> Iterator[_Mark]:
    """The whole marks from the first on, as long as each starts where the one before ended."""
    at, end = 0, HEADER_BYTES
    while (mark := _mark_at(content, at, segment, end)) is not None and mark.end <= watermark:
        yield mark
        at += mark.size
        end = mark.end


def _mark_at(content: bytes, at: int, segment: SegmentId, start: int) -> _Mark | None:
    if len(content) - at < _HEAD.size:
        return None
    magic, version, *fields = _HEAD.unpack_from(content, at)
    if (magic, version) != (_MAGIC, _VERSION):
        return None
    topic, number, begins, end, frames, stream_count, run_count, change_bytes = fields
    runs_at = at + _HEAD.size + stream_count * _STREAM.size
    changes_at = runs_at + run_count * RUN_BYTES
    checksum_at = changes_at + change_bytes
    if checksum_at + _CHECKSUM.size > len(content):
        return None
    view = memoryview(content)
    if (
        xxhash.xxh3_64_intdigest(view[at:checksum_at])
        != _CHECKSUM.unpack_from(view, checksum_at)[0]
    ):
        return None
    if SegmentId(topic, number) != segment or begins != start:
        return None
    return _Mark(
        end,
        frames,
        list(_STREAM.iter_unpack(view[at + _HEAD.size : runs_at])),
        view[runs_at:changes_at],
        bytes(view[changes_at:checksum_at]),
        checksum_at + _CHECKSUM.size - at,
    )
