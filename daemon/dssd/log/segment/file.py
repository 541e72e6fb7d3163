"""Segment files: their names, their header, how one is created, written and quarantined.

A segment file belongs to one storage topic. It starts with a header, followed by stamped
frames of any of its partitions, end to end (`dss_core.frame` has their format). Little endian::

     0        8        12       16       20                28               36       44
     +--------+--------+--------+--------+-----------------+----------------+--------+
     | magic  | version| header | storage| segment id      | created, us    | check- |
     | DSSSEG01 u32    | bytes  | topic  | u64             | u64            | sum u64|
     +--------+--------+--------+--------+-----------------+----------------+--------+
     44: zeros up to HEADER_BYTES = 64, then the first frame

The checksum is xxh3-64 of bytes 0..36.

Invariant: a file under its final name has a whole, durable header: it is written under a temporary
name, synced and renamed, and its directory is synced. Names are hexadecimal ids and never come from
a user. This module must not know frames, indexes or rows.
"""

import errno
import os
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import xxhash

from dss_core.limits import WRITEV_BUFFERS_MAX
from dss_core.vectored import unwritten

REWRITE_PIECE_BYTES_MAX = 1 << 20
"""How much is read and written at once when bytes are written again after a failed sync."""


HEADER_BYTES = 64
VERSION = 1
_MAGIC = b"DSSSEG01"
_HEADER = struct.Struct("<8sIIIQQ")
_CHECKSUM = struct.Struct("<Q")
assert _HEADER.size + _CHECKSUM.size <= HEADER_BYTES

SEGMENT_SUFFIX = ".seg"
INDEX_SUFFIX = ".idx"
PRODUCERS_SUFFIX = ".prod"
MARKS_SUFFIX = ".marks"
CACHE_SUFFIXES = (INDEX_SUFFIX, PRODUCERS_SUFFIX, MARKS_SUFFIX)
"""Suffixes of files that are rebuilt from the frames if they are missing."""
ADOPTING_SUFFIX = ".adopting"
TEMPORARY_SUFFIX = ".tmp"
QUARANTINE = "quarantine"


class SegmentId(NamedTuple):
    """Names a segment; ids of one storage topic rise in the order of their frames."""

    storage_topic_id: int
    segment_id: int


class BadSegmentHeader(Exception):
    """The first bytes of a file are not the header of the segment that its name says."""


@dataclass(frozen=True, slots=True)
class SegmentPaths:
    """Where the files of a segment lie."""

    directory: Path

    def segment(self, segment: SegmentId) -> Path:
        """The file of frames."""
        return self.directory / (_stem(segment) + SEGMENT_SUFFIX)

    def adopting(self, segment: SegmentId) -> Path:
        """The mark that a segment is a copy of adopted frames, to be removed if no row names it."""
        return self.directory / (_stem(segment) + ADOPTING_SUFFIX)

    def copy(self, number: int) -> Path:
        """A file that may become a segment; removed at a start."""
        return self.directory / f"copy-{number}{TEMPORARY_SUFFIX}"

    def index(self, segment: SegmentId) -> Path:
        """The index of a sealed segment; rebuilt where it is missing."""
        return self.directory / (_stem(segment) + INDEX_SUFFIX)

    def producers(self, segment: SegmentId) -> Path:
        """The snapshot of producers from when the segment began or was closed."""
        return self.directory / (_stem(segment) + PRODUCERS_SUFFIX)

    def marks(self, segment: SegmentId) -> Path:
        """The marks of an active segment (`resume.marks`)."""
        return self.directory / (_stem(segment) + MARKS_SUFFIX)

    def quarantine(self, path: Path) -> Path:
        """Move a file to quarantine, durably; returns its new path. Overwrites nothing."""
        folder = self.directory / QUARANTINE
        folder.mkdir(exist_ok=True)
        # Before the move: otherwise a crash could lose the folder, and the file with it.
        sync_directory(self.directory)
        target = folder / path.name
        count = 0
        while target.exists():
            count += 1
            target = folder / f"{path.name}.{count}"
        path.rename(target)
        sync_directory(folder)
        sync_directory(self.directory)
        return target


def parse_name(path: Path) -> SegmentId | None:
    """The segment that a file's name says; None if the name has another form."""
    topic, dash, segment = path.stem.partition("-")
    if not dash or len(topic) != 8 or len(segment) != 16:
        return None
    try:
        return SegmentId(int(topic, 16), int(segment, 16))
    except ValueError:
        return None


def _stem(segment: SegmentId) -> str:
    return f"{segment.storage_topic_id:08x}-{segment.segment_id:016x}"


def encode_header(segment: SegmentId, created_us: int) -> bytes:
    """The header of a new file."""
    fields = _HEADER.pack(
        _MAGIC, VERSION, HEADER_BYTES, segment.storage_topic_id, segment.segment_id, created_us
    )
    checksum = _CHECKSUM.pack(xxhash.xxh3_64_intdigest(fields))
    return (fields + checksum).ljust(HEADER_BYTES, b"\0")


