"""Rolls, seals and marks segments: all changes of files and rows apart from appending.

One task runs these jobs, one after the other. A segment that takes no more frames but could not be
sealed because the disk was full keeps its index in memory; each roll and each mark of its topic
tries again.

Invariant: a row is committed before its file takes a frame. Indexes, rows, watermarks and marks
describe durable bytes only. If the disk is full or no descriptor is left, a job is done later; any
other disk error ends the log, and so does a programmer's error. This module must not know readers:
``index_is_new`` is called for each index that is written.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from dss_core.errors import (
    DiskFailed,
    DiskFull,
    DssError,
    Overloaded,
    Stopping,
    StreamNotFound,
)
from dss_core.ids import StreamId
from dssd.log.disk_errors import retry_reason
from dssd.log.recovery import judge_segment
from dssd.log.resume import marks, snapshots
from dssd.log.segment.file import (
    HEADER_BYTES,
    SegmentId,
    SegmentPaths,
    SegmentWriter,
    write_back,
)
from dssd.log.segment.index_file import BadIndex
from dssd.log.segment.rows import remove_if_room, unlink_segments
from dssd.log.segment.run_index import StreamRuns
from dssd.log.settings import LogSettings
from dssd.log.topic_state import Segment, StorageTopicState
from dssd.log.write.delayed_sync import DelayedSync, Job
from dssd.log.write.writer_thread import WriterThread
from dssd.log.writer_messages import StoredFrames, Switched, WrittenFile
from dssd.store.port import Delete, Put, Store
from dssd.store.rows import SegmentRow

WATERMARK_FRAMES_ALL = 262_144
"""How many frames of all files together may lie beyond their marks: half a second of a start."""

WATERMARK_FRAMES_MIN = 1_024
"""How many frames of each file may lie beyond its marks all the same: marking more often would cost
the writer more than 3 %."""

HOUSEKEEPING_WAITING_MAX = 65_536
"""How many segments may wait to be sealed, rolled or marked: more than there are storage topics."""


_LOG = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Made:
    """A file that the writer does not have yet."""

    segment: Segment
    file: SegmentWriter


@dataclass(frozen=True, slots=True)
class Left:
    """The writer left a file for its successor."""

    segment: Segment | None
    """The file's state; None if the topic had none."""
    successor: SegmentId
    switched: Switched


