"""What the event loop knows of each storage topic: its streams, and the segments they lie in.

Invariant: this state holds only frames that are stored as durably as their producers asked for, so
readers may show all of it. Only the event loop touches it; the writer thread reports to it.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from dssd.log.ceilings import Ceilings
from dssd.log.resume.marks import Marks
from dssd.log.segment.file import HEADER_BYTES, SegmentId
from dssd.log.segment.index_file import Summary
from dssd.log.segment.run_index import Extent, StreamRuns
from dssd.log.writer_messages import AppendCall
from dssd.store.rows import SegmentRow


@dataclass(slots=True, eq=False)
class Segment:
    """One segment. Its index lies in `runs` or, once sealed, on disk where `summary` says."""

    id: SegmentId
    created_at_ms: int
    runs: dict[int, StreamRuns] | None = None
    summary: Summary | None = None
    size: int = HEADER_BYTES
    """Where the last frame in the file ends."""
    watermark: int = HEADER_BYTES
    """The watermark in its row."""
    synced: int = HEADER_BYTES
    """Up to here the file is durable."""
    frames: int = 0
    """How many frames it holds."""
    marks: Marks = field(default_factory=Marks)
    """How far its file of marks goes, while it is active."""
    marking: bool = False
    """Whether a job to store its watermark is pending."""
    removed: bool = False
    index_version: int = 0
    """How often its index was rebuilt."""
    rebuilding: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while its index is rebuilt."""

    def extent(self, partition: int) -> Extent | None:
        """The records of a stream that it holds, or None."""
        if self.runs is not None:
            runs = self.runs.get(partition)
            return None if runs is None else runs.extent
        assert self.summary is not None
        entry = self.summary.streams.get(partition)
        return None if entry is None else entry.extent

    def partitions(self) -> list[int]:
        """The streams of which it holds records."""
        if self.runs is not None:
            return list(self.runs)
        assert self.summary is not None
        return list(self.summary.streams)

    def last_us(self) -> int:
        """When its last frame was appended; 0 where it has none."""
        extents = (self.extent(partition) for partition in self.partitions())
        return max((extent.last_us for extent in extents if extent is not None), default=0)

    def row(self, state: str, watermark: int) -> SegmentRow:
        """Its row in the store."""
        return SegmentRow(
            storage_topic_id=self.id.storage_topic_id,
            segment_id=self.id.segment_id,
            state=state,
            watermark_bytes=watermark,
            created_at_ms=self.created_at_ms,
        )


@dataclass(slots=True, eq=False)
class Stream:
    """One stream: its bounds, its segments, its watchers."""

    start: int = 0
    end: int = 0
    segments: list[Segment] = field(default_factory=list)
    """The segments that hold records of it, in order."""
    watchers: list[Callable[[], None]] = field(default_factory=list)

    def watch(self, grown: Callable[[], None]) -> Callable[[], None]:
        """Call ``grown`` after each growth; returns how to stop that."""
        self.watchers.append(grown)

        def stop() -> None:
            if grown in self.watchers:
                self.watchers.remove(grown)

        return stop

    def segment_at(self, partition: int, offset: int) -> Segment | None:
        """The segment that holds the offset or, where none does, the next one above it."""
        number = max(0, bisect_right(self.segments, offset, key=_start_in(partition)) - 1)
        while number < len(self.segments):
            extent = self.segments[number].extent(partition)
            if extent is not None and extent.end > offset:
                return self.segments[number]
            number += 1
        return None

    def grow(self, segment: Segment, end: int) -> None:
        """Note that frames up to ``end`` were stored in a segment."""
        if not self.segments or self.segments[-1] is not segment:
            self.segments.append(segment)
        self.end = end


def _start_in(partition: int) -> Callable[[Segment], int]:
    def start(segment: Segment) -> int:
        extent = segment.extent(partition)
        assert extent is not None
        return extent.start

    return start


@dataclass(slots=True, eq=False)
class StorageTopicState:
    """One storage topic."""

    storage_topic_id: int
    streams: list[Stream]
    segments: dict[int, Segment] = field(default_factory=dict)
    """By segment id, in order; the last one takes new frames."""
    claimed_bytes: int = 0
    """Bytes handed to the writer for the last segment, at most what it will grow by."""
    writable: bool = False
    """Whether the writer has a file for it."""
    removed: bool = False
    sealed: bool = False
    """Whether it is sealed: it takes no more frames, and its last file has no successor."""
    waiting: deque[AppendCall] = field(default_factory=deque)
    """Calls that wait for a file with room; later ones follow them."""
    held: bool = False
    """Whether all append calls wait because frames are being adopted."""
    adopting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while adopted frames get their offsets."""
    trimming: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while its low watermarks rise and files are removed."""
    ceilings: Ceilings = field(default_factory=lambda: Ceilings({}))
    """The ceilings of streams that take frames of durability ``os``."""

    @property
    def last(self) -> Segment | None:
        """The newest segment."""
        return next(reversed(self.segments.values()), None)

    def adopt(self, segment: Segment) -> None:
        """Add a segment of adopted frames before the newest one, which holds none yet."""
        last = self.last
        assert last is not None
        assert last.id.segment_id > segment.id.segment_id
        assert not last.partitions()
        del self.segments[last.id.segment_id]
        for one in (segment, last):
            self.segments[one.id.segment_id] = one
        for partition in segment.partitions():
            extent = segment.extent(partition)
            assert extent is not None
            self.streams[partition].grow(segment, extent.end)

    def forget(self, segment: Segment) -> None:
        """Remove a segment from the topic and its streams."""
        del self.segments[segment.id.segment_id]
        for stream in self.streams:
            if segment in stream.segments:
                stream.segments.remove(segment)

    def count(self, partition: int, start: int, end: int) -> int:
        """How many offsets in ``[start, end)`` of a stream lie in no gap."""
        stream = self.streams[partition]
        start, end = max(start, stream.start), min(end, stream.end)
        if partition not in self.ceilings:
            return max(0, end - start)
        extents = (segment.extent(partition) for segment in stream.segments)
        return sum(
            max(0, min(end, extent.end) - max(start, extent.start))
            for extent in extents
            if extent is not None
        )

    def bytes_of(self, partition: int) -> int:
        """Bytes of a stream in the segments that are kept."""
        extents = (segment.extent(partition) for segment in self.streams[partition].segments)
        return sum(extent.bytes for extent in extents if extent is not None)
