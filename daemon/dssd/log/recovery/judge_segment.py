"""What a start decides about each segment file. Blocking; runs on a thread, before anything else.

A sealed segment is trusted by its index. An active one is trusted as far as its marks go, up to its
durable watermark W or a little less. The bytes after the marks are read; without marks, all bytes
are. What is found, compared with W, decides::

    found                                        outcome
    ───────────────────────────────────────────  ────────────────────────────────────────────────
    no file                                      never existed: its row is deleted
    empty file, W promises no frame              never existed: quarantined, its row is deleted
    header only                                  reopened for appends, empty
    whole frames, ending at W                    reopened for appends
    whole frames above W                         copied to a new file; the old one ends at W
    bad bytes above W, no whole frame after      torn tail: the same; the bad bytes are not copied
    bad bytes below W, or whole frames after,    damage: the old file ends at W, whole frames above
    or a bad frame of full length whose header   are copied, the gap in the offsets shows as
    is whole                                     damaged; never cut, never deleted
    file missing, or ends below W                damage: sealed as it is, reported

Frames above W are copied because the page cache may hold bytes that the disk does not have. An old
file without frames below W is quarantined if it has bad bytes, else removed: all its frames are in
the new file. If a full disk has no room for a copy, the frames are rewritten in place.

The offsets of a frame never lie below the end of its stream, even if retention removed records
meanwhile. A bad frame below W counts as sent by its producer, so a repeat is neither answered as
stored nor stored twice. A bad frame above W may never have been acknowledged, so it may be sent
again. The producers of unreadable bytes and of frames lost with the power are unknown: after any
stop but a clean one, each producer is in doubt (`sequences`).

Invariant: no whole frame is lost, none below W is ever moved, nothing bad is ever read as good.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path

from dssd.log.recovery.claimed_offsets import LogPosition, LostBytes
from dssd.log.recovery.segment_content import SegmentContent
from dssd.log.segment import index_file
from dssd.log.segment.file import (
    HEADER_BYTES,
    SegmentId,
    SegmentPaths,
    encode_header,
    write_all,
    write_durably,
)
from dssd.log.segment.frame_scan import BadBytes
from dssd.log.segment.rows import row_id
from dssd.log.segment.run_index import Runs
from dssd.store.rows import SegmentRow

TAIL_COPY_BYTES = 1 << 20
"""How much is copied at once when a start moves the good part of a tail to a new file."""


class Outcome(Enum):
    """What an active segment turned out to be."""

    MISSING = "missing"
    """There is no file: it never existed."""
    NEVER_BEGUN = "never begun"
    """The file has no header and nothing was promised: it never existed."""
    WHOLE = "whole"
    """Everything is below the watermark: it is reopened for appends."""
    TAIL = "tail"
    """There are bytes above the watermark, torn or not: whole frames are copied to a new file."""
    DAMAGED = "damaged"
    """Bad bytes where good ones were promised, or between good ones, or where the offsets are known
    of a frame that may have been acknowledged: it takes no more frames."""


def judge(content: SegmentContent | None, watermark: int) -> Outcome:
    """The outcome of an active segment, by its content and its watermark."""
    if content is None:
        return Outcome.MISSING
    if content.header_reason:
        nothing = not content.kept and not content.above and watermark <= HEADER_BYTES
        return Outcome.NEVER_BEGUN if nothing else Outcome.DAMAGED
    if content.size < watermark:
        return Outcome.DAMAGED
    if content.damaged(watermark):
        return Outcome.DAMAGED
    return Outcome.TAIL if content.size > watermark else Outcome.WHOLE


def never_begun(paths: SegmentPaths, rows: Sequence[SegmentRow]) -> list[SegmentRow]:
    """Active segments of a storage topic that never took a frame, though another one is active.

    A crash during a roll leaves two active ones. An empty one behind the first never existed, and
    neither did one without a file, which does not count as the first.
    """
    active = [row for row in rows if row.state == "active"]
    files = {row.segment_id: paths.segment(row_id(row)) for row in active}
    promised = {row.segment_id for row in active if row.watermark_bytes > HEADER_BYTES}
    there = [row for row in active if row.segment_id in promised or files[row.segment_id].exists()]
    never = [row for row in active if row not in there]
    for row in reversed(there[1:]):
        if row.segment_id in promised or size_of(files[row.segment_id]) > HEADER_BYTES:
            break
        never.append(row)
    return never


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where it is missing."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def losses_in(segment: SegmentId, content: SegmentContent, watermark: int) -> list[LostBytes]:
    """The damaged bytes of a segment, and the bytes missing below its watermark."""
    lost = content.damaged(watermark)
    if content.size < watermark:
        lost.append(BadBytes(content.size, watermark, None))
    return [
        LostBytes(LogPosition(segment.segment_id, bad.start), bad.end - bad.start, bad.header)
        for bad in lost
    ]


def copy_tail(
    paths: SegmentPaths, old: SegmentId, new: SegmentId, content: SegmentContent, created_us: int
) -> Runs:
    """Copy the whole frames above the watermark to a new file, durably; returns its runs."""
    source = os.open(paths.segment(old), os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = _pieces(source, content.spans, encode_header(new, created_us))
        write_durably(paths.segment(new), pieces)
    finally:
        os.close(source)
    position_of = content.position_in_copy
    return {partition: runs.moved(position_of) for partition, runs in content.above.items()}


def _pieces(source: int, spans: list[tuple[int, int]], header: bytes) -> Iterator[bytes]:
    yield header
    for start, end in spans:
        for _, piece in _pieces_of(source, start, end):
            yield piece


def _pieces_of(source: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    while start < end:
        piece = os.pread(source, min(TAIL_COPY_BYTES, end - start), start)
        if not piece:
            raise OSError(errno.EIO, "the file became shorter while it was read")
        yield start, piece
        start += len(piece)


def make_tail_durable(paths: SegmentPaths, segment: SegmentId, content: SegmentContent) -> None:
    """Make the whole frames above the watermark durable where they lie.

    They are rewritten, because the page cache may count as clean what the disk does not have.

    Raises:
        OSError: the disk refused.
    """
    if not content.spans:
        return
    fd = os.open(paths.segment(segment), os.O_RDWR | os.O_CLOEXEC)
    try:
        for start, end in content.spans:
            for at, piece in _pieces_of(fd, start, end):
                write_all(fd, [piece], at)
        os.fdatasync(fd)
    finally:
        os.close(fd)


def joined(content: SegmentContent) -> Runs:
    """All runs of a file, below and above the watermark."""
    runs = dict(content.kept)
    for partition, above in content.above.items():
        runs[partition] = runs[partition].joined(above) if partition in runs else above
    return runs


def write_index(
    paths: SegmentPaths, segment: SegmentId, size: int, runs: Runs, frames: int
) -> None:
    """Write the index of a segment, durably."""
    write_durably(paths.index(segment), [index_file.encode(segment, size, runs, frames)])


def load_summary(paths: SegmentPaths, segment: SegmentId) -> index_file.Summary:
    """The summary of a segment's index.

    Raises:
        BadIndex: missing, damaged or unreadable.
    """
    try:
        with paths.index(segment).open("rb") as file:
            head = file.read(index_file.HEAD_BYTES)
            size = index_file.summary_bytes(head)
            if size > os.fstat(file.fileno()).st_size:
                # Nothing has checked the head yet: a flipped bit may ask for any length.
                raise index_file.BadIndex("cut short")
            rest = file.read(size - len(head))
    except OSError as error:
        raise _bad_index(error) from None
    return index_file.decode_summary(head + rest, segment)


def load_runs(paths: SegmentPaths, segment: SegmentId, summary: index_file.Summary) -> Runs:
    """All runs of a segment's index.

    Raises:
        BadIndex: missing, damaged or unreadable.
    """
    try:
        content = paths.index(segment).read_bytes()
    except OSError as error:
        raise _bad_index(error) from None
    return index_file.decode_runs(content, summary)


def _bad_index(error: OSError) -> index_file.BadIndex:
    """The error of an index that is missing or unreadable, and will be rebuilt.

    Raises:
        OSError: any other error.
    """
    if isinstance(error, FileNotFoundError):
        return index_file.BadIndex("missing")
    if error.errno == errno.EIO:
        return index_file.BadIndex("unreadable")
    raise error