class Housekeeper:
    """Runs on the event loop; blocking work goes to threads."""

    def __init__(
        self,
        *,
        paths: SegmentPaths,
        store: Store,
        writer: WriterThread,
        settings: LogSettings,
        wall_us: Callable[[], int],
        failed: Callable[[BaseException], None],
        count_topics: Callable[[], int],
        index_is_new: Callable[[Segment], None],
    ) -> None:
        self._paths = paths
        self._store = store
        self._writer = writer
        self._settings = settings
        self._wall_us = wall_us
        self._failed = failed
        self._count_topics = count_topics
        self._index_is_new = index_is_new
        self._waiting: asyncio.Queue[Job | None] = asyncio.Queue(HOUSEKEEPING_WAITING_MAX)
        self._rolls: dict[int, asyncio.Future[DssError | None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._put_off: set[SegmentId] = set()
        self.unsynced = DelayedSync(
            store=store,
            writer=writer,
            settings=settings,
            submit=self._submit,
            mark=self._begin_mark,
        )

    def start(self) -> None:
        """Start the task that runs the jobs."""
        self._task = asyncio.create_task(self._work(), name="log-housekeeper")
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Run the waiting jobs, then end the task."""
        assert self._task is not None
        self.unsynced.stop()
        await self._waiting.put(None)
        await self._task

    async def abandon(self) -> None:
        """End the task at once, whatever waits: the disk failed and the writer answers no more."""
        assert self._task is not None
        self.unsynced.stop()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def settle(self) -> None:
        """Return after all jobs that wait now are done."""
        assert self._task is not None
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def tell() -> None:
            if not done.done():
                done.set_result(None)

        await self._waiting.put(tell)
        await asyncio.wait([done, self._task], return_when=asyncio.FIRST_COMPLETED)

    async def in_turn(self, job: Callable[[], Awaitable[T]]) -> T:
        """Run a job of somebody else when its turn has come; returns its result.

        Raises:
            DssError: what the job raised, or why a full disk refused it.
            Stopping: the housekeeper ended before.
        """
        assert self._task is not None
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                result = await job()
            except (DssError, OSError) as error:
                refused = error if isinstance(error, DssError) else retry_reason(error)
                if refused is None:
                    raise
                done.set_exception(refused)
            else:
                done.set_result(result)

        await self._waiting.put(run)
        either: list[asyncio.Future[Any]] = [done, self._task]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            raise Stopping
        return done.result()

    async def _work(self) -> None:
        while (job := await self._waiting.get()) is not None:
            await job()

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, OSError):
            self._failed(DiskFailed(reason=f"{error.strerror} while rolling a segment"))
        elif error is not None:
            self._failed(error)

    # Rolling

    def begin_roll(self, state: StorageTopicState) -> "asyncio.Future[DssError | None]":
        """Give the topic a new file. The future gives None, or why the roll has to be tried again.

        All callers that ask meanwhile share one roll and its future, so nobody may cancel it.

        Raises:
            Overloaded: too many jobs wait already.
        """
        rolled = self._rolls.get(state.storage_topic_id)
        if rolled is None:
            rolled = asyncio.get_running_loop().create_future()
            if self._waiting.full():
                limit = HOUSEKEEPING_WAITING_MAX
                raise Overloaded(what="The number of files to be made", limit=limit)
            self._waiting.put_nowait(partial(self._roll, state, rolled))
            self._rolls[state.storage_topic_id] = rolled
        return rolled

    def index_run(self, segment: Segment, stored: StoredFrames) -> None:
        """Enter stored frames in the index of their segment."""
        assert segment.runs is not None, "frames go to active segments only"
        runs = segment.runs.get(stored.partition)
        if runs is None:
            runs = segment.runs[stored.partition] = StreamRuns()
        runs.put(stored.run, stored.time_us)
        segment.frames += len(stored.bases)

    def note_written(self, state: StorageTopicState | None, file: WrittenFile) -> None:
        """Note that a file grew; mark it if its watermark or its marks are far behind."""
        if state is None:
            return
        segment = state.segments[file.segment.segment_id]
        segment.size = file.size
        if file.synced:
            segment.synced = file.size
        else:
            self.unsynced.sync_soon(state, segment)
        bytes_behind = segment.synced - segment.watermark
        frames_behind = segment.frames - segment.marks.frames if file.synced else 0
        frames_share = WATERMARK_FRAMES_ALL // max(1, self._count_topics())
        frames_max = min(self._settings.watermark_frames, max(WATERMARK_FRAMES_MIN, frames_share))
        if bytes_behind >= self._settings.watermark_bytes or frames_behind >= frames_max:
            self._begin_mark(state, segment)

    def _begin_mark(self, state: StorageTopicState, segment: Segment) -> None:
        if not segment.marking:
            segment.marking = self._submit(partial(self._mark, state, segment))

    def _submit(self, job: Job) -> bool:
        """Queue a job; False if the queue is full."""
        if self._waiting.full():
            return False
        self._waiting.put_nowait(job)
        return True

    async def _roll(
        self, state: StorageTopicState, rolled: "asyncio.Future[DssError | None]"
    ) -> None:
        outcome: DssError | None = None
        try:
            await self._give_file(state)
        except (DiskFull, Overloaded, OSError) as error:
            outcome = retry_reason(error)
            if outcome is None:
                raise
        except StreamNotFound as gone:
            outcome = gone
        del self._rolls[state.storage_topic_id]
        if not rolled.done():
            rolled.set_result(outcome)

    async def _give_file(self, state: StorageTopicState) -> None:
        """Commit the row, create the file, switch the writer to it, then seal the file before.

        Raises:
            StreamNotFound: the topic was removed meanwhile.
        """
        if state.sealed:
            return
        await self._seal_waiting(state)
        left = await self.switch(state, await self.make_file(state))
        await self.settle_left(state, left)

    async def make_file(self, state: StorageTopicState) -> Made:
        """Commit the row of a new file, then create it; the writer does not have it yet.

        Only for jobs.

        Raises:
            StreamNotFound: the topic was removed meanwhile.
            DiskFull, Overloaded, OSError: there is no new file.
        """
        if state.removed:
            raise StreamNotFound(stream=StreamId(state.storage_topic_id, 0))
        now_us = self._wall_us()
        segment_id = SegmentId(state.storage_topic_id, await self._store.next_id())
        segment = Segment(segment_id, now_us // 1_000, runs={})
        await self._store.commit([Put(segment.row("active", HEADER_BYTES))])
        try:
            file = await asyncio.to_thread(SegmentWriter.create, self._paths, segment_id, now_us)
        except (DiskFull, Overloaded, OSError) as error:
            if retry_reason(error) is not None:
                await self._take_back(segment_id)
            raise
        return Made(segment, file)

    async def switch(self, state: StorageTopicState, made: Made) -> Left:
        """Let the writer go on in a new file; only for jobs.

        Raises:
            DiskFull, Overloaded, OSError: it goes on where it was, and the new file is gone.
        """
        before, segment_id = state.last, made.segment.id
        # Before the switch, because frames in it may be reported before the switch is.
        state.segments[segment_id.segment_id] = made.segment
        try:
            switched = await self._writer.switch(state.storage_topic_id, made.file)
        except (DiskFull, Overloaded, OSError) as error:
            if retry_reason(error) is not None:
                state.segments.pop(segment_id.segment_id, None)
                await self._take_back(segment_id)
            raise
        state.claimed_bytes = 0
        state.writable = True
        if before is not None and switched.left is not None:
            before.size = before.synced = switched.left.size
        return Left(before, segment_id, switched)

    async def settle_left(self, state: StorageTopicState, left: Left) -> None:
        """Store the producers beside the new file, and seal the one that was left, if it has any
        frame."""
        saved = await self._saved_producers(left.successor, left.switched.snapshot)
        segment = left.segment
        if segment is not None and saved and segment.runs == {}:
            segment.removed = True
            state.forget(segment)
            await remove_if_room(self._paths, self._store, [segment.id])
        await self._seal_waiting(state)
        if segment is not None and saved:
            self._paths.producers(segment.id).unlink(missing_ok=True)

    async def _take_back(self, segment_id: SegmentId) -> None:
        """Remove a file that took no frame. A start treats what is left of it as never begun."""
        try:
            await asyncio.to_thread(unlink_segments, self._paths, [segment_id])
        except OSError as error:
            if retry_reason(error) is None:
                raise
        with suppress(DiskFull):
            await self._store.commit([Delete(SegmentRow, tuple(segment_id))])

    async def _saved_producers(self, segment: SegmentId, snapshot: bytes) -> bool:
        """Store a snapshot of producers; False if it has to wait, and a start reads more."""
        try:
            await asyncio.to_thread(snapshots.store, self._paths, segment, snapshot)
        except OSError as error:
            if retry_reason(error) is None:
                raise
            return False
        return True

    def begin_end(self, state: StorageTopicState) -> None:
        """Seal the last file of a sealed storage topic; if that has to wait, the next
        `seal_waiting` or start does it."""
        if state.sealed and state.writable:
            self._submit(partial(self._end, state))

    async def _end(self, state: StorageTopicState) -> None:
        last = state.last
        if last is None or state.removed:
            return
        # Repeats are answered after a start too, for as long as producers are known.
        snapshot = await self._writer.last_snapshot(state.storage_topic_id)
        if snapshot is None or not await self._saved_producers(last.id, snapshot):
            return
        try:
            left = await self._writer.end(state.storage_topic_id)
        except DiskFull:
            return
        if left is not None:
            state.writable = False
            last.size = last.synced = left.size
            await self._seal_waiting(state)

    async def seal_waiting(self, state: StorageTopicState) -> None:
        """Try again to seal the unsealed segments; returns after the attempt."""
        self.begin_end(state)
        if (state.sealed and state.writable) or any(True for _ in _unsealed(state)):
            await self._waiting.put(partial(self._seal_waiting, state))
            await self.settle()

    async def _seal_waiting(self, state: StorageTopicState) -> None:
        for segment in list(_unsealed(state)):
            try:
                await self._seal(segment)
            except (BadIndex, DiskFull, Overloaded, OSError) as error:
                reason = error if isinstance(error, BadIndex) else retry_reason(error)
                if reason is None:
                    raise
                self._tell_put_off(segment, reason)
                return

    def _tell_put_off(self, segment: Segment, reason: Exception) -> None:
        """Log once that the index or the watermark of a segment will be stored later."""
        if segment.id not in self._put_off:
            self._put_off.add(segment.id)
            _LOG.warning(
                "%s: stored later: %s",
                self._paths.index(segment.id),
                reason,
                extra={"event": "index.later"},
            )

    async def _seal(self, segment: Segment) -> None:
        """Store the index of a file that takes no more frames, then mark its row as sealed."""
        await self._write_index(segment)
        await self._store.commit([Put(segment.row("sealed", segment.size))])
        self._paths.marks(segment.id).unlink(missing_ok=True)
        segment.watermark = segment.size
        await self._take_index(segment)

    async def index_adopted(self, segment: Segment) -> None:
        """Store the index of adopted frames, whose row is stored; if it has to wait, it is sealed
        later as any other. Only for jobs."""
        try:
            await self._write_index(segment)
            await self._take_index(segment)
        except (BadIndex, OSError) as error:
            reason = error if isinstance(error, BadIndex) else retry_reason(error)
            if reason is None:
                raise
            self._tell_put_off(segment, reason)

    async def _write_index(self, segment: Segment) -> None:
        assert segment.runs is not None
        await asyncio.to_thread(
            judge_segment.write_index,
            self._paths,
            segment.id,
            segment.size,
            segment.runs,
            segment.frames,
        )

    async def _take_index(self, segment: Segment) -> None:
        """Use the stored index from now on, instead of the one in memory."""
        segment.summary = await asyncio.to_thread(
            judge_segment.load_summary, self._paths, segment.id
        )
        segment.runs = None
        self._put_off.discard(segment.id)
        self._index_is_new(segment)

    async def _mark(self, state: StorageTopicState, segment: Segment) -> None:
        """Store the watermark of an active file; if the disk is full, a later mark does."""
        await self._seal_waiting(state)
        try:
            if segment is state.last and not state.removed:
                await self._store_mark(state, segment)
        except (DiskFull, Overloaded, OSError) as error:
            reason = retry_reason(error)
            if reason is None:
                raise
            self._tell_put_off(segment, reason)
        finally:
            segment.marking = False
        if segment.synced < segment.size:
            self.unsynced.sync_soon(state, segment)

    async def _store_mark(self, state: StorageTopicState, segment: Segment) -> None:
        """Write the mark, then the row: the mark counts once the row covers it."""
        if segment.synced < segment.size:
            await asyncio.to_thread(write_back, self._paths.segment(segment.id))
        marked = await self._writer.mark(state.storage_topic_id)
        if marked is None:
            return
        segment.synced = max(segment.synced, marked.size)
        assert segment.runs is not None, "it takes frames"
        await asyncio.to_thread(
            marks.add, self._paths, segment.id, segment.marks, segment.runs, marked
        )
        await self._store.commit([Put(segment.row("active", marked.size))])
        segment.watermark = marked.size
        self._put_off.discard(segment.id)


def _unsealed(state: StorageTopicState) -> Iterator[Segment]:
    """The segments that take no more frames and are not sealed yet."""
    for segment in state.segments.values():
        takes_frames = state.writable and segment is state.last
        if segment.runs is not None and not segment.removed and not takes_frames:
            yield segment
