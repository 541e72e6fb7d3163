"""What a start makes of the files it finds. Blocking; runs on a thread, before anything else.

A sealed segment is trusted by its index. An active one, unless the log was closed cleanly, is read
whole, and what is found against its durable watermark W decides::

    found                                        outcome
    ───────────────────────────────────────────  ────────────────────────────────────────────────
    no file                                      never existed: its row goes
    empty file, nothing promised below W         never existed: quarantined, its row goes
    header only                                  taken up again, empty
    whole frames, ending at W                    taken up again
    whole frames above W                         copied to a new file; the old one ends at W
    bad bytes above W, no whole frame after      torn tail: as above; the bad bytes stay behind
    bad bytes below W, or whole frames after     damage: the old file ends at W, whole frames above
                                                 are copied, the gap in the offsets shows as
                                                 damaged; never cut, never deleted
    file missing, or ends below W                damage: sealed as it is, reported

Frames above W are copied because the page cache may show what the disk does not have. An old file
that holds nothing below W is moved to quarantine if there is something bad in it, else removed:
every byte of it is in its successor. Where a full disk has no room for a copy, the frames are
written once more where they lie.

A frame follows the one before of its stream, whatever retention has given up meanwhile. What a bad
frame's producer sent counts as sent if it lies below W, so a repeat is never answered as stored and
never stored twice; above W it may never have been acknowledged, so it may come again. Whose frames
were in bytes that nobody can read, and what the machine took with it, nobody knows: after any but
a clean stop each producer says where it goes on (`dssd.log.producers`).

Invariant: no whole frame is lost, none below W is ever moved, nothing bad is ever read as good.
"""

import errno
import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from dss_core.frame import Header
from dssd.log import index_file
from dssd.log.index import OpenRun, Run, StreamRuns
from dssd.log.losses import Loss, Place
from dssd.log.producers import Answer, Producers
from dssd.log.scan import Bad, Found, scan_file
from dssd.log.segment_file import (
    HEADER_BYTES,
    BadSegmentHeader,
    SegmentId,
    SegmentPaths,
    check_header,
    encode_header,
    write_all,
    write_durably,
)

_COPY_BYTES = 1 << 20
Runs = dict[int, StreamRuns]


class Outcome(Enum):
    """What an active segment turned out to be."""

    MISSING = "missing"
    """There is no file: it never existed."""
    NEVER_BEGUN = "never begun"
    """The file has no header and nothing was promised: it never existed."""
    WHOLE = "whole"
    """Everything is below the watermark: it is taken up again."""
    TAIL = "tail"
    """There is something above the watermark, torn or not: the good part moves on."""
    DAMAGED = "damaged"
    """Bad bytes where good ones were promised, or between good ones: it takes no more frames."""


@dataclass(slots=True)
class Content:
    """What a scan found in a segment file."""

    size: int
    """Of the file."""
    kept: Runs = field(default_factory=dict)
    """Frames below the watermark."""
    above: Runs = field(default_factory=dict)
    """Frames above it."""
    kept_end: int = HEADER_BYTES
    """Where the last frame that begins below the watermark ends."""
    good_end: int = HEADER_BYTES
    """Where the last whole frame ends."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Start and end of each stretch of whole frames above the watermark."""
    bad: list[Bad] = field(default_factory=list)
    frames_kept: int = 0
    frames_above: int = 0
    header_reason: str = ""
    """What is wrong with the file's header."""

    @property
    def torn_bytes(self) -> int:
        """Bytes after the last whole frame."""
        return max(0, self.size - self.good_end)

    @property
    def above_bytes(self) -> int:
        """Bytes of the whole frames above the watermark."""
        return sum(end - start for start, end in self.spans)

    def position_in_copy(self, position: int) -> int:
        """Where a byte of a whole frame above the watermark lies once they were copied."""
        number = bisect_right(self.spans, position, key=lambda span: span[0]) - 1
        before = sum(end - start for start, end in self.spans[:number])
        return HEADER_BYTES + before + position - self.spans[number][0]


@dataclass(slots=True)
class TopicScan:
    """What recovery knows of a storage topic while it goes through its segments."""

    storage_topic_id: int
    ends: list[int]
    """Of each stream: where its last frame so far ends."""
    producers: Producers
    last_us: int = 0
    last_frames: dict[int, Place] = field(default_factory=dict)
    """Of each stream that has one: where that frame lies."""
    losses: list[Loss] = field(default_factory=list)
    """Bad bytes that may have held frames."""


