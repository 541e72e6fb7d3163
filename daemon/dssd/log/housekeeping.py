"""What changes files and rows beside appending: rolling, sealing, marking, trimming, removing.

Invariant: one such change at a time. A row is committed before its file takes a frame; a low
watermark is committed before a file below it goes. The index, the rows and the watermarks here
only ever speak of bytes that are durable.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from dss_core.errors import DiskFailed, DiskFull
from dssd.limits import HOUSEKEEPING_WAITING_MAX
from dssd.log import recovery
from dssd.log.batch import StoredFrames, Switched, WrittenFile
from dssd.log.files import FileReader
from dssd.log.index import StreamRuns
from dssd.log.index_file import BadIndex
from dssd.log.rebuilding import rebuild_known_index
from dssd.log.retention import SegmentAge, expired
from dssd.log.segment_file import (
    HEADER_BYTES,
    SegmentId,
    SegmentPaths,
    SegmentWriter,
    write_durably,
)
from dssd.log.segment_rows import parse_starts, remove_segments
from dssd.log.settings import LogSettings
from dssd.log.startup import CLEAN_MARKER
from dssd.log.streams import Segment, StorageTopicState
from dssd.log.writer import NO_SPACE, LogWriter
from dssd.store.port import Delete, PreconditionFailed, Put, Store, Versioned, VersionIs
from dssd.store.rows import SegmentRow, StorageTopicRow

_TRIM_ATTEMPTS_MAX = 16
"""How often a low watermark is tried again when its row changed in between."""

_Roll = tuple[StorageTopicState, "asyncio.Future[bool]"]


class Housekeeper:
    """Runs on the event loop; blocking work goes to threads."""

    def __init__(
        self,
        *,
        paths: SegmentPaths,
        store: Store,
        writer: LogWriter,
        files: FileReader,
        settings: LogSettings,
        wall_us: Callable[[], int],
        failed: Callable[[DiskFailed], None],
        quarantined: list[tuple[Path, str]],
    ) -> None:
        self._paths = paths
        self._store = store
        self._writer = writer
        self._files = files
        self._settings = settings
        self._wall_us = wall_us
        self._failed = failed
        self._quarantined = quarantined
        self._lock = asyncio.Lock()
        self._waiting: asyncio.Queue[_Roll | Segment | None] = asyncio.Queue(
            HOUSEKEEPING_WAITING_MAX
        )
        self._rolls: dict[int, asyncio.Future[bool]] = {}
        self._task: asyncio.Task[None] | None = None
        self._row_keys: dict[int, tuple[int, int]] = {}
        self.index_changed: Callable[[SegmentId], None] = lambda _: None

    def start(self) -> None:
        """Start working off what waits."""
        self._task = asyncio.create_task(self._work(), name="log-housekeeper")

    async def stop(self) -> None:
        """Finish what waits, then end."""
        assert self._task is not None
        await self._waiting.put(None)
        await self._task

    async def abandon(self) -> None:
        """End at once, whatever waits: the disk failed, and the writer answers no more."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])

    # Rolling

    def begin_roll(self, state: StorageTopicState) -> "asyncio.Future[bool]":
        """Give the topic a new file; False if the disk has no room for one.

        A topic is rolled once, however many ask meanwhile.
        """
        rolled = self._rolls.get(state.storage_topic_id)
        if rolled is None:
            rolled = asyncio.get_running_loop().create_future()
            self._rolls[state.storage_topic_id] = rolled
            self._waiting.put_nowait((state, rolled))
        return asyncio.shield(rolled)

    def index_run(self, segment: Segment, stored: StoredFrames) -> None:
        """Enter stored frames in the index of their segment."""
        assert segment.runs is not None, "frames go to active segments only"
        runs = segment.runs.get(stored.partition)
        if runs is None:
            runs = segment.runs[stored.partition] = StreamRuns()
        runs.put(stored.run, stored.time_us)
        segment.frames += len(stored.frames)

    def note_written(self, state: StorageTopicState | None, file: WrittenFile) -> None:
        """A file grew; its watermark follows when it is far behind."""
        if state is None:
            return
        segment = state.segments[file.segment.segment_id]
        segment.size = file.size
        if file.synced:
            segment.synced = file.size
        behind = segment.synced - segment.watermark
        if behind >= self._settings.watermark_bytes and not segment.marking:
            segment.marking = True
            self._waiting.put_nowait(segment)

    async def _work(self) -> None:
        reason = "the log's housekeeping ended unexpectedly"
        try:
            while (item := await self._waiting.get()) is not None:
                async with self._lock:
                    if isinstance(item, Segment):
                        await self._mark(item)
                    else:
                        await self._roll(*item)
            reason = ""
        except OSError as error:
            reason = f"{error.strerror} while rolling a segment"
        except asyncio.CancelledError:
            reason = ""
            raise
        finally:
            if reason:
                self._failed(DiskFailed(reason=reason))

    async def _roll(self, state: StorageTopicState, rolled: "asyncio.Future[bool]") -> None:
        done = False
        try:
            done = await self._give_file(state)
        except DiskFull:
            pass
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
        del self._rolls[state.storage_topic_id]
        if not rolled.done():
            rolled.set_result(done)

    async def _give_file(self, state: StorageTopicState) -> bool:
        """Row, file, switch; then the file before it is sealed."""
        if state.removed:
            return True
        now_us = self._wall_us()
        segment_id = SegmentId(state.storage_topic_id, await self._store.next_id())
        segment = Segment(segment_id, now_us // 1_000, runs={})
        await self._store.commit([Put(segment.row("active", HEADER_BYTES))])
        try:
            file = await asyncio.to_thread(SegmentWriter.create, self._paths, segment_id, now_us)
        except OSError:
            await self._store.commit([Delete(SegmentRow, tuple(segment_id))])
            raise
        before = state.last
        state.segments[segment_id.segment_id] = segment
        switched = await self._writer.switch(state.storage_topic_id, file)
        state.claimed_bytes = 0
        state.writable = True
        await asyncio.to_thread(self._save_producers, segment_id, switched)
        if before is not None and before.runs is not None:
            await self._seal(before, switched)
        return True

    def _save_producers(self, segment: SegmentId, switched: Switched) -> None:
        write_durably(self._paths.producers(segment), [switched.snapshot])

    async def _seal(self, segment: Segment, switched: Switched) -> None:
        """Store the index of a file that takes no more frames, then say so in its row."""
        assert segment.runs is not None
        if switched.left is not None:
            segment.size = segment.synced = switched.left.size
        await asyncio.to_thread(
            recovery.write_index,
            self._paths,
            segment.id,
            segment.size,
            segment.runs,
            segment.frames,
        )
        await self._store.commit([Put(segment.row("sealed", segment.size))])
        segment.watermark = segment.size
        segment.summary = await asyncio.to_thread(recovery.load_summary, self._paths, segment.id)
        segment.runs = None
        self._paths.producers(segment.id).unlink(missing_ok=True)

    async def _mark(self, segment: Segment) -> None:
        """Store the watermark of an active file."""
        segment.marking = False
        if segment.runs is None or segment.removed:
            return
        synced = segment.synced
        await self._store.commit([Put(segment.row("active", synced))])
        segment.watermark = synced

    # Indexes

    async def rebuild_index(self, segment: Segment) -> None:
        """Make the index of a sealed segment anew from its frames.

        Raises:
            BadIndex: the segment is missing too.
        """
        async with self._lock:
            if segment.removed:
                raise BadIndex("the segment was removed")
            assert segment.summary is not None
            path = self._paths.index(segment.id)
            self._files.drop(path)
            segment.summary = await asyncio.to_thread(
                rebuild_known_index, self._paths, segment.id, segment.summary, self._settings
            )
            self._quarantined.append((path, "rebuilt: it was damaged"))

    # Trimming and removing

    async def trim(self, state: StorageTopicState, offsets: Mapping[int, int]) -> None:
        """Raise low watermarks, durably, then remove the files below them."""
        async with self._lock:
            await self._trim(state, offsets)

    async def _trim(self, state: StorageTopicState, offsets: Mapping[int, int]) -> None:
        raised = {
            partition: min(offset, state.streams[partition].end)
            for partition, offset in offsets.items()
            if offset > state.streams[partition].start
        }
        if raised:
            await self._store_starts(state, raised)
        for partition, offset in raised.items():
            state.streams[partition].start = offset
        gone = [segment for segment in state.segments.values() if _is_below(segment, state)]
        if gone:
            await self._remove(state, gone)

    async def _store_starts(self, state: StorageTopicState, raised: Mapping[int, int]) -> None:
        for _ in range(_TRIM_ATTEMPTS_MAX):
            found = await self._topic_row(state.storage_topic_id)
            if found is None:
                return
            starts = parse_starts(found.row)
            for partition, offset in raised.items():
                starts[partition] = max(starts[partition], offset)
            row = found.row
            new = StorageTopicRow(
                topic_id=row.topic_id,
                ordinal=row.ordinal,
                storage_topic_id=row.storage_topic_id,
                partitions=row.partitions,
                factor=row.factor,
                ends=row.ends,
                starts=",".join(map(str, starts)),
            )
            key = (row.topic_id, row.ordinal)
            try:
                await self._store.commit(
                    [Put(new)], [VersionIs(StorageTopicRow, key, found.version)]
                )
            except PreconditionFailed:
                continue
            return
        raise AssertionError("the row of a storage topic never stands still")

    async def _topic_row(self, storage_topic_id: int) -> Versioned[StorageTopicRow] | None:
        """The row of a storage topic; None where its topic is being removed."""
        key = self._row_keys.get(storage_topic_id)
        if key is None:
            for found in await self._store.scan(StorageTopicRow):
                row = found.row
                self._row_keys[row.storage_topic_id] = (row.topic_id, row.ordinal)
            key = self._row_keys.get(storage_topic_id)
        return None if key is None else await self._store.read(StorageTopicRow, key)

    async def enforce_retention(
        self,
        state: StorageTopicState,
        retention_ms: int | None,
        retention_bytes: int | None,
        now_us: int,
    ) -> int:
        """Drop whole segments, oldest first; an active one that is too old is rolled first."""
        last = state.last
        if last is not None and last.runs and retention_ms is not None:
            age = [SegmentAge(last.size, last.last_us())]
            if expired(age, retention_ms=retention_ms, retention_bytes=None, now_us=now_us):
                await self.begin_roll(state)
        async with self._lock:
            sealed = [segment for segment in state.segments.values() if segment.runs is None]
            ages = [SegmentAge(segment.size, segment.last_us()) for segment in sealed]
            active_bytes = sum(one.size for one in state.segments.values() if one.runs is not None)
            if retention_bytes is not None:
                retention_bytes = max(0, retention_bytes - active_bytes)
            count = expired(
                ages, retention_ms=retention_ms, retention_bytes=retention_bytes, now_us=now_us
            )
            if count:
                await self._trim(state, _ends_of(sealed[:count]))
            return count

    async def remove(self, state: StorageTopicState) -> None:
        """Delete all files and rows of a storage topic."""
        async with self._lock:
            state.removed = True
            await self._writer.remove(state.storage_topic_id)
            await self._remove(state, list(state.segments.values()))

    async def _remove(self, state: StorageTopicState, segments: list[Segment]) -> None:
        for segment in segments:
            segment.removed = True
            state.forget(segment)
            self._files.drop(self._paths.segment(segment.id))
            self._files.drop(self._paths.index(segment.id))
            self.index_changed(segment.id)
        await remove_segments(self._paths, self._store, [segment.id for segment in segments])

    # Stopping

    async def leave(self, states: list[StorageTopicState]) -> None:
        """Stop the writer and leave all in such order that the next start need not read it."""
        left = await self._writer.stop()
        rows: list[Put] = []
        for state in states:
            switched = left.get(state.storage_topic_id)
            segment = state.last
            if switched is None or switched.left is None or segment is None:
                continue
            await asyncio.to_thread(self._save_state, segment, switched, switched.left.size)
            rows.append(Put(segment.row("active", switched.left.size)))
        if rows:
            await self._store.commit(rows)
        marker = self._paths.directory / CLEAN_MARKER
        await asyncio.to_thread(write_durably, marker, [b""])

    def _save_state(self, segment: Segment, switched: Switched, size: int) -> None:
        assert segment.runs is not None
        recovery.write_index(self._paths, segment.id, size, segment.runs, segment.frames)
        self._save_producers(segment.id, switched)


def _is_below(segment: Segment, state: StorageTopicState) -> bool:
    """Whether a sealed segment holds nothing at or above the low watermarks."""
    if segment.runs is not None:
        return False
    ends = _ends_of([segment])
    return all(end <= state.streams[partition].start for partition, end in ends.items())


def _ends_of(segments: list[Segment]) -> dict[int, int]:
    """The end of each stream in the segments."""
    ends: dict[int, int] = {}
    for segment in segments:
        for partition in segment.partitions():
            extent = segment.extent(partition)
            assert extent is not None
            ends[partition] = max(ends.get(partition, 0), extent.end)
    return ends