def check_header(buffer: bytes, segment: SegmentId) -> None:
    """Check the first bytes of a file.

    Raises:
        BadSegmentHeader: too short, another segment's, of another version, or damaged.
    """
    if len(buffer) < HEADER_BYTES:
        raise BadSegmentHeader(f"only {len(buffer)} bytes")
    magic, version, header_bytes, topic, number, _ = _HEADER.unpack_from(buffer)
    (checksum,) = _CHECKSUM.unpack_from(buffer, _HEADER.size)
    if xxhash.xxh3_64_intdigest(buffer[: _HEADER.size]) != checksum or magic != _MAGIC:
        raise BadSegmentHeader("its checksum does not match")
    if (version, header_bytes) != (VERSION, HEADER_BYTES):
        raise BadSegmentHeader(f"version {version}")
    if SegmentId(topic, number) != segment:
        raise BadSegmentHeader("it belongs to another segment")


class SegmentWriter:
    """A segment file that takes frames, used by one thread at a time.

    Its descriptor may be closed while all in it is durable. Call `open` before `write`.
    """

    __slots__ = ("_doubtful", "_fd", "_path", "segment", "size", "synced")

    def __init__(self, segment: SegmentId, path: Path, size: int) -> None:
        self.segment = segment
        self.size = size
        self.synced = size
        """Bytes up to here are durable."""
        self._path = path
        self._fd: int | None = None
        self._doubtful = False

    @classmethod
    def create(cls, paths: SegmentPaths, segment: SegmentId, created_us: int) -> Self:
        """Make a new file, durably, with its header.

        Raises:
            OSError: the disk refused; no file remains under the final name.
        """
        path = paths.segment(segment)
        write_durably(path, [encode_header(segment, created_us)])
        return cls.reopen(paths, segment, HEADER_BYTES)

    @classmethod
    def reopen(cls, paths: SegmentPaths, segment: SegmentId, size: int) -> Self:
        """Append to an existing file after its first ``size`` bytes, which are durable."""
        return cls(segment, paths.segment(segment), size)

    @property
    def is_open(self) -> bool:
        """Whether it has a descriptor."""
        return self._fd is not None

    def open(self) -> None:
        """Open its descriptor.

        Raises:
            OSError: no descriptor is left, or the file cannot be opened.
        """
        assert self._fd is None
        self._fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)

    def write(self, buffers: list[bytes | memoryview], size: int) -> None:
        """Append the buffers, ``size`` bytes together.

        Raises:
            OSError: the disk refused; bytes after the old size may have been written.
        """
        assert self._fd is not None
        write_all(self._fd, buffers, self.size)
        self.size += size

    def sync(self) -> None:
        """Make what was written durable.

        Raises:
            OSError: unknown what is durable. The call may be repeated only after a full disk.
        """
        if self.synced == self.size:
            return
        assert self._fd is not None, "what is not durable keeps its descriptor"
        if self._doubtful:
            self._write_again(self._fd)
        self._doubtful = True
        os.fdatasync(self._fd)
        self._doubtful = False
        self.synced = self.size

    def _write_again(self, fd: int) -> None:
        """Write again what a failed sync may have left in the page cache only, marked clean."""
        at = self.synced
        while at < self.size:
            piece = os.pread(fd, min(REWRITE_PIECE_BYTES_MAX, self.size - at), at)
            if not piece:
                raise OSError(errno.EIO, "the file became shorter")
            write_all(fd, [piece], at)
            at += len(piece)

    def cut_back(self, size: int) -> None:
        """Truncate to ``size`` what was written and never acknowledged."""
        if self._fd is None:
            assert size == self.size
            return
        os.ftruncate(self._fd, size)
        os.fsync(self._fd)
        self.size = size
        self.synced = min(self.synced, size)

    def close(self) -> None:
        """Close the descriptor, if it has one."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def write_all(fd: int, buffers: Sequence[bytes | memoryview], position: int) -> None:
    """Write all buffers at the position, with as many calls as it takes."""
    for first in range(0, len(buffers), WRITEV_BUFFERS_MAX):
        chunk = buffers[first : first + WRITEV_BUFFERS_MAX]
        while chunk:
            written = os.pwritev(fd, chunk, position)
            position += written
            chunk = unwritten(chunk, written)


def write_durably(path: Path, pieces: Iterable[bytes]) -> int:
    """Replace the file by one with the pieces, atomically and durably; returns its size.

    Raises:
        OSError: the disk refused; the final name is as it was.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        try:
            size = 0
            for piece in pieces:
                write_all(fd, [piece], size)
                size += len(piece)
            os.fsync(fd)
        finally:
            os.close(fd)
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
    return size


def write_back(path: Path) -> None:
    """Write most of a file back to the disk, so that the writer's own sync is short.

    Promises nothing. An error is ignored here, because the kernel reports it to the writer's own
    descriptor too.
    """
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fdatasync(fd)
        finally:
            os.close(fd)


def sync_directory(path: Path) -> None:
    """Make creations, renames and removals in the directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