def scan_segment(
    paths: SegmentPaths,
    segment: SegmentId,
    watermark: int,
    topic: TopicScan,
    run_bytes_max: int,
    *,
    stop_at: int | None = None,
) -> Content | None:
    """Read a segment file, or its first bytes; the topic learns its frames. None: no file."""
    try:
        fd = os.open(paths.segment(segment), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        size = os.fstat(fd).st_size
        content = Content(size if stop_at is None else min(size, stop_at))
        try:
            check_header(os.pread(fd, HEADER_BYTES, 0), segment)
        except BadSegmentHeader as error:
            content.header_reason = str(error)
        _Scanned(content, segment, topic, watermark, run_bytes_max).read(fd)
    finally:
        os.close(fd)
    return content


class _Scanned:
    """A scan of one file in progress."""

    def __init__(
        self,
        content: Content,
        segment: SegmentId,
        topic: TopicScan,
        watermark: int,
        run_bytes_max: int,
    ) -> None:
        self._content = content
        self._segment = segment
        self._topic = topic
        self._watermark = watermark
        self._run_bytes_max = run_bytes_max
        self._open_runs: dict[tuple[bool, int], OpenRun] = {}

    def read(self, fd: int) -> None:
        content = self._content
        for item in scan_file(fd, self._topic.storage_topic_id, HEADER_BYTES, content.size):
            if isinstance(item, Found) and self._fits(item.header):
                self._take(item)
            elif isinstance(item, Found):
                end = item.position + item.header.frame_bytes
                content.bad.append(Bad(item.position, end, None))
            else:
                content.bad.append(item)
                if item.header is not None and item.start < self._watermark:
                    _count_as_sent(self._topic.producers, item.header)

    def _fits(self, header: Header) -> bool:
        """Whether a frame follows the one before of its stream; else it lies in a wrong place."""
        ends = self._topic.ends
        return header.partition < len(ends) and header.base_offset >= ends[header.partition]

    def _take(self, found: Found) -> None:
        header = found.header
        partition = header.partition
        end = header.base_offset + header.records
        below = found.position < self._watermark
        runs = self._content.kept if below else self._content.above
        run = Run(
            header.base_offset,
            end,
            found.position,
            header.frame_bytes,
            header.append_time_us,
            0,
        )
        open_run = self._open_runs.setdefault((below, partition), OpenRun())
        grown = open_run.add(run, (found.frame,), self._run_bytes_max)
        runs.setdefault(partition, StreamRuns()).put(grown, header.append_time_us)
        self._topic.ends[partition] = end
        self._topic.last_frames[partition] = Place(self._segment.segment_id, found.position)
        self._topic.last_us = max(self._topic.last_us, header.append_time_us)
        _remember(self._topic.producers, header)
        self._content.good_end = found.position + header.frame_bytes
        if below:
            self._content.kept_end = self._content.good_end
            self._content.frames_kept += 1
            return
        self._content.frames_above += 1
        spans = self._content.spans
        start = spans.pop()[0] if spans and spans[-1][1] == found.position else found.position
        spans.append((start, self._content.good_end))


def judge(content: Content | None, watermark: int) -> Outcome:
    """What an active segment is, by what was found in it and what was promised of it."""
    if content is None:
        return Outcome.MISSING
    if content.header_reason:
        nothing = not content.kept and not content.above and watermark <= HEADER_BYTES
        return Outcome.NEVER_BEGUN if nothing else Outcome.DAMAGED
    if content.size < watermark:
        return Outcome.DAMAGED
    if any(bad.start < max(watermark, content.good_end) for bad in content.bad):
        return Outcome.DAMAGED
    return Outcome.TAIL if content.size > watermark else Outcome.WHOLE


def losses_in(segment: SegmentId, content: Content, watermark: int) -> list[Loss]:
    """The bad bytes of a damaged segment, those that are missing below its watermark too."""
    lost = list(content.bad)
    if content.size < watermark:
        lost.append(Bad(content.size, watermark, None))
    return [
        Loss(Place(segment.segment_id, bad.start), bad.end - bad.start, bad.header) for bad in lost
    ]


def move_tail(
    paths: SegmentPaths, old: SegmentId, new: SegmentId, content: Content, created_us: int
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
        piece = os.pread(source, min(_COPY_BYTES, end - start), start)
        if not piece:
            raise OSError(errno.EIO, "the file became shorter while it was read")
        yield start, piece
        start += len(piece)


def settle_tail(paths: SegmentPaths, segment: SegmentId, content: Content) -> None:
    """Make the whole frames above the watermark durable where they lie.

    They are written once more, for the page cache may count as clean what the disk does not have.

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


def joined(content: Content) -> Runs:
    """All runs of a file, those above the watermark too."""
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
            rest = file.read(index_file.summary_bytes(head) - len(head))
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
    """An index that is not there or that the disk cannot give is made anew.

    Raises:
        OSError: any other error.
    """
    if isinstance(error, FileNotFoundError):
        return index_file.BadIndex("missing")
    if error.errno == errno.EIO:
        return index_file.BadIndex("unreadable")
    raise error


def replay_producers(
    paths: SegmentPaths, segment: SegmentId, start: int, end: int, producers: Producers
) -> None:
    """Let the producers' state learn the frames in a part of a segment."""
    try:
        fd = os.open(paths.segment(segment), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        for item in scan_file(fd, segment.storage_topic_id, start, min(end, os.fstat(fd).st_size)):
            if isinstance(item, Found):
                _remember(producers, item.header)
            elif item.header is not None:
                _count_as_sent(producers, item.header)
    finally:
        os.close(fd)


def _remember(producers: Producers, header: Header) -> None:
    answer = Answer(header.base_offset, header.records, header.append_time_us)
    producers.stored(header.partition, header.producer_id, header.sequence, answer)


def _count_as_sent(producers: Producers, header: Header) -> None:
    producers.lost(header.partition, header.producer_id, header.sequence, header.append_time_us)
