"""One `Read` call: a range of some streams, or their tail, with fair turns between the streams.

Each stream has a `_Cursor`. Cursors with something to read stand in a queue and get one chunk a
turn; the others wait until the log says that their stream grew. Nothing polls. The streams of a
storage topic wait until all older storage topics of their topic are read to the end. A stream whose
read fails is set aside and tried again while others go on; once only such streams and those that
wait for them are left, the call ends with the error.

Invariant: a record outside the range, or rejected by the filter, is always masked, and no frame
behind the range is sent. Every other record is sent once, in order within its stream, or reported
as damaged; no record before one of an older storage topic.
"""

import asyncio
import logging
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from dss_api.v1 import log_pb2, types_pb2
from dss_core.errors import (
    IllegalArgument,
    LogUnreadable,
    OffsetOutOfRange,
    Stopping,
    StreamNotFound,
)
from dss_core.filters import TopicFilter
from dss_core.frame import spans_of
from dss_core.ids import StreamId, StreamName
from dss_core.progress import Ranges, clipped, complement, normalised, total
from dssd.clock import Clock
from dssd.limits import READ_AGAIN_MS, READ_AGAIN_MS_MAX, READ_CHUNK_BYTES_MAX
from dssd.log.port import Chunk, Log
from dssd.loop_yield import LoopTurn
from dssd.machines.start_point import AtOffset, AtTime, Earliest, Now, StartPoint
from dssd.topics.catalogue import Catalogue, Topic
from dssd.topics.internal import refuse_internal

READ_NAMES_PER_REPLY_MAX = 3_000
"""Names of streams in one answer of a read: with the longest ones, 800 KiB."""


READ_STREAMS_MAX = 65_536
"""Streams that one read may span."""


