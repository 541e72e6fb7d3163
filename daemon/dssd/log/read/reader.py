"""Reads streams: from memory at the tail, else from segment files through their index.

Invariant: bytes are returned only if their checksums hold. Offsets are skipped as damaged only once
that is confirmed: their bytes were read anew, past the page cache, and are still wrong or missing.
A read that fails raises `LogUnreadable` if the frame that it begins at cannot be read, else it
returns those before; nothing is skipped. A read returns what it has before it blocks the event loop
for too long. If the filter rejects the subjects of a frame, only its head is read.
"""

import time
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain, takewhile
from pathlib import Path

import xxhash

from dss_core.errors import FrameCorrupt, LogUnreadable
from dss_core.filters import TopicFilter
from dss_core.frame import (
    Header,
    headers_of,
    read_header,
    rows_with_subjects,
    subject_table,
    subject_table_end,
    verify_stored,
)
from dss_core.ids import StreamId
from dss_core.progress import complement
from dssd.limits import READ_HEAD_BYTES
from dssd.log.port import Chunk
from dssd.log.read.chunk_builder import ChunkBuilder, Piece
from dssd.log.read.file_reader import FileReader
from dssd.log.read.joined_reads import joined_read_end
from dssd.log.read.run_finder import RunFinder
from dssd.log.read.run_walk import RunWalk
from dssd.log.read.subject_matching import SubjectMatching
from dssd.log.read.tail_cache import CachedFrames, TailCache
from dssd.log.segment.file import SegmentPaths
from dssd.log.segment.frame_scan import FoundFrame, scan_bytes
from dssd.log.segment.index_file import BadIndex
from dssd.log.segment.run_index import NOT_SUMMED, Run
from dssd.log.topic_state import Segment, StorageTopicState


class _Read:
    """One read in progress."""

    __slots__ = ("chunk", "deadline_ns", "matching", "offset", "stream", "topic")

    def __init__(
        self,
        topic: StorageTopicState,
        stream: StreamId,
        chunk: ChunkBuilder,
        matching: TopicFilter | None,
        budget_us: int,
    ) -> None:
        self.topic = topic
        self.stream = stream
        self.chunk = chunk
        self.offset = chunk.at
        self.matching = matching
        self.deadline_ns = time.monotonic_ns() + budget_us * 1_000

    @property
    def over(self) -> bool:
        """Whether to answer now. A read makes progress first, however slow the disk is."""
        if self.chunk.full:
            return True
        return self.chunk.at > self.offset and time.monotonic_ns() > self.deadline_ns

    def answer(self) -> Chunk:
        """The answer with all that was taken."""
        return self.chunk.chunk(self.topic.streams[self.stream.partition].end)

    def still_there(self, segment: Segment) -> bool:
        """Whether the segment is still in the log after the read waited."""
        return segment.id.segment_id in self.topic.segments


