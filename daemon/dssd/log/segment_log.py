"""The embedded adapter of the log port: segment files, one writer thread, readers on the loop.

    append ─▶ Appender ─▶ WriterThread ─▶ Batch ─▶ Appender: index, tail, ends, answers, watchers
    read   ─▶ Reader   ─▶ TailCache, or RunFinder and FileReader
    rolls, seals, watermarks ─▶ Housekeeper, one at a time
    low watermarks, removals ─▶ Trimmer

Invariant: a frame that `append` answered is as durable as it asked for. `read` gives only frames
that were answered or could have been. A crash changes neither. This module knows offsets and ids;
it must not know names, patterns, epochs or routing.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Self

from dss_core.errors import OffsetOutOfRange, Stopping, StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.progress import Range
from dssd.clock import monotonic_us_now, wall_us_now
from dssd.log.adopt.adopter import Adopter
from dssd.log.appender import Appender
from dssd.log.file_list import LogFiles
from dssd.log.holds import Holds
from dssd.log.measures import LogMeasures
from dssd.log.port import (
    AboutToGo,
    Adopted,
    Answered,
    Append,
    Appended,
    AskFloors,
    Bounds,
    Chunk,
    Ends,
    Expiring,
    FileRuns,
    Frames,
    Publish,
    Rest,
)
from dssd.log.read.file_reader import FileReader
from dssd.log.read.reader import Reader
from dssd.log.read.run_finder import RunFinder
from dssd.log.read.run_places import RunPlaces
from dssd.log.read.tail_cache import TailCache
from dssd.log.recovery.index_rebuild import IndexRebuilder
from dssd.log.recovery.open_log import Recovered, recover
from dssd.log.recovery.reached_offsets import AskReached, ShortStream, nobody_read
from dssd.log.segment.file import SegmentPaths
from dssd.log.sequences import Producers
from dssd.log.settings import LogSettings, share_of_descriptors
from dssd.log.topic_state import StorageTopicState, Stream
from dssd.log.upkeep import clean_close
from dssd.log.upkeep.housekeeper import Housekeeper
from dssd.log.upkeep.removal_gate import RemovalGate
from dssd.log.upkeep.scrub import Pace, Scrubbed, scrubbed
from dssd.log.upkeep.trimmer import Trimmer
from dssd.log.write.sealing import sealing
from dssd.log.write.writer_thread import WriterThread
from dssd.log.writer_messages import WriterTopic
from dssd.store.paging import scan_all
from dssd.store.port import Delete, Put, Store, Write
from dssd.store.rows import HoldRow, StorageTopicRow


class SegmentLog:
    """Implements `port.Log`. Built by `open`."""

    def __init__(
        self,
        paths: SegmentPaths,
        store: Store,
        settings: LogSettings,
        on_failure: Callable[[BaseException], None],
        wall_us: Callable[[], int],
        monotonic_us: Callable[[], int],
        holds: Holds,
    ) -> None:
        self._paths = paths
        self._wall_us = wall_us
        self._store = store
        self._on_failure = on_failure
        self._failing = threading.Lock()
        self._failed = self._closing = False
        self._found = Recovered()
        self._topics: dict[int, StorageTopicState] = {}
        self._holds, self._gate = holds, RemovalGate()
        self._files = FileReader(share_of_descriptors(settings.descriptors_max))
        self._tail = TailCache(settings.tail_cache_bytes_max)
        self._writer = WriterThread(
            loop=asyncio.get_running_loop(),
            published=lambda batch: self._appender.published(batch),
            failed=self._fail,
            wall_us=wall_us,
            monotonic_us=monotonic_us,
            run_bytes_max=settings.run_bytes_max,
            descriptors_max=share_of_descriptors(settings.active_descriptors_max),
        )
        self._rebuilder = IndexRebuilder(
            paths=paths, files=self._files, settings=settings, quarantined=self._found.quarantined
        )
        self._housekeeper = Housekeeper(
            paths=paths,
            store=store,
            writer=self._writer,
            settings=settings,
            wall_us=wall_us,
            failed=self._fail,
            count_topics=lambda: len(self._topics),
            index_is_new=self._rebuilder.is_new,
        )
        self._appender = Appender(
            topics=self._topics,
            writer=self._writer,
            housekeeper=self._housekeeper,
            tail=self._tail,
            settings=settings,
            has_failed=lambda: self._failed,
        )
        blocks_max = settings.index_blocks_max
        self._finder = RunFinder(paths, self._files, self._rebuilder.rebuild, blocks_max)
        self._places = RunPlaces(paths, self._finder)
        self._rebuilder.index_changed = self._finder.forget
        self._trimmer = Trimmer(
            paths=paths,
            store=store,
            writer=self._writer,
            files=self._files,
            housekeeper=self._housekeeper,
            index_gone=self._finder.forget,
            failed=self._fail,
            holds=self._holds,
            gate=self._gate,
        )
        self._adopter = self._new_adopter(settings)
        self._reader = Reader(
            paths, self._files, self._finder, self._tail, loop_us=settings.read_loop_us
        )

    def _new_adopter(self, settings: LogSettings) -> Adopter:
        return Adopter(
            paths=self._paths,
            store=self._store,
            writer=self._writer,
            housekeeper=self._housekeeper,
            appender=self._appender,
            settings=settings,
            failed=self._fail,
        )

    @classmethod
    async def open(
        cls,
        directory: Path,
        store: Store,
        *,
        storage_topics: Sequence[StorageTopicRow],
        on_failure: Callable[[BaseException], None],
        ask_reached: AskReached = nobody_read,
        settings: LogSettings | None = None,
        wall_us: Callable[[], int] = wall_us_now,
        monotonic_us: Callable[[], int] = monotonic_us_now,
    ) -> Self:
        """Recover what the directory holds and make it appendable.

        ``ask_reached`` tells how far groups have read; no new record comes below that. The first
        failure of the disk or of a part of the log is told ``on_failure``, in the thread that
        noticed: a busy loop must not delay the end of the process. No append returns after it.

        Raises:
            OSError: the directory cannot be read or written.
        """
        settings = settings or LogSettings()
        paths = SegmentPaths(directory)
        recovered = await recover(paths, store, storage_topics, settings, wall_us, ask_reached)
        holds = Holds(found.row for found in await scan_all(store, HoldRow))
        log = cls(paths, store, settings, on_failure, wall_us, monotonic_us, holds)
        log._found.quarantined += recovered.quarantined
        log._found.short += recovered.short
        for state, topic in recovered.topics:
            log._topics[state.storage_topic_id] = state
            log._writer.add(topic)
        log._writer.start()
        log._housekeeper.start()
        for state in log._topics.values():
            log._housekeeper.begin_end(state)
        return log

    @property
    def bytes_read(self) -> int:
        """Bytes that reads took from files since the start."""
        return self._files.bytes_read

    @property
    def index_blocks_read(self) -> int:
        """Index blocks that lookups took from files since the start."""
        return self._finder.blocks_read

    @property
    def measures(self) -> LogMeasures:
        """Measurements since the start, and present ones."""
        segments = [each for topic in self._topics.values() for each in topic.segments.values()]
        return LogMeasures(
            appends=self._appender.latencies,
            syncs=self._writer.syncs,
            stored_frames=self._appender.stored_frames,
            stored_records=self._appender.stored_records,
            stored_bytes=self._appender.stored_bytes,
            queued_bytes=self._appender.queued_bytes,
            segments=len(segments),
            kept_bytes=sum(segment.size for segment in segments),
            producers=self._writer.producers,
        )

    async def reach_writer(self) -> None:
        """Return once everything that was handed to the writer before is written."""
        await self._writer.reach()

    def quarantined(self) -> list[tuple[Path, str]]:
        """Files that were set aside, found damaged or rebuilt, each with the reason."""
        return list(self._found.quarantined)

    def short_streams(self) -> list[ShortStream]:
        """Streams that ended, at the start, below what groups had read of them."""
        return list(self._found.short)

    def open_storage_topic(self, storage_topic_id: int, partitions: int) -> None:
        """Make the streams of a new storage topic appendable; a known one stays as it is."""
        if storage_topic_id in self._topics:
            return
        streams = [Stream() for _ in range(partitions)]
        self._topics[storage_topic_id] = StorageTopicState(storage_topic_id, streams)
        producers = Producers(storage_topic_id)
        self._writer.add(WriterTopic(storage_topic_id, [0] * partitions, producers))

    async def append(self, appends: Sequence[Append]) -> list[Appended | BaseException]:
        """Append frames, each on its own: one result or error per frame, in order.

        Calls take effect in the order in which they were made. A cancelled call may have stored
        its frames.
        """
        if self._closing:
            return [Stopping() for _ in appends]
        return await self._appender.append(appends)

    def begin_append(self, appends: Sequence[Append], answered: Answered) -> None:
        """As `append`, answered by a callback on the event loop, perhaps before this returns."""
        if self._closing:
            answered([Stopping() for _ in appends])
        else:
            self._appender.begin(appends, answered)

    async def adopt(
        self,
        storage_topic_id: int,
        frames: Frames,
        *,
        topic_epoch: int,
        publish: Publish,
        rest: Rest | None = None,
    ) -> Adopted:
        """Store frames of any partitions at once: readers see all of them or none.

        It goes on to its end where its caller is cancelled. ``publish`` may be called although
        nothing is stored then.

        Raises:
            StreamNotFound, StorageTopicSealed, DiskFull, Overloaded, FrameTooLarge, Stopping,
                PreconditionFailed: nothing was stored.
            Exception: what ``frames`` raised; nothing was stored.
        """
        if self._closing:
            raise Stopping
        state = self._state(StreamId(storage_topic_id, 0))
        return await self._adopter.adopt(state, frames, topic_epoch, publish, rest)

    async def hold(self, holder: int, ranges: Mapping[StreamId, Range]) -> list[Write]:
        """Keep these records from retention and trims; returns what makes that durable.

        Raises:
            OffsetOutOfRange, StreamNotFound: a part of them is not kept; nothing is held.
        """
        by_topic: dict[int, dict[StreamId, Range]] = {}
        for stream, range_ in ranges.items():
            by_topic.setdefault(stream.storage_topic_id, {})[stream] = range_
        rows: list[HoldRow] = []
        try:
            for own in by_topic.values():
                rows += await self._trimmer.hold(self._state(next(iter(own))), holder, own)
        except (OffsetOutOfRange, StreamNotFound):
            self._holds.remove(holder)
            raise
        return [Put(row) for row in rows]

    def release(self, holder: int) -> list[Write]:
        """The writes that end the holds of a holder in the store."""
        return [Delete(HoldRow, key) for key in self._holds.rows_of(holder)]

    def released(self, holder: int) -> None:
        """End the holds of a holder in memory."""
        self._holds.remove(holder)

    def holders(self, storage_topic_id: int) -> set[int]:
        """Who holds records of a storage topic."""
        return self._holds.holders(storage_topic_id)

    def producers_begin_us(self, storage_topic_id: int) -> int:
        """A begin time for the ids of new producers: later than that of any forgotten producer."""
        return max(self._wall_us(), self._writer.forgotten_us(storage_topic_id) + 1)

    def is_read_only(self) -> bool:
        """Whether frames were refused because the disk is full, and none was stored since."""
        return self._appender.is_read_only

    def files(self) -> LogFiles:
        """Its files, for whoever copies them."""
        return LogFiles(self._paths, self._topics, self._gate)

    def _fail(self, failure: BaseException) -> None:
        with self._failing:
            first = not self._failed
            self._failed = True
        if first:
            self._on_failure(failure)

    async def read(
        self, stream: StreamId, offset: int, *, bytes_max: int, matching: TopicFilter | None = None
    ) -> Chunk:
        """Frames from the one that holds the offset on, at least one if there is any.

        Raises:
            StreamNotFound: the storage topic was removed.
        """
        state = self._state(stream)
        return await self._reader.read(state, stream.partition, offset, bytes_max, matching)

    def read_in_memory(
        self, stream: StreamId, offset: int, *, bytes_max: int, matching: TopicFilter | None = None
    ) -> Chunk | None:
        """What `read` would answer, if that needs no file; else None.

        Raises:
            StreamNotFound: the storage topic was removed.
        """
        state = self._state(stream)
        return self._reader.read_in_memory(state, stream.partition, offset, bytes_max, matching)

    async def run_places(
        self, stream: StreamId, start: int, end: int, *, runs_max: int
    ) -> list[FileRuns]:
        """Where the bytes of a range lie; fewer runs where there are many, or one is missing.

        Raises:
            StreamNotFound: the storage topic was removed.
        """
        state = self._state(stream)
        return await self._places.of(state, stream.partition, start, end, runs_max)

    def bounds(self, stream: StreamId) -> Bounds:
        """Start, end and bytes of a stream, now.

        Raises:
            StreamNotFound: the storage topic was removed.
        """
        state = self._state(stream)
        one = state.streams[stream.partition]
        return Bounds(one.start, one.end, state.bytes_of(stream.partition))

    def kept_bytes(self, storage_topic_id: int) -> int:
        """Bytes of its files that hold records which are kept.

        Raises:
            StreamNotFound: the storage topic was removed.
        """
        return self._trimmer.kept_bytes(self._state(StreamId(storage_topic_id, 0)))

    def span(self, stream: StreamId) -> Range:
        """Start and end of a stream, now.

        Raises:
            StreamNotFound: the storage topic was removed.
        """
        one = self._state(stream).streams[stream.partition]
        return one.start, one.end

    async def locate(self, stream: StreamId, time_us: int) -> int:
        """The first offset whose append time is at or after the time; the end if none is.

        Raises:
            StreamNotFound: the storage topic was removed.
        """
        return await self._reader.locate(self._state(stream), stream.partition, time_us)

    async def time_at(self, stream: StreamId, offset: int) -> int | None:
        """The append time of the record at the offset, or None where it is not stored.

        Raises:
            StreamNotFound: the storage topic was removed.
        """
        return await self._reader.time_at(self._state(stream), stream.partition, offset)

    def count(self, stream: StreamId, start: int, end: int) -> tuple[int, bool]:
        """How many records lie in ``[start, end)``, and whether that is exact.

        Raises:
            StreamNotFound: the storage topic was removed.
        """
        return self._state(stream).count(stream.partition, start, end), True

    def watch(self, stream: StreamId, grown: Callable[[], None]) -> Callable[[], None]:
        """Call ``grown`` on the event loop after each growth; returns how to stop watching.

        Raises:
            StreamNotFound: the storage topic was removed.
        """
        return self._state(stream).streams[stream.partition].watch(grown)

    async def sync(self, storage_topic_id: int) -> None:
        """Return once all that was appended before is durable.

        Raises:
            StreamNotFound: the storage topic was removed.
            DiskFull, Overloaded: it has to be tried again later.
        """
        state = self._state(StreamId(storage_topic_id, 0))
        if state.waiting:  # the writer has them once there is a file for them
            await asyncio.shield(self._housekeeper.begin_roll(state))
        await self._writer.sync(storage_topic_id)

    def sealing(
        self, storage_topic_id: int, heir: int | None = None
    ) -> AbstractAsyncContextManager[Ends]:
        """Where a storage topic ends; it is sealed once the block is left without an error.

        Raises:
            StreamNotFound: the storage topic was removed.
            DiskFull: not all of it can be made durable; appends are still taken.
        """
        states = [self._state(StreamId(of, 0)) for of in (storage_topic_id, heir) if of is not None]
        return sealing(self._writer, self._appender, self._housekeeper, *states)

    async def trim(self, stream: StreamId, offset: int) -> None:
        """Delete the records below the offset. A file goes once it holds no other records.

        Raises:
            StreamNotFound: the storage topic was removed.
            DiskFull: nothing was trimmed.
        """
        state = self._state(stream)
        await self._trimmer.trim(state, {stream.partition: offset})

    async def enforce_retention(
        self,
        storage_topic_id: int,
        retention_ms: int | None,
        retention_bytes: int | None,
        now_us: int,
        about_to_go: AboutToGo | None = None,
    ) -> int:
        """Drop whole segments that are too old or too many; returns how many went.

        ``about_to_go`` is called with their records before, and again if it has to be retried.

        Raises:
            StreamNotFound: the storage topic was removed.
            DiskFull, Overloaded: it has to be tried again later.
        """
        state = self._state(StreamId(storage_topic_id, 0))
        return await self._trimmer.enforce_retention(
            state, retention_ms, retention_bytes, now_us, about_to_go
        )

    async def trim_below(self, storage_topic_id: int, ask_floors: AskFloors) -> int:
        """As `Trimmer.trim_below`. Raises StreamNotFound: the storage topic was removed."""
        state = self._state(StreamId(storage_topic_id, 0))
        return await self._trimmer.trim_below(state, ask_floors)

    async def expiring(
        self,
        storage_topic_id: int,
        retention_ms: int | None,
        retention_bytes: int | None,
        now_us: int,
    ) -> Expiring:
        """What a retention would take now; nothing is deleted.

        Raises:
            StreamNotFound: the storage topic was removed.
        """
        state = self._state(StreamId(storage_topic_id, 0))
        return await self._trimmer.expiring(state, retention_ms, retention_bytes, now_us)

    def scrubbed(self, storage_topic_id: int, pace: Pace) -> AsyncGenerator[Scrubbed, None]:
        """Read every sealed segment of a storage topic, and compare it with its checksums."""
        return scrubbed(self._paths, self._store, storage_topic_id, pace)

    async def roll(self, storage_topic_id: int) -> bool:
        """Continue in a new segment file; False if the disk is too full for one.

        Raises:
            StreamNotFound: the storage topic was removed.
            Overloaded: too many files wait to be created.
        """
        state = self._state(StreamId(storage_topic_id, 0))
        return await asyncio.shield(self._housekeeper.begin_roll(state)) is None

    async def remove_storage_topic(self, storage_topic_id: int) -> None:
        """Delete its files and rows; from now on its streams are not found."""
        state = self._topics.pop(storage_topic_id, None)
        if state is None:
            return
        await self._trimmer.remove(state)
        for partition in range(len(state.streams)):
            self._tail.forget(StreamId(storage_topic_id, partition))

    async def close(self) -> None:
        """Sync, store the watermarks, close the files. After a disk error: only close."""
        if self._closing:
            return
        self._closing = True
        if self._failed:
            await self._housekeeper.abandon()
        else:
            await self._housekeeper.stop()
            await clean_close.close_log(
                self._paths, self._store, self._writer, list(self._topics.values())
            )
        self._files.close()

    def _state(self, stream: StreamId) -> StorageTopicState:
        state = self._topics.get(stream.storage_topic_id)
        if state is None or not 0 <= stream.partition < len(state.streams):
            raise StreamNotFound(stream=stream)
        return state