_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a call asks for."""

    matching: TopicFilter | None
    """None only where one stream is asked for."""
    start: StartPoint
    end_time_us: int | None
    follow: bool
    stream: StreamName | None
    records_max: int | None
    end_offset: int | None = None
    """Only where one stream is read, and its tail is not followed."""
    queue: StreamId | None = None
    """A queue of that stream, to be read instead of it, under its name."""


class Generation(NamedTuple):
    """A storage topic; of one topic, the older one is less."""

    topic_id: int
    ordinal: int


@dataclass(slots=True)
class _Cursor:
    """How far a stream was read for this call."""

    stream: StreamId
    name: str
    generation: Generation
    offset: int
    end: int | None
    """Where to stop; None while it follows the tail."""
    waiting: bool = field(default=False)
    again_ms: int = field(default=0)
    """When it is read again, after a read that failed."""
    pause_ms: int = field(default=READ_AGAIN_MS)

    def is_done(self) -> bool:
        return self.end is not None and self.offset >= self.end


class ReadCall:
    """Iterate over `replies`; `stop` ends it with `Stopping`."""

    def __init__(self, reading: Reading, catalogue: Catalogue, log: Log, clock: Clock) -> None:
        self._reading = reading
        self._catalogue = catalogue
        self._log = log
        self._clock = clock
        self._cursors: dict[StreamId, _Cursor] = {}
        self._opened: set[StreamId] = set()
        """Also streams whose cursors have finished."""
        self._generations: defaultdict[int, Counter[int]] = defaultdict(Counter)
        """How many cursors there are of each storage topic, by topic and ordinal."""
        self._behind: dict[int, list[_Cursor]] = {}
        """Cursors that wait for older storage topics, by topic."""
        self._ready: deque[_Cursor] = deque()
        self._aside: list[_Cursor] = []
        """Their last read failed."""
        self._failure: LogUnreadable | None = None
        """The last one."""
        self._born: list[Topic] = []
        self._woken = asyncio.Event()
        self._stopped = False
        self._left = reading.records_max

    def stop(self) -> None:
        """Send no more."""
        self._stopped = True
        self._woken.set()

    async def replies(self) -> AsyncGenerator[log_pb2.ReadReply, None]:
        """The streams, then their frames.

        Raises:
            StreamNotFound: the one stream that was asked for does not exist.
            LogUnreadable: all that is left cannot be read now.
            OffsetOutOfRange, IllegalArgument: the start does not fit.
            Stopping: the daemon stops.
        """
        with ExitStack() as watches:
            if self._reading.follow:
                watches.callback(self._catalogue.watch(self._topic_changed))
            opened = await self._open(self._streams(), self._reading.start, watches)
            for reply in self._named(opened):
                yield reply
            while self._left != 0 and await self._next_is_ready():
                if self._born:
                    born = await self._open(self._take_born(), Earliest(), watches)
                    for reply in self._named(born):
                        yield reply
                    continue
                some = await self._read_some(self._ready.popleft())
                if some is not None:
                    yield some

    # Which streams, and from where

    def _follows_new_topics(self) -> bool:
        return self._reading.follow and self._reading.stream is None

    def _topic_changed(self, topic: Topic, removed: bool) -> None:
        if self._is_wanted(topic, removed):
            self._born.append(topic)
            self._woken.set()

    def _is_wanted(self, topic: Topic, removed: bool) -> bool:
        stream, wanted = self._reading.stream, self._reading.matching
        if stream is not None:
            return topic.name == stream.topic
        assert wanted is not None
        return not removed and topic.meets(wanted)

    def _take_born(self) -> list[StreamId]:
        topics, self._born = self._born, []
        one = self._reading.stream
        if one is not None and self._catalogue.id_of(one) not in self._opened:
            raise StreamNotFound(stream=one)
        for part in [part for topic in topics for part in topic.storage_topics]:
            for stream, end in zip(part.streams(), part.ends or (), strict=False):
                self._end_at(stream, end)
        if one is not None:
            return []
        # A topic may have changed more than once.
        streams = dict.fromkeys(stream for topic in topics for stream in topic.streams())
        return [stream for stream in streams if stream not in self._opened]

    def _end_at(self, stream: StreamId, end: int) -> None:
        """A followed stream was sealed: stop at its end."""
        cursor = self._cursors.get(stream)
        if cursor is not None and cursor.end is None:
            cursor.end = end
            if cursor.waiting and cursor.is_done():
                self._leave(cursor)

    def _streams(self) -> list[StreamId]:
        if self._reading.queue is not None:
            return [self._reading.queue]
        if self._reading.stream is not None:
            return [self._catalogue.id_of(self._reading.stream)]
        assert self._reading.matching is not None
        refuse_internal(self._reading.matching.text)
        topics = self._catalogue.meeting(self._reading.matching)
        streams = [stream for topic in topics for stream in topic.streams()]
        if len(streams) > READ_STREAMS_MAX:
            rule = f"it meets {len(streams):,} streams; at most {READ_STREAMS_MAX:,} are read"
            raise IllegalArgument(argument="filter", rule=rule)
        return streams

    async def _open(
        self, streams: Sequence[StreamId], start: StartPoint, watches: ExitStack
    ) -> list[_Cursor]:
        if isinstance(start, AtOffset) and len(streams) != 1:
            rule = f"an offset is that of a single stream, and {len(streams)} are read"
            raise IllegalArgument(argument="start", rule=rule)
        opened = []
        turn = LoopTurn()
        for stream in streams:
            await turn.give_way()
            try:
                opened.append(await self._cursor(stream, start))
            except StreamNotFound:
                if self._reading.stream is not None:
                    raise
        watched: list[_Cursor] = []
        for cursor in opened:
            await turn.give_way()
            try:
                if cursor.end is None:
                    watches.callback(self._log.watch(cursor.stream, self._wakes(cursor)))
            except StreamNotFound:
                if self._reading.stream is not None:
                    raise
                continue
            watched.append(cursor)
        self._enter(watched)
        return opened

    def _enter(self, cursors: Sequence[_Cursor]) -> None:
        for cursor in cursors:
            self._cursors[cursor.stream] = cursor
            self._opened.add(cursor.stream)
            topic_id, ordinal = cursor.generation
            self._generations[topic_id][ordinal] += 1
        for cursor in cursors:
            self._queue(cursor)

    async def _cursor(self, stream: StreamId, start: StartPoint) -> _Cursor:
        name = self._catalogue.name_of(stream)
        if self._reading.queue is not None:
            assert self._reading.stream is not None
            name = self._reading.stream
        topic = self._catalogue.topic_of(stream)
        part = topic.part(name.ordinal)
        bounds = self._log.bounds(stream)
        offset = await self._first_offset(stream, str(name), start)
        takes_more = self._reading.follow and part is not None and part.ends is None
        end = None if takes_more else bounds.end
        end_time_us = self._reading.end_time_us
        if end_time_us is not None and self._clock.wall_us() >= end_time_us:
            end = min(bounds.end, await self._log.locate(stream, end_time_us))
        if self._reading.end_offset is not None:
            end = self._reading.end_offset if end is None else min(end, self._reading.end_offset)
        generation = Generation(topic.topic_id, name.ordinal)
        return _Cursor(stream, str(name), generation, offset, end)

    async def _first_offset(self, stream: StreamId, name: str, start: StartPoint) -> int:
        bounds = self._log.bounds(stream)
        match start:
            case Now():
                return bounds.end
            case Earliest():
                return bounds.start
            case AtTime(time_us):
                return await self._log.locate(stream, time_us)
            case AtOffset(offset):
                if bounds.start <= offset <= bounds.end:
                    return offset
                raise OffsetOutOfRange(
                    offset=offset, start=bounds.start, end=bounds.end, stream=name
                )

    def _named(self, opened: Sequence[_Cursor]) -> Iterator[log_pb2.ReadReply]:
        """The names and start offsets of the streams, in as many answers as they need, at least
        one."""
        incarnation = self._catalogue.incarnation
        for at in range(0, max(1, len(opened)), READ_NAMES_PER_REPLY_MAX):
            some = opened[at : at + READ_NAMES_PER_REPLY_MAX]
            names, starts = [each.name for each in some], [each.offset for each in some]
            yield log_pb2.ReadReply(streams=names, starts=starts, incarnation=incarnation)

    # Whose turn it is

    def _wakes(self, cursor: _Cursor) -> Callable[[], None]:
        def grown() -> None:
            if cursor.waiting:
                cursor.waiting = False
                self._ready.append(cursor)
                self._woken.set()

        return grown

    def _queue(self, cursor: _Cursor) -> None:
        if cursor.is_done():
            self._leave(cursor)
        elif self._stands_behind(cursor):
            self._behind.setdefault(cursor.generation.topic_id, []).append(cursor)
        elif cursor.end is None and self._is_at_the_tail(cursor):
            cursor.waiting = True
        else:
            self._ready.append(cursor)

    def _is_at_the_tail(self, cursor: _Cursor) -> bool:
        try:
            return cursor.offset >= self._log.bounds(cursor.stream).end
        except StreamNotFound:  # it was removed while it waited; its next read reports that
            return False

    def _stands_behind(self, cursor: _Cursor) -> bool:
        topic_id, ordinal = cursor.generation
        return min(self._generations[topic_id]) < ordinal

    def _leave(self, cursor: _Cursor) -> None:
        """A cursor has finished; cursors that waited only for it go on."""
        del self._cursors[cursor.stream]
        topic_id, ordinal = cursor.generation
        cursors = self._generations[topic_id]
        cursors[ordinal] -= 1
        if not cursors[ordinal]:
            del cursors[ordinal]
            for each in self._behind.pop(topic_id, ()):
                self._queue(each)

    async def _next_is_ready(self) -> bool:
        while True:
            if self._stopped:
                raise Stopping
            self._try_again()
            if self._ready or self._born:
                return True
            if self._failure is not None and self._only_aside_are_left():
                raise self._failure
            if not self._cursors and not self._follows_new_topics():
                return False
            if not await self._woken_in_time():
                return False

    async def _woken_in_time(self) -> bool:
        """Wait for growth; false once no later record can belong to the answer."""
        end_time_us = self._reading.end_time_us
        self._woken.clear()
        waits_s = [(each.again_ms - self._clock.now_ms()) / 1_000 for each in self._aside]
        if end_time_us is not None:
            waits_s.append((end_time_us - self._clock.wall_us()) / 1_000_000)
        try:
            async with asyncio.timeout(max(min(waits_s), 0) if waits_s else None):
                await self._woken.wait()
        except TimeoutError:
            # The wall clock may have been set back meanwhile: then it is not over.
            return not self._is_over() or bool(self._ready or self._aside)
        return True

    def _is_over(self) -> bool:
        """Whether no later record can belong to the answer."""
        end_time_us = self._reading.end_time_us
        return end_time_us is not None and self._clock.wall_us() >= end_time_us

    def _only_aside_are_left(self) -> bool:
        """Whether every unfinished stream is set aside."""
        behind = sum(map(len, self._behind.values()))
        left = len(self._cursors) - behind
        return bool(self._aside) and (self._is_over() or len(self._aside) == left)

    def _try_again(self) -> None:
        """Return streams to the queue whose pause is over."""
        now_ms = self._clock.now_ms()
        for cursor in [each for each in self._aside if each.again_ms <= now_ms]:
            self._aside.remove(cursor)
            self._ready.append(cursor)

    def _set_aside(self, cursor: _Cursor, failure: LogUnreadable) -> None:
        _LOG.warning(
            "stream %s at offset %d: %s",
            cursor.name,
            cursor.offset,
            failure,
            extra={"event": "read.failed"},
        )
        self._failure = failure
        cursor.again_ms = self._clock.now_ms() + cursor.pause_ms
        cursor.pause_ms = min(2 * cursor.pause_ms, READ_AGAIN_MS_MAX)
        self._aside.append(cursor)

    # What it gets

    async def _read_some(self, cursor: _Cursor) -> log_pb2.ReadReply | None:
        try:
            chunk = await self._log.read(
                cursor.stream,
                cursor.offset,
                bytes_max=READ_CHUNK_BYTES_MAX,
                matching=self._reading.matching,
            )
            await self._end_by_time(cursor)
        except LogUnreadable as failure:
            self._set_aside(cursor, failure)
            return None
        except StreamNotFound:  # its topic was removed
            self._leave(cursor)
            if self._reading.stream is not None:
                raise
            return None
        cursor.pause_ms = READ_AGAIN_MS
        ends = self._answer_end(cursor, chunk)
        damaged = _damaged(cursor, chunk, ends)
        lost = clipped(chunk.lost, cursor.offset, ends)
        mask = self._mask(cursor, chunk, ends)
        cursor.offset = max(chunk.next, cursor.offset)
        self._queue(cursor)
        if mask is None and not damaged and not lost:
            return None
        frames, hidden = (b"", ()) if mask is None else _frames_before(ends, chunk, mask)
        return log_pb2.ReadReply(
            stream=cursor.name,
            frames=frames,
            mask=_ranges(hidden),
            damaged=_ranges(damaged),
            lost=_ranges(lost),
        )

    async def _end_by_time(self, cursor: _Cursor) -> None:
        """Set the end offset after each chunk, so that no record appended after the end time is
        sent."""
        end_time_us = self._reading.end_time_us
        if cursor.end is not None or end_time_us is None:
            return
        if self._clock.wall_us() >= end_time_us:
            cursor.end = await self._log.locate(cursor.stream, end_time_us)

    def _answer_end(self, cursor: _Cursor, chunk: Chunk) -> int:
        """The offset at which the answer ends in this chunk: the end of the range, or the maximum
        of records."""
        ends = chunk.next if cursor.end is None else min(chunk.next, cursor.end)
        if self._left is None or not chunk.frames:
            return ends
        held_end = min(ends, chunk.base + chunk.records)
        kept = complement(chunk.mask, max(chunk.base, cursor.offset), held_end)
        enough = _offset_after(kept, self._left)
        return ends if enough is None else enough

    def _mask(self, cursor: _Cursor, chunk: Chunk, ends: int) -> Ranges | None:
        """The offsets of the chunk that are not part of the answer; None: the whole chunk."""
        if not chunk.frames:
            return None
        mask = normalised([*chunk.mask, (chunk.base, cursor.offset), (ends, chunk.next)])
        kept = complement(mask, chunk.base, chunk.base + chunk.records)
        if self._left is not None:
            self._left -= total(kept)
        return mask if kept else None


def _frames_before(ends: int, chunk: Chunk, mask: Ranges) -> tuple[bytes, Ranges]:
    """The frames of a chunk with anything of the answer, and what is masked in them."""
    if ends >= chunk.base + chunk.records:
        return chunk.frames, mask
    at, base = spans_of(chunk.frames)
    kept = bisect_left(base, ends, hi=len(base) - 1)
    return chunk.frames[: at[kept]], clipped(mask, chunk.base, base[kept])


def _damaged(cursor: _Cursor, chunk: Chunk, ends: int) -> Ranges:
    """The unreadable offsets of the answer."""
    damaged = clipped(chunk.damaged, cursor.offset, ends)
    for start, end in damaged:
        _LOG.warning(
            "stream %s: offsets %d to %d cannot be read",
            cursor.name,
            start,
            end,
            extra={"event": "read.damaged"},
        )
    return damaged


def _ranges(ranges: Ranges) -> list[types_pb2.Range]:
    return [types_pb2.Range(start=start, end=end) for start, end in ranges]


def _offset_after(kept: Ranges, records: int) -> int | None:
    """The offset behind that many kept records; None where there are fewer."""
    for start, end in kept:
        if end - start >= records:
            return start + records
        records -= end - start
    return None
