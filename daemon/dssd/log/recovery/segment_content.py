"""What a segment file holds, by reading its frames or from its marks. Blocking.

Whole frames are taken span by span, and adjacent frames of one stream in a span together, because a
start reads tens of thousands.

Invariant: the offsets of a frame never lie below the end of its stream, even if retention removed
records meanwhile; a frame that breaks this counts as bad bytes. A bad frame below the watermark
counts as sent by its producer. Above it, a header counts only if the file has its frame in full
length: one that is cut off was never acknowledged. This module must not decide about a file:
`judge_segment` does.
"""

import os
from bisect import bisect_right
from dataclasses import dataclass, field

from dss_core.frame import Header
from dssd.log.recent_sequences import FirstAnswer
from dssd.log.recovery.claimed_offsets import LogPosition, LostBytes
from dssd.log.resume.marks import LoadedMarks, Marks
from dssd.log.segment.file import (
    HEADER_BYTES,
    BadSegmentHeader,
    SegmentId,
    SegmentPaths,
    check_header,
)
from dssd.log.segment.frame_scan import BadBytes, FrameSpan, scan_file
from dssd.log.segment.run_index import OpenRun, Run, Runs, StreamRuns
from dssd.log.sequences import Producers


@dataclass(slots=True)
class SegmentContent:
    """What a scan found in a segment file."""

    size: int
    """Bytes of the file."""
    kept: Runs = field(default_factory=dict)
    """Frames below the watermark."""
    above: Runs = field(default_factory=dict)
    """Frames above it."""
    kept_end: int = HEADER_BYTES
    """Where the last frame that begins below the watermark ends."""
    good_end: int = HEADER_BYTES
    """Where the last whole frame ends."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Start and end of each span of whole frames above the watermark."""
    bad: list[BadBytes] = field(default_factory=list)
    frames_kept: int = 0
    frames_above: int = 0
    header_reason: str = ""
    """What is wrong with the file's header."""
    marks: Marks = field(default_factory=Marks)
    """The marks that replaced reading the frames below them."""

    @property
    def torn_bytes(self) -> int:
        """Bytes after the last whole frame."""
        return max(0, self.size - self.good_end)

    def damaged(self, watermark: int) -> list[BadBytes]:
        """Bad bytes that may have held what was acknowledged; the others are a torn tail."""
        promised = max(watermark, self.good_end)
        return [bad for bad in self.bad if bad.start < promised or bad.header is not None]

    @property
    def above_bytes(self) -> int:
        """Bytes of the whole frames above the watermark."""
        return sum(end - start for start, end in self.spans)

    def position_in_copy(self, position: int) -> int:
        """Where a byte of a whole frame above the watermark lies in the copy."""
        number = bisect_right(self.spans, position, key=lambda span: span[0]) - 1
        before = sum(end - start for start, end in self.spans[:number])
        return HEADER_BYTES + before + position - self.spans[number][0]


@dataclass(slots=True)
class TopicScan:
    """What recovery knows of a storage topic while it scans its segments."""

    storage_topic_id: int
    ends: list[int]
    """By partition: where the last frame so far ends."""
    producers: Producers
    last_us: int = 0
    last_frames: dict[int, LogPosition] = field(default_factory=dict)
    """By partition, for streams with a frame: where the last frame lies."""
    losses: list[LostBytes] = field(default_factory=list)
    """Bad bytes that may have held frames."""