class Reader:
    """Reads of all streams; runs on the event loop."""

    def __init__(
        self,
        paths: SegmentPaths,
        files: FileReader,
        finder: RunFinder,
        tail: TailCache,
        *,
        loop_us: int,
    ) -> None:
        self._paths = paths
        self._files = files
        self._finder = finder
        self._tail = tail
        self._loop_us = loop_us
        self._verdicts = SubjectMatching()

    async def read(
        self,
        topic: StorageTopicState,
        partition: int,
        offset: int,
        bytes_max: int,
        matching: TopicFilter | None,
    ) -> Chunk:
        """The port's read, for a storage topic that exists."""
        reading = self._begun(topic, partition, offset, bytes_max, matching)
        while not self._take_what_memory_holds(reading):
            if not await self._take_what_can_be_read(reading) or reading.over:
                break
        return reading.answer()

    def read_in_memory(
        self,
        topic: StorageTopicState,
        partition: int,
        offset: int,
        bytes_max: int,
        matching: TopicFilter | None,
    ) -> Chunk | None:
        """The port's read_in_memory, for a storage topic that exists."""
        reading = self._begun(topic, partition, offset, bytes_max, matching)
        return reading.answer() if self._take_what_memory_holds(reading) else None

    def _begun(
        self,
        topic: StorageTopicState,
        partition: int,
        offset: int,
        bytes_max: int,
        matching: TopicFilter | None,
    ) -> _Read:
        stream = StreamId(topic.storage_topic_id, partition)
        return _Read(topic, stream, ChunkBuilder(offset, bytes_max), matching, self._loop_us)

    def _take_what_memory_holds(self, reading: _Read) -> bool:
        """Continue in the tail cache; False if the next offset is only in a file."""
        chunk, matching = reading.chunk, reading.matching
        stream = reading.topic.streams[reading.stream.partition]
        while True:
            if chunk.at < stream.start:
                chunk.lose(stream.start)
            if chunk.full or chunk.at >= stream.end:
                return True
            cached = self._tail.from_offset(reading.stream, chunk.at)
            if not cached:
                return False
            if matching is None:
                _take_cached(chunk, cached)
            else:
                self._judge_cached(reading, cached[0], matching)
            if reading.over:
                return True

    def _judge_cached(self, reading: _Read, cached: CachedFrames, matching: TopicFilter) -> None:
        for index in range(cached.frame_at(reading.chunk.at), len(cached.bases)):
            head, rest = cached.pieces[2 * index : 2 * index + 2]
            some = b"".join((head, rest[:READ_HEAD_BYTES]))
            header = read_header(head)
            whole = some if len(some) == header.frame_bytes else None
            table = _table(some, header)
            if table is None:
                whole = b"".join((head, rest))
                table = subject_table(whole, 0, header)
            wanted = self._verdicts.on(table, header.subjects, matching)
            if wanted is not None and not wanted:
                _reject(reading.chunk, header, whole)
            else:
                _judge(reading.chunk, header, whole or b"".join((head, rest)), wanted)
            if reading.over:
                return

    async def _take_what_can_be_read(self, reading: _Read) -> bool:
        """Continue in a segment; returns whether the read may go on after what it found.

        Raises:
            LogUnreadable: nothing was found, and it is unknown what is there.
        """
        try:
            await self._take_from_segment(reading)
        except LogUnreadable:
            if reading.chunk.at == reading.offset:
                raise
            return False
        return True

    async def _take_from_segment(self, reading: _Read) -> None:
        """Continue in the segment that holds the next offset."""
        chunk = reading.chunk
        partition = reading.stream.partition
        stream = reading.topic.streams[partition]
        segment = stream.segment_at(partition, chunk.at)
        extent = None if segment is None else segment.extent(partition)
        if segment is None or extent is None or chunk.at < extent.start:
            end = stream.end if extent is None else extent.start
            # A stream with a ceiling has its gaps between segments; they are no damage.
            pass_over = chunk.lose if partition in reading.topic.ceilings else chunk.damage
            pass_over(end)
            return
        try:
            runs = await self._finder.from_offset(segment, partition, chunk.at)
        except BadIndex:
            runs = []
        if not reading.still_there(segment):
            return
        if not runs:
            chunk.damage(extent.end)
            return
        await self._take_runs(reading, segment, runs)

    async def _take_runs(self, reading: _Read, segment: Segment, runs: list[Run]) -> None:
        chunk = reading.chunk
        path = self._paths.segment(segment.id)
        number = 0
        while number < len(runs):
            run = runs[number]
            if run.base > chunk.at:
                chunk.damage(run.base)
            if reading.over or self._tail.at(reading.stream, chunk.at) is not None:
                return
            taken = 1
            if reading.matching is not None:
                await self._judge_run(reading, segment, path, run)
            elif chunk.holds_frames and run.length > chunk.room_bytes:
                chunk.full = True
            else:
                below = self._tail.start(reading.stream)
                behind = joined_read_end(runs, number, room_bytes=chunk.room_bytes, below=below)
                taken = await self._take_neighbours(reading, segment, path, runs[number:behind])
            if reading.over or not reading.still_there(segment):
                return
            number += taken

    async def _take_neighbours(
        self, reading: _Read, segment: Segment, path: Path, runs: list[Run]
    ) -> int:
        """Read the runs at once, and take those before a damaged one; returns how many."""
        chunk = reading.chunk
        first = runs[0]
        if len(runs) > 1 and chunk.at == first.base:
            size = runs[-1].position + runs[-1].length - first.position
            try:
                data = await self._files.view(path, first.position, size)
            except LogUnreadable:
                data = memoryview(b"")
            if not reading.still_there(segment):
                return 0
            # Copied, so that the bytes between them are not kept in memory.
            starts = [run.position - first.position for run in runs]
            pieces = [
                bytes(data[at : at + run.length]) for at, run in zip(starts, runs, strict=True)
            ]
            whole = sum(1 for _ in takewhile(_is_whole, zip(runs, pieces, strict=True)))
            if whole:
                taken = pieces[:whole]
                chunk.take(taken, sum(map(len, taken)), first.base, runs[whole - 1].end)
                return whole
        await self._take_run(reading, segment, path, first)
        return 1

    async def _take_run(self, reading: _Read, segment: Segment, path: Path, run: Run) -> None:
        """Take all frames of a run from the next offset on."""
        chunk = reading.chunk
        try:
            data = await self._files.view(path, run.position, run.length)
        except LogUnreadable:
            await self._judge_run(reading, segment, path, run)
            return
        if not reading.still_there(segment):
            return
        if not _is_whole((run, data)) and run.checksum != NOT_SUMMED:
            data = memoryview(await self._files.read_anew(path, run.position, run.length))
            if not reading.still_there(segment):
                return
        if not _is_whole((run, data)):
            self._take_damaged_run(reading, run, bytes(data))
        elif chunk.at == run.base and run.length <= chunk.room_bytes:
            chunk.take((data,), run.length, run.base, run.end)
        else:
            _take_part(chunk, data)

    def _take_damaged_run(self, reading: _Read, run: Run, data: bytes) -> None:
        """Take the whole frames of a damaged run; skip the rest."""
        chunk = reading.chunk
        for item in scan_bytes(data, reading.stream.storage_topic_id):
            if not isinstance(item, FoundFrame):
                continue
            header = item.header
            end = header.base_offset + header.records
            if header.partition != reading.stream.partition or end > run.end:
                continue
            if end <= chunk.at:
                continue
            if header.base_offset > chunk.at:
                chunk.damage(header.base_offset)
            if not chunk.full:
                self._take_or_judge(reading, item)
            if chunk.full:
                return
        if chunk.at < run.end:
            chunk.damage(run.end)

    def _take_or_judge(self, reading: _Read, found: FoundFrame) -> None:
        header = found.header
        wanted = None
        if reading.matching is not None:
            table = subject_table(found.frame, 0, header)
            wanted = self._verdicts.on(table, header.subjects, reading.matching)
        _judge(reading.chunk, header, found.frame, wanted)

    async def _judge_run(self, reading: _Read, segment: Segment, path: Path, run: Run) -> None:
        """Take the frames of a run that are wanted, one by one; read only the heads of others."""
        chunk, matching = reading.chunk, reading.matching
        walk = RunWalk(self._files, path, run)
        try:
            while not reading.over and await walk.next():
                header = walk.header
                if header.base_offset + header.records <= chunk.at:
                    continue
                wanted = None
                if matching is not None:
                    wanted = self._verdicts.on(await walk.table(), header.subjects, matching)
                if wanted is not None and not wanted:
                    _reject(chunk, header, walk.frame_if_held())
                    continue
                frame = await walk.frame()
                verify_stored(frame)
                if reading.still_there(segment):
                    _judge(chunk, header, frame, wanted)
        except FrameCorrupt:
            data = await self._files.read_anew(path, run.position, run.length)
            if reading.still_there(segment):
                self._take_damaged_run(reading, run, data)

    async def locate(self, topic: StorageTopicState, partition: int, time_us: int) -> int:
        """The port's locate."""
        stream = topic.streams[partition]
        for segment in stream.segments:
            extent = segment.extent(partition)
            assert extent is not None
            if extent.last_us < time_us:
                continue
            if extent.first_us >= time_us:
                return max(stream.start, extent.start)
            try:
                run = await self._finder.before_time(segment, partition, time_us)
            except BadIndex:
                return max(stream.start, extent.start)
            for header in await self._headers(segment, run):
                if header.append_time_us >= time_us:
                    return max(stream.start, header.base_offset)
            return max(stream.start, run.end)
        return stream.end

    async def time_at(self, topic: StorageTopicState, partition: int, offset: int) -> int | None:
        """The port's time_at."""
        stream = topic.streams[partition]
        if not stream.start <= offset < stream.end:
            return None
        cached = self._tail.at(StreamId(topic.storage_topic_id, partition), offset)
        if cached is not None:
            return cached.time_us
        segment = stream.segment_at(partition, offset)
        if segment is None:
            return None
        try:
            runs = await self._finder.from_offset(segment, partition, offset)
        except BadIndex:
            return None
        for run in runs[:1]:
            for header in await self._headers(segment, run):
                if header.base_offset <= offset < header.base_offset + header.records:
                    return header.append_time_us
        return None

    async def _headers(self, segment: Segment, run: Run) -> list[Header]:
        """The headers of a run's frames, those that are whole."""
        path = self._paths.segment(segment.id)
        walk = RunWalk(self._files, path, run)
        headers: list[Header] = []
        try:
            while await walk.next():
                headers.append(walk.header)
        except FrameCorrupt:
            data = await self._files.read(path, run.position, run.length)
            items = scan_bytes(data, segment.id.storage_topic_id)
            return [item.header for item in items if isinstance(item, FoundFrame)]
        return headers


