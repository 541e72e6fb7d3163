"""Finds the whole frames in bytes that may be damaged.

Invariant: a frame is reported only if both its checksums hold and it belongs to the storage
topic; all other bytes are reported as bad. After bad bytes the search goes on at the next place
that looks like a frame. A bad frame whose header is whole is skipped by its length, because the
producer's data in its body may look like a frame.
"""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dss_core.errors import FrameCorrupt
from dss_core.frame import MAGIC, Header, Stored, read_header, verify_stamp, whole_frames
from dss_core.limits import FRAME_BYTES_MAX

WINDOW_BYTES = FRAME_BYTES_MAX * 2
"""How much of a file is held at a time: whole frames of the largest size fit."""
PAGE_BYTES = 4_096
"""The size of a page, which the disk reads or refuses as a whole."""


class FoundFrame(NamedTuple):
    """A whole frame and its bytes."""

    position: int
    header: Header
    frame: bytes


class FrameSpan(NamedTuple):
    """Whole frames end to end."""

    position: int
    buffer: bytes
    frames: list[Stored]
    """With start and end in the buffer; the first frame lies at ``position`` in the file."""

    def place(self, at: int) -> int:
        """Where a byte of the buffer lies in the file."""
        return self.position + at - self.frames[0][0]


@dataclass(frozen=True, slots=True)
class BadBytes:
    """Bytes that are no whole frame."""

    start: int
    end: int
    header: Header | None
    """The header, if it is whole and only the body is not."""


def scan_bytes(buffer: bytes, storage_topic_id: int) -> Iterator[FoundFrame | BadBytes]:
    """The frames in a buffer, with their positions in it."""
    for item in _Scan(_Buffer(buffer), storage_topic_id, 0, len(buffer)).items():
        if isinstance(item, BadBytes):
            yield item
            continue
        for at, end, *_ in item.frames:
            yield FoundFrame(at, read_header(buffer, at), buffer[at:end])


def scan_file(
    fd: int, storage_topic_id: int, start: int, end: int
) -> Iterator[FrameSpan | BadBytes]:
    """The frames in a part of a file, with positions in the file."""
    yield from _Scan(_FileWindow(fd, end), storage_topic_id, start, end).items()


class _Buffer:
    """A source that is in memory as a whole."""

    def __init__(self, buffer: bytes) -> None:
        self.bytes = buffer
        self.start = 0

    def hold(self, position: int) -> int:
        """Index of a position in `bytes`; the largest frame may follow it."""
        return position


class _FileWindow:
    """A source that holds the part of a file around a position, which moves forward."""

    def __init__(self, fd: int, end: int) -> None:
        self._fd = fd
        self._end = end
        self.start = 0
        self.bytes = b""

    def hold(self, position: int) -> int:
        """Index of a position in `bytes`; the largest frame may follow it."""
        index = position - self.start
        held = self.start + len(self.bytes)
        if index < 0 or (held < self._end and held - position < FRAME_BYTES_MAX):
            self.start = position
            self.bytes = _read_whole(self._fd, position, min(WINDOW_BYTES, self._end - position))
            index = 0
        return index


def _read_whole(fd: int, position: int, size: int) -> bytes:
    pieces: list[bytes] = []
    while size > 0:
        piece = _read(fd, size, position)
        if not piece:
            break
        pieces.append(piece)
        position += len(piece)
        size -= len(piece)
    return b"".join(pieces)


def _read(fd: int, size: int, position: int) -> bytes:
    """Read some bytes; zeros for a page that the disk cannot read, so that it counts as damaged."""
    try:
        return os.pread(fd, size, position)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
    size = min(size, PAGE_BYTES - position % PAGE_BYTES)
    try:
        return os.pread(fd, size, position)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
    return bytes(size)


class _Scan:
    """One pass over a source."""

    def __init__(
        self, source: _Buffer | _FileWindow, storage_topic_id: int, start: int, end: int
    ) -> None:
        self._source = source
        self._storage_topic_id = storage_topic_id
        self._position = start
        self._end = end

    def items(self) -> Iterator[FrameSpan | BadBytes]:
        """Spans of whole frames and bad bytes, in order, without a gap."""
        bad_start = self._position
        while self._position < self._end:
            position = self._position
            found = self._frames_here(position) or self._bad_frame_here(position)
            if found is None:
                self._position = self._next_candidate(position + 1)
                continue
            if bad_start < position:
                yield BadBytes(bad_start, position, None)
            yield found
            self._position = bad_start = _end_of(found)
        if bad_start < self._end:
            yield BadBytes(bad_start, self._end, None)

    def _frames_here(self, position: int) -> FrameSpan | None:
        """The whole frames from a position on, as far as bytes are held."""
        index = self._source.hold(position)
        buffer = self._source.bytes
        frames = whole_frames(buffer, index, self._storage_topic_id)
        return FrameSpan(position, buffer, frames) if frames else None

    def _bad_frame_here(self, position: int) -> BadBytes | None:
        """The bad frame at a position, if its header is whole."""
        index = self._source.hold(position)
        try:
            header = verify_stamp(self._source.bytes, index)
        except FrameCorrupt:
            return None
        if header.storage_topic_id != self._storage_topic_id:
            return None
        return BadBytes(position, min(position + header.frame_bytes, self._end), header)

    def _next_candidate(self, position: int) -> int:
        while position < self._end:
            index = self._source.hold(position)
            found = self._source.bytes.find(MAGIC, index)
            if found >= 0:
                return position + found - index
            # The magic number may straddle the end of what is held.
            step = len(self._source.bytes) - index - len(MAGIC) + 1
            position += max(1, step)
        return self._end


def _end_of(item: FrameSpan | BadBytes) -> int:
    if isinstance(item, BadBytes):
        return item.end
    return item.position + item.frames[-1][1] - item.frames[0][0]
