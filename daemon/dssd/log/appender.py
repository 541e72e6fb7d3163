"""Passes frames to the writer thread, and makes visible what it stored.

    call ─▶ room in the queue? ─▶ a file with room? ─▶ WriterThread ─▶ Batch
    Batch ─▶ index, tail cache, end of the stream ─▶ its calls answered ─▶ watchers

Calls for a topic wait until it has a file with room. The next file is requested early, so that few
calls wait.

Invariant: calls of one topic reach the writer in the order in which they were made. What waits is
bounded in bytes. A call is answered after its frames can be read; after the log failed no call is
answered. This module must not know how a file is created, nor what makes a frame durable.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from dss_core.errors import DiskFull, DssError, Overloaded
from dssd.limits import SEGMENT_BYTES_HARD_FACTOR
from dssd.log.port import Append, Appended
from dssd.log.read.tail_cache import TailCache
from dssd.log.settings import LogSettings
from dssd.log.topic_state import Segment, StorageTopicState, Stream
from dssd.log.upkeep.housekeeper import Housekeeper
from dssd.log.write.writer_thread import WriterThread
from dssd.log.writer_messages import AppendCall, Batch, StoredFrames


class Appender:
    """Runs on the event loop. ``topics`` are the log's, by storage topic."""

    def __init__(
        self,
        *,
        topics: Mapping[int, StorageTopicState],
        writer: WriterThread,
        housekeeper: Housekeeper,
        tail: TailCache,
        settings: LogSettings,
        has_failed: Callable[[], bool],
    ) -> None:
        self._topics = topics
        self._writer = writer
        self._housekeeper = housekeeper
        self._tail = tail
        self._settings = settings
        self._has_failed = has_failed
        self.queued_bytes = 0
        """Bytes of the frames that are not answered yet."""
        self.is_read_only = False
        """Whether frames were refused because the disk is full, and none was stored since."""

    async def append(self, appends: Sequence[Append]) -> list[Appended | BaseException]:
        """One result or error per frame, in order. A cancelled call may have stored its frames."""
        size = sum(len(append.frame) for append in appends)
        limit = self._settings.writer_queue_bytes_max
        if self.queued_bytes and self.queued_bytes + size > limit:
            return [Overloaded(what="The log's queue in bytes", limit=limit) for _ in appends]
        by_topic: dict[int, list[Append]] = {}
        for append in appends:
            by_topic.setdefault(append.stream.storage_topic_id, []).append(append)
        # All are handed over before anything is awaited, so that calls keep their order.
        calls = {number: self._hand_over(number, part) for number, part in by_topic.items()}
        try:
            answers = {number: iter(await call.answered) for number, call in calls.items()}
        except asyncio.CancelledError:
            for number, call in calls.items():
                self._withdraw(number, call)
            raise
        return [next(answers[append.stream.storage_topic_id]) for append in appends]

    def _hand_over(self, storage_topic_id: int, appends: Sequence[Append]) -> AppendCall:
        """Give frames to the writer, or let them wait until their topic has a file with room."""
        size = sum(len(append.frame) for append in appends)
        call = AppendCall(appends, size, asyncio.get_running_loop().create_future())
        self.queued_bytes += size
        state = self._topics.get(storage_topic_id)
        if state is None:
            self._writer.append(call)
            return call
        try:
            # Repeats need no room, but must not overtake the frames that they may repeat.
            needs_room = not (state.waiting or all(each.repeats_only for each in appends))
            room = self._room_for(state) if needs_room else None
        except Overloaded as refused:
            self._refuse(call, refused)
            return call
        if room is not None:
            room.add_done_callback(partial(self._hand_over_waiting, state))
        if room is not None or state.waiting:
            state.waiting.append(call)
        else:
            state.claimed_bytes += size
            self._writer.append(call)
        return call

    def _hand_over_waiting(
        self, state: StorageTopicState, rolled: "asyncio.Future[DssError | None]"
    ) -> None:
        """Hand over the waiting calls. On a full disk too: the writer still answers repeats."""
        refused = rolled.result()
        while state.waiting:
            call = state.waiting.popleft()
            if refused is None or isinstance(refused, DiskFull):
                state.claimed_bytes += call.bytes
                self._writer.append(call)
            else:
                self._refuse(call, refused)

    def _refuse(self, call: AppendCall, refused: DssError) -> None:
        self.queued_bytes -= call.bytes
        if not call.answered.done():
            call.answered.set_result([refused for _ in call.appends])

    def _withdraw(self, storage_topic_id: int, call: AppendCall) -> None:
        """Drop a cancelled call that still waits for a file, and free its place in the queue."""
        state = self._topics.get(storage_topic_id)
        if state is not None and call in state.waiting:
            state.waiting.remove(call)
            self.queued_bytes -= call.bytes

    def _room_for(self, state: StorageTopicState) -> "asyncio.Future[DssError | None] | None":
        """The roll that a call has to wait for, if any. Requests the next file early.

        Raises:
            Overloaded: too many files wait to be created.
        """
        last = state.last
        if last is None or not state.writable:
            return self._housekeeper.begin_roll(state)
        if self._is_full(state, last):
            rolled = self._housekeeper.begin_roll(state)
            bytes_hard_max = self._settings.segment_bytes_max * SEGMENT_BYTES_HARD_FACTOR
            if state.claimed_bytes >= bytes_hard_max:
                return rolled
        return None

    def _is_full(self, state: StorageTopicState, last: Segment) -> bool:
        return (
            state.claimed_bytes >= self._settings.segment_bytes_max
            or last.frames >= self._settings.segment_frames_max
        )

    def published(self, batch: Batch) -> Iterator[None]:
        """Make visible what one group commit stored, then answer its callers, step by step."""
        if self._has_failed():
            return
        grown: list[Stream] = []
        for stored in batch.stored:
            state = self._topics.get(stored.segment.storage_topic_id)
            if state is not None:
                grown.append(self._shown(state, stored))
            yield
        self._note_room(batch)
        for file in batch.files:
            self._housekeeper.note_written(self._topics.get(file.segment.storage_topic_id), file)
        for call in batch.calls:
            self.queued_bytes -= call.bytes
            if not call.answered.done() and not self._has_failed():
                call.answered.set_result(call.results)
            yield
        for stream in grown:
            for watcher in tuple(stream.watchers):
                watcher()
            yield

    def _shown(self, state: StorageTopicState, stored: StoredFrames) -> Stream:
        segment = state.segments[stored.segment.segment_id]
        self._housekeeper.index_run(segment, stored)
        stream = state.streams[stored.partition]
        stream.grow(segment, stored.end)
        self._tail.add(stored)
        if stored.may_be_lost:
            self._housekeeper.unsynced.stored(state, stored.partition, stored.end)
        return stream

    def _note_room(self, batch: Batch) -> None:
        if batch.stored:
            self.is_read_only = False
        elif any(isinstance(result, DiskFull) for call in batch.calls for result in call.results):
            self.is_read_only = True