def _take_cached(chunk: ChunkBuilder, cached: Sequence[CachedFrames]) -> None:
    """Take cached frames from the next offset on, as many as fit."""
    sizes = list(accumulate([each.bytes for each in cached]))
    whole = bisect_right(sizes, chunk.room_bytes) if chunk.at == cached[0].base else 0
    if whole:
        pieces = chain.from_iterable([each.pieces for each in cached[:whole]])
        chunk.take(pieces, sizes[whole - 1], chunk.at, cached[whole - 1].end)
    if whole < len(cached):
        _take_frames(chunk, cached[whole])


def _take_frames(chunk: ChunkBuilder, cached: CachedFrames) -> None:
    """Take frames of an entry from the next offset on, one by one, as many as fit."""
    first = cached.frame_at(chunk.at)
    ends = (*cached.bases[first + 1 :], cached.end)
    for index, end in enumerate(ends, first):
        parts = cached.pieces[2 * index : 2 * index + 2]
        chunk.take(parts, sum(map(len, parts)), cached.bases[index], end)
        if chunk.full:
            return


def _is_whole(held: tuple[Run, Piece]) -> bool:
    run, data = held
    return len(data) == run.length and xxhash.xxh3_64_intdigest(data) == run.checksum


def _take_part(chunk: ChunkBuilder, data: memoryview) -> None:
    """Take those frames of a trusted run that are asked for and fit, as one piece."""
    start = stop = base = -1
    end = chunk.at
    for at, header in headers_of(data):
        if header.base_offset + header.records <= chunk.at:
            continue
        if start < 0:
            start, base = at, header.base_offset
        elif at + header.frame_bytes - start > chunk.room_bytes:
            chunk.full = True
            break
        stop, end = at + header.frame_bytes, header.base_offset + header.records
    chunk.take((data[start:stop],), stop - start, base, end)


def _reject(chunk: ChunkBuilder, header: Header, frame: bytes | None) -> None:
    pieces = () if frame is None else (frame,)
    chunk.reject(pieces, header.frame_bytes, header.base_offset + header.records)


def _judge(
    chunk: ChunkBuilder, header: Header, frame: bytes, wanted: frozenset[int] | None
) -> None:
    """Take a frame with its rejected records masked; skip it if all are rejected."""
    base = header.base_offset
    end = base + header.records
    if wanted is None:
        chunk.take((frame,), len(frame), base, end)
        return
    rows = rows_with_subjects(frame, 0, header, wanted)
    if not rows:
        _reject(chunk, header, frame)
        return
    rejected = tuple((base + low, base + high) for low, high in complement(rows, 0, header.records))
    chunk.take((frame,), len(frame), base, end, rejected)


def _table(some: bytes, header: Header) -> bytes | None:
    """The subject table, if the first bytes of the frame hold it all."""
    if subject_table_end(some, 0, header.subjects) is None:
        return None
    return subject_table(some, 0, header)