def scan_segment(
    paths: SegmentPaths,
    segment: SegmentId,
    watermark: int,
    topic: TopicScan,
    run_bytes_max: int,
    *,
    stop_at: int | None = None,
    known: LoadedMarks | None = None,
) -> SegmentContent | None:
    """Read a segment file up to ``stop_at``, and enter its frames in ``topic``. None: no file.

    The part that marks describe (``known``) is not read, unless the file is shorter than its
    watermark or its header is damaged.
    """
    try:
        fd = os.open(paths.segment(segment), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        size = os.fstat(fd).st_size
        content = SegmentContent(size if stop_at is None else min(size, stop_at))
        try:
            check_header(os.pread(fd, HEADER_BYTES, 0), segment)
        except BadSegmentHeader as error:
            content.header_reason = str(error)
        scanned = _Scanned(content, segment, topic, watermark, run_bytes_max)
        if known is not None and content.size >= watermark and not content.header_reason:
            scanned.skip(known)
        scanned.read(fd)
    finally:
        os.close(fd)
    return content


class _Scanned:
    """A scan of one file in progress."""

    def __init__(
        self,
        content: SegmentContent,
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

    def skip(self, known: LoadedMarks) -> None:
        """Take the frames below the marks as known, if they continue the topic's streams."""
        content, topic = self._content, self._topic
        for partition, runs in known.runs.items():
            if partition >= len(topic.ends) or runs[0].base < topic.ends[partition]:
                return
        for partition, runs in known.runs.items():
            assert runs.extent is not None
            self._learn(partition, runs.extent.end, runs[-1].position, runs.extent.last_us)
        for changes in known.changes:
            topic.producers.apply(changes)
        content.marks, content.kept = known.marks, known.runs
        content.frames_kept = known.marks.frames
        content.kept_end = content.good_end = known.marks.end

    def _learn(self, partition: int, end: int, position: int, last_us: int) -> None:
        topic = self._topic
        topic.ends[partition] = end
        topic.last_frames[partition] = LogPosition(self._segment.segment_id, position)
        topic.last_us = max(topic.last_us, last_us)

    def read(self, fd: int) -> None:
        """Read the frames after the marks."""
        content = self._content
        start = content.marks.end
        for item in scan_file(fd, self._topic.storage_topic_id, start, content.size):
            if isinstance(item, FrameSpan):
                self._take(item)
                continue
            if item.start >= self._watermark and not self._names_offsets(item):
                item = BadBytes(item.start, item.end, None)
            content.bad.append(item)
            if item.header is not None and item.start < self._watermark:
                _count_as_sent(self._topic.producers, item.header)

    def _names_offsets(self, bad: BadBytes) -> bool:
        """Whether it is a frame in its full length, of offsets that its stream goes on with."""
        header, ends = bad.header, self._topic.ends
        return (
            header is not None
            and bad.end - bad.start == header.frame_bytes
            and header.partition < len(ends)
            and header.base_offset >= ends[header.partition]
        )

    def _take(self, span: FrameSpan) -> None:
        number = 0
        while number < len(span.frames):
            at, end, partition, _, _, _, base, _ = span.frames[number]
            ends = self._topic.ends
            if partition < len(ends) and base >= ends[partition]:
                number = self._take_neighbours(span, number)
                continue
            self._content.bad.append(BadBytes(span.place(at), span.place(end), None))
            number += 1

    def _take_neighbours(self, span: FrameSpan, first: int) -> int:
        """Take adjacent frames of one stream into one run; returns the number after the last."""
        frames = span.frames
        start, _, partition, _, _, _, base, first_us = frames[first]
        position = span.place(start)
        below = position < self._watermark
        open_run = self._open_runs.setdefault((below, partition), OpenRun())
        run_bytes_left = self._run_bytes_max
        if open_run.run is not None and open_run.joins(base, position, run_bytes_left):
            run_bytes_left -= open_run.run.length
        if below:
            run_bytes_left = min(run_bytes_left, self._watermark - position)
        last, offset, last_us = start, base, first_us
        remember = self._topic.producers.stored
        for number in range(first, len(frames)):
            at, end, own, producer, sequence, records, own_base, time_us = frames[number]
            if own != partition or own_base != offset or at - start >= run_bytes_left:
                break
            remember(partition, producer, sequence, FirstAnswer(own_base, records, time_us))
            last, offset, last_us = at, own_base + records, time_us
        else:
            number, at = len(frames), end
        run = Run(base, offset, position, at - start, first_us, 0)
        with memoryview(span.buffer) as view:
            grown = open_run.add(run, (view[start:at],), self._run_bytes_max)
        runs = self._content.kept if below else self._content.above
        runs.setdefault(partition, StreamRuns()).put(grown, last_us)
        self._learn(partition, offset, span.place(last), last_us)
        self._count(position, span.place(at), number - first, below=below)
        return number

    def _count(self, start: int, end: int, frames: int, *, below: bool) -> None:
        content = self._content
        content.good_end = end
        if below:
            content.kept_end = end
            content.frames_kept += frames
            return
        content.frames_above += frames
        if content.spans and content.spans[-1][1] == start:
            start, _ = content.spans.pop()
        content.spans.append((start, end))


def replay_producers(
    paths: SegmentPaths, segment: SegmentId, start: int, end: int, producers: Producers
) -> None:
    """Enter the frames of a part of a segment in the producers' state."""
    try:
        fd = os.open(paths.segment(segment), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        for item in scan_file(fd, segment.storage_topic_id, start, min(end, os.fstat(fd).st_size)):
            if isinstance(item, FrameSpan):
                for _, _, partition, producer, sequence, records, base, time_us in item.frames:
                    answer = FirstAnswer(base, records, time_us)
                    producers.stored(partition, producer, sequence, answer)
            elif item.header is not None:
                _count_as_sent(producers, item.header)
    finally:
        os.close(fd)


def _count_as_sent(producers: Producers, header: Header) -> None:
    producers.lost(header.partition, header.producer_id, header.sequence, header.append_time_us)
