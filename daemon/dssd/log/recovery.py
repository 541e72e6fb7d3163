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
    bad bytes below W, or whole frames after     damage: sealed as it is, the gap in the offsets
                                                 shows as damaged; never cut, never deleted
    file ends below W                            damage: sealed as it is, reported

Frames above W are copied because the page cache may show what the disk does not have. An old file
that holds nothing below W is moved to quarantine if its tail was torn, else removed: every byte of
it is in its successor.

Invariant: no whole frame is lost, none below W is ever moved, nothing bad is ever read as good.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from dss_core.frame import Header
from dssd.log import index_file
from dssd.log.index import OpenRun, Run, StreamRuns
from dssd.log.producers import Answer, Producers
from dssd.log.scan import Bad, Found, scan_file
from dssd.log.segment_file import (
    HEADER_BYTES,
    BadSegmentHeader,
    SegmentId,
    SegmentPaths,
    check_header,
    encode_header,
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
    """Bad bytes where good ones were promised, or between good ones: it is sealed as it is."""


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
    bad: list[Bad] = field(default_factory=list)
    frames_kept: int = 0
    frames_above: int = 0
    header_reason: str = ""
    """What is wrong with the file's header."""

    @property
    def torn_bytes(self) -> int:
        """Bytes after the last whole frame."""
        return max(0, self.size - self.good_end)


@dataclass(slots=True)
class TopicScan:
    """What recovery knows of a storage topic while it goes through its segments."""

    storage_topic_id: int
    ends: list[int]
    producers: Producers
    last_us: int = 0


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
        _Scanned(content, topic, watermark, run_bytes_max).read(fd)
    finally:
        os.close(fd)
    return content


class _Scanned:
    """A scan of one file in progress."""

    def __init__(
        self, content: Content, topic: TopicScan, watermark: int, run_bytes_max: int
    ) -> None:
        self._content = content
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

    def _fits(self, header: Header) -> bool:
        """Whether a frame goes on where its stream stands; else it lies in a wrong place."""
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
        self._topic.last_us = max(self._topic.last_us, header.append_time_us)
        _remember(self._topic.producers, header)
        self._content.good_end = found.position + header.frame_bytes
        if below:
            self._content.kept_end = self._content.good_end
            self._content.frames_kept += 1
        else:
            self._content.frames_above += 1


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


def claim_lost(content: Content, watermark: int, topic: TopicScan, kept: Runs) -> None:
    """Keep the offsets of frames that are damaged from ever being given again.

    Where the header of a bad frame is whole, its records are known. Where not, nobody can say whose
    frames the bad bytes were: every stream in use that has no later frame to prove where it stands
    moves on by as many offsets as the bytes could at most have held.
    """
    lost = list(content.bad)
    if content.size < watermark:
        lost.append(Bad(content.size, watermark, None))
    for bad in lost:
        if bad.header is not None:
            _remember(topic.producers, bad.header)
        for partition, end in enumerate(topic.ends):
            claimed = _claimed_end(bad, partition, end, kept.get(partition))
            if claimed > end:
                topic.ends[partition] = claimed
                kept.setdefault(partition, StreamRuns()).claim(end, claimed)


def _claimed_end(bad: Bad, partition: int, end: int, runs: StreamRuns | None) -> int:
    """Where a stream's offsets go on if the bad bytes held frames of it."""
    header = bad.header
    if header is not None:
        return header.base_offset + header.records if header.partition == partition else end
    proven = runs is not None and len(runs) > 0 and runs[len(runs) - 1].position > bad.start
    return end if proven or end == 0 else end + (bad.end - bad.start)


def move_tail(
    paths: SegmentPaths, old: SegmentId, new: SegmentId, content: Content, created_us: int
) -> Runs:
    """Copy the good frames above the watermark to a new file, durably; returns its runs."""
    start = content.kept_end
    source = os.open(paths.segment(old), os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = _pieces(source, start, content.good_end, encode_header(new, created_us))
        write_durably(paths.segment(new), pieces)
    finally:
        os.close(source)
    less = start - HEADER_BYTES
    return {partition: runs.shifted(less) for partition, runs in content.above.items()}


def _pieces(source: int, start: int, end: int, header: bytes) -> Iterator[bytes]:
    yield header
    while start < end:
        piece = os.pread(source, min(_COPY_BYTES, end - start), start)
        if not piece:
            raise OSError("the file became shorter while it was copied")
        yield piece
        start += len(piece)


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
        BadIndex: missing or damaged.
    """
    try:
        with paths.index(segment).open("rb") as file:
            head = file.read(index_file.HEAD_BYTES)
            rest = file.read(index_file.summary_bytes(head) - len(head))
    except FileNotFoundError:
        raise index_file.BadIndex("missing") from None
    return index_file.decode_summary(head + rest, segment)


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
    finally:
        os.close(fd)


def _remember(producers: Producers, header: Header) -> None:
    answer = Answer(header.base_offset, header.records, header.append_time_us)
    producers.stored(header.partition, header.producer_id, header.sequence, answer)
