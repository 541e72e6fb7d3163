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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter

from dss_core.errors import DiskFull, DssError, Overloaded
from dss_core.ids import StreamId
from dssd.log.port import Answered, Append, Appended
from dssd.log.read.tail_cache import TailCache
from dssd.log.settings import LogSettings
from dssd.log.topic_state import Segment, StorageTopicState, Stream
from dssd.log.upkeep.housekeeper import Housekeeper
from dssd.log.write.writer_thread import WriterThread
from dssd.log.writer_messages import AppendCall, Batch, Result, StoredFrames
from dssd.measuring.latencies import Latencies
from dssd.measuring.limits import LATENCY_BOUNDS_S

SEGMENT_BYTES_HARD_FACTOR = 2
"""How far over its bound a file may grow while its successor is being made."""


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
        self.latencies = Latencies(LATENCY_BOUNDS_S)
        """Latencies of calls, until their answer."""
        self.stored_frames = 0
        self.stored_records = 0
        self.stored_bytes = 0

    async def append(self, appends: Sequence[Append]) -> list[Appended | BaseException]:
        """One result or error per frame, in order. A cancelled call may have stored its frames."""
        done: asyncio.Future[list[Result]] = asyncio.get_running_loop().create_future()
        calls = self.begin(appends, partial(_resolve, done))
        try:
            return await done
        except asyncio.CancelledError:
            for call in calls:
                self._withdraw(call)
            raise

    def begin(self, appends: Sequence[Append], answered: Answered) -> Sequence[AppendCall]:
        """As `append`, answered by a callback, perhaps before this returns; returns the calls
        made."""
        size = sum([len(append.frame) for append in appends])
        limit = self._settings.writer_queue_bytes_max
        if self.queued_bytes and self.queued_bytes + size > limit:
            answered([Overloaded(what="The log's queue in bytes", limit=limit) for _ in appends])
            return ()
        numbers = {append.stream.storage_topic_id for append in appends}
        if len(numbers) == 1:
            call = AppendCall(appends, size, answered)
            self._hand_over(call)
            return (call,)
        return self._begin_several(appends, numbers, answered)

    def _begin_several(
        self, appends: Sequence[Append], numbers: Collection[int], answered: Answered
    ) -> Sequence[AppendCall]:
        """Hand over frames of several storage topics, a call each, and answer once all have."""
        answers: dict[int, list[Result]] = {}

        def answered_in(number: int, results: list[Result]) -> None:
            answers[number] = results
            if len(answers) == len(numbers):
                each = {number: iter(results) for number, results in answers.items()}
                answered([next(each[append.stream.storage_topic_id]) for append in appends])

        calls: list[AppendCall] = []
        for number in numbers:
            part = [each for each in appends if each.stream.storage_topic_id == number]
            size = sum([len(append.frame) for append in part])
            calls.append(AppendCall(part, size, partial(answered_in, number)))
        if not calls:
            answered([])
        for call in calls:
            self._hand_over(call)
        return calls

    def _hand_over(self, call: AppendCall) -> None:
        """Give frames to the writer, or let them wait until their topic has a file with room."""
        call.began_s = perf_counter()
        self.queued_bytes += call.bytes
        state = self._topics.get(call.storage_topic_id)
        if state is None:
            self._writer.append(call)
            return
        try:
            # Repeats need no room, but must not overtake the frames that they may repeat.
            repeats = all(each.repeats_only for each in call.appends)
            needs_room = not (state.waiting or state.sealed or repeats)
            room = self._room_for(state) if needs_room and not state.held else None
        except Overloaded as refused:
            self._refuse(call, refused)
            return
        if room is not None:
            room.add_done_callback(partial(self._hand_over_waiting, state))
        if room is not None or state.waiting or state.held:
            state.waiting.append(call)
        else:
            state.claimed_bytes += call.bytes
            self._writer.append(call)

    def _hand_over_waiting(
        self, state: StorageTopicState, rolled: "asyncio.Future[DssError | None]"
    ) -> None:
        """Hand over the waiting calls. On a full disk too: the writer still answers repeats."""
        if not state.held:
            self._empty_waiting(state, rolled.result())

    def hold(self, state: StorageTopicState) -> None:
        """Let all later calls for a topic wait; the writer has the earlier ones."""
        state.held = True

    def release(self, state: StorageTopicState, *, sealed: bool = False) -> None:
        """Hand over the calls that were held, once there is a file for them; or for a refusal."""
        state.held = False
        if sealed:
            self._empty_waiting(state, None)
        if not state.waiting:
            return
        try:
            room = self._room_for(state)
        except Overloaded as refused:
            self._empty_waiting(state, refused)
            return
        if room is None:
            self._empty_waiting(state, None)
        else:
            room.add_done_callback(partial(self._hand_over_waiting, state))

    def _empty_waiting(self, state: StorageTopicState, refused: DssError | None) -> None:
        while state.waiting:
            call = state.waiting.popleft()
            if refused is None or isinstance(refused, DiskFull):
                state.claimed_bytes += call.bytes
                self._writer.append(call)
            else:
                self._refuse(call, refused)

    def _refuse(self, call: AppendCall, refused: DssError) -> None:
        self.queued_bytes -= call.bytes
        call.answered([refused for _ in call.appends])

    def _withdraw(self, call: AppendCall) -> None:
        """Drop a cancelled call that still waits for a file, and free its place in the queue."""
        state = self._topics.get(call.storage_topic_id)
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
            if not self._has_failed():
                call.answered(call.results)
                self.latencies.note(perf_counter() - call.began_s)
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
        self.stored_frames += len(stored.bases)
        self.stored_records += stored.end - stored.base
        self.stored_bytes += stored.bytes
        if stored.may_be_lost:
            self._housekeeper.unsynced.stored(state, stored.partition, stored.end)
        return stream

    def show_adopted(self, state: StorageTopicState, segment: Segment) -> None:
        """Make visible a segment whose frames all came at once."""
        state.adopt(segment)
        for partition in segment.partitions():
            # What it holds of the stream would have a hole.
            self._tail.forget(StreamId(state.storage_topic_id, partition))
            for watcher in tuple(state.streams[partition].watchers):
                watcher()

    def _note_room(self, batch: Batch) -> None:
        if batch.stored:
            self.is_read_only = False
        elif any(isinstance(result, DiskFull) for call in batch.calls for result in call.results):
            self.is_read_only = True


def _resolve(done: "asyncio.Future[list[Result]]", results: list[Result]) -> None:
    if not done.done():
        done.set_result(results)
