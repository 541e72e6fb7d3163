"""The one thread that writes frames: group commit.

    event loop          log-writer                               disk
    append ─┐
    append ─┼─ queue ─▶ place: offsets, stamps, producers
    append ─┘           write: a pwritev a file  ───────────────▶
                        sync:  one fdatasync a file  ───────────▶ (the next batch gathers)
            ◀────────── one report answers all

Invariant: nothing is reported to the event loop before it is as durable as it was asked to be; of
frames that may be lost, none that ends above its stream's ceiling before it is synced. Offsets,
stamps and sequences are given in the order of the queue, by this thread alone. After a disk error
nothing is reported any more, nor after a programmer's error. Want of room or of descriptors
refuses. This thread knows neither store nor index.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from dss_core.errors import (
    DiskFailed,
    DiskFull,
    DssError,
    FrameCorrupt,
    Overloaded,
    StorageTopicSealed,
    StreamNotFound,
)
from dss_core.frame import HEADER_BYTES, read_header, stamped
from dss_core.frame import Header as FrameHeader
from dssd.limits import (
    PRODUCERS_SWEEP_MIN_US,
    PRODUCERS_SWEEP_US,
    WRITER_BATCH_BYTES_MAX,
    WRITER_BATCH_CALLS_MAX,
)
from dssd.log.batch import (
    AppendCall,
    Batch,
    Closed,
    FrameParts,
    Marked,
    Result,
    StoredFrames,
    Switched,
    WriterTopic,
    WrittenFile,
)
from dssd.log.disk_errors import refusal
from dssd.log.index import OpenRun, Run
from dssd.log.open_files import OpenFiles
from dssd.log.port import Append, Appended
from dssd.log.producers import Answer, Covered, Followed, forgotten_before
from dssd.log.reporting import Reports
from dssd.log.segment_file import SegmentWriter


@dataclass(frozen=True, slots=True)
class Order:
    """Work for the writer thread between two batches; its outcome goes back to the loop."""

    work: Callable[[], object]
    done: "asyncio.Future[object]"


@dataclass(slots=True, eq=False)
class _Pending:
    """The frames of one batch for one stream."""

    base: int
    bases: list[int] = field(default_factory=list)
    frames: list[FrameParts] = field(default_factory=list)
    bytes: int = 0
    may_be_lost: bool = False


@dataclass(slots=True, eq=False)
class _PendingFile:
    """The frames of one batch for one storage topic."""

    topic: WriterTopic
    time_us: int
    streams: dict[int, _Pending] = field(default_factory=dict)
    placed: list[tuple[int, bytes, int]] = field(default_factory=list)
    """Partition, producer, sequence of each frame, to take them back."""
    answers: list[tuple[list[Result], int, int]] = field(default_factory=list)
    """Results that hold only if the file takes the frames, each with its partition."""
    wants_sync: bool = False
    size_before: int = 0


class LogWriter:
    """The writer thread. Public methods are called on the event loop.

    What ``published`` gives for a batch is done there too, step by step, before whatever the
    writer reports after it. ``failed`` is called in the writer thread, whose last act it is, or
    by a step that raised.
    """

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        published: Callable[[Batch], Iterator[None]],
        failed: Callable[[BaseException], None],
        wall_us: Callable[[], int],
        run_bytes_max: int,
        descriptors_max: int,
    ) -> None:
        self._loop = loop
        self._reports = Reports(loop, failed)
        self._published = published
        self._failed = failed
        self._wall_us = wall_us
        self._run_bytes_max = run_bytes_max
        self._open_files = OpenFiles(descriptors_max)
        self._followed = Followed()
        self._swept_us = -PRODUCERS_SWEEP_US
        self._queue: SimpleQueue[AppendCall | Order | None] = SimpleQueue()
        self._topics: dict[int, WriterTopic] = {}
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def append(self, call: AppendCall) -> None:
        """Hand frames over; the future of the call is resolved by whoever gets the batch."""
        self._queue.put(call)

    def add(self, topic: WriterTopic) -> None:
        """Make a storage topic known; appends handed over later find it."""
        topic.producers.count_in(self._followed)
        self._topics[topic.storage_topic_id] = topic

    async def switch(self, storage_topic_id: int, file: SegmentWriter) -> Switched:
        """Go on in another file, once what was handed over before is durable in the old one.

        Raises:
            DiskFull: it cannot be made durable; the topic goes on in the old file.
        """
        outcome = await self._order(lambda: self._switch(storage_topic_id, file))
        assert isinstance(outcome, Switched)
        return outcome

    async def seal(self, storage_topic_id: int) -> list[int]:
        """Refuse appends from here on; returns the ends once all before is durable.

        Raises:
            DiskFull: it cannot be made durable; appends are still taken.
        """
        outcome = await self._order(lambda: self._seal(storage_topic_id))
        assert isinstance(outcome, list)
        return outcome

    async def mark(self, storage_topic_id: int) -> Marked | None:
        """How far the topic's file is durable, all of it; None where there is none.

        Runs end there: those in the part of the file behind what was marked before are new.

        Raises:
            DiskFull: it cannot be made durable.
        """
        outcome = await self._order(lambda: self._mark(storage_topic_id))
        assert outcome is None or isinstance(outcome, Marked)
        return outcome

    async def raise_ceilings(self, storage_topic_id: int, ceilings: Mapping[int, int]) -> None:
        """Report frames that may be lost without a sync, up to these offsets of their streams.

        The store has these ceilings.
        """
        await self._order(lambda: self._raise_ceilings(storage_topic_id, ceilings))

    async def remove(self, storage_topic_id: int) -> None:
        """Close the file of a storage topic and forget it."""
        await self._order(lambda: self._remove(storage_topic_id))

    async def stop(self) -> dict[int, Closed]:
        """Make all durable, close all files, end the thread; returns the state of each topic."""
        outcome = await self._order(self._leave_all)
        self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        assert isinstance(outcome, dict)
        return outcome

    async def _order(self, work: Callable[[], object]) -> object:
        done: asyncio.Future[object] = self._loop.create_future()
        self._queue.put(Order(work, done))
        return await done

    # From here on: the writer thread.

    def _run(self) -> None:
        try:
            self._work()
        except OSError as error:
            self._failed(DiskFailed(reason=f"{error.strerror} while writing the log"))
        except Exception as error:  # noqa: BLE001 - the thread's last frame: it ends the process
            self._failed(error)

    def _work(self) -> None:
        while True:
            calls, order, stop = self._gather()
            if calls:
                self._commit(calls)
            if order is not None:
                self._report_to_loop(_resolve(order.done, _outcome_of(order)))
            if stop:
                return

    def _gather(self) -> tuple[list[AppendCall], Order | None, bool]:
        """All calls that wait, up to an order or a limit; waits for the first."""
        calls: list[AppendCall] = []
        size = 0
        item = self._queue.get()
        while True:
            if item is None:
                return calls, None, True
            if isinstance(item, Order):
                return calls, item, False
            calls.append(item)
            size += item.bytes
            if size >= WRITER_BATCH_BYTES_MAX or len(calls) >= WRITER_BATCH_CALLS_MAX:
                return calls, None, False
            try:
                item = self._queue.get_nowait()
            except Empty:
                return calls, None, False

    def _commit(self, calls: list[AppendCall]) -> None:
        """One group commit: place, write, sync, report."""
        batch = Batch(calls)
        files: dict[int, _PendingFile] = {}
        now_us = self._wall_us()
        if now_us >= self._swept_us + PRODUCERS_SWEEP_US:
            self._sweep(now_us)
        for call in calls:
            results = call.results
            for append in call.appends:
                results.append(self._placed(append, files, now_us, results))
        written = [pending for pending in files.values() if self._write(pending)]
        synced = [pending for pending in written if self._sync(pending)]
        for pending in synced:
            self._enter(pending, batch)
        self._report_to_loop(self._published(batch))

    def _report_to_loop(self, report: Iterator[None]) -> None:
        self._loop.call_soon_threadsafe(self._reports.take, report)

    def _placed(
        self,
        append: Append,
        files: dict[int, _PendingFile],
        now_us: int,
        results: list[Result],
    ) -> Result:
        """Give a frame its offsets, or say why not; it joins its file's part of the batch."""
        topic = self._topics.get(append.stream.storage_topic_id)
        partition = append.stream.partition
        if topic is None or partition >= len(topic.ends):
            return StreamNotFound(stream=append.stream)
        header = read_header(append.frame)
        try:
            known = self._known(topic, header, partition, now_us)
        except DssError as refused:
            return refused
        pending = files.get(topic.storage_topic_id)
        if known is not None:
            if pending is not None:
                pending.answers.append((results, len(results), partition))
            return Appended(*known, repeated=True)
        refused_by_state = _refused_by_state(topic, header, partition)
        if refused_by_state is not None:
            return refused_by_state
        if pending is None:
            topic.last_us = max(topic.last_us, now_us)
            pending = files[topic.storage_topic_id] = _PendingFile(topic, topic.last_us)
        answer = _place(pending, append, header)
        pending.answers.append((results, len(results), partition))
        return Appended(*answer, repeated=False)

    def _known(
        self, topic: WriterTopic, header: FrameHeader, partition: int, now_us: int
    ) -> Answer | None:
        """The first answer of a frame that is a repeat; room is made for a new producer."""
        try:
            return topic.producers.answer(partition, header.producer_id, header.sequence)
        except Overloaded:
            if now_us < self._swept_us + PRODUCERS_SWEEP_MIN_US:
                raise
            self._sweep(now_us)
        return topic.producers.answer(partition, header.producer_id, header.sequence)

    def _sweep(self, now_us: int) -> None:
        """Forget the producers that were silent for long enough, of all topics."""
        self._swept_us = now_us
        for topic in list(self._topics.values()):
            topic.producers.forget_before(forgotten_before(now_us))

    def _write(self, pending: _PendingFile) -> bool:
        """Write a file's part; False if the disk is full, and the part was taken back."""
        file = pending.topic.file
        assert file is not None
        pending.size_before = file.size
        buffers: list[bytes | memoryview] = []
        for stream in pending.streams.values():
            for parts in stream.frames:
                buffers += parts
        try:
            self._open_files.use(file)
            file.write(buffers, sum(stream.bytes for stream in pending.streams.values()))
        except OSError as error:
            self._take_back(pending, error)
            return False
        return True

    def _sync(self, pending: _PendingFile) -> bool:
        """Sync a file if its frames want it; False if the disk is full."""
        file = pending.topic.file
        assert file is not None
        if pending.wants_sync:
            try:
                file.sync()
            except OSError as error:
                self._take_back(pending, error)
                return False
        return True

    def _take_back(self, pending: _PendingFile, error: OSError) -> None:
        """Refuse a file's part for want of space or of descriptors; any other error passes on.

        Raises:
            OSError: another error, or the file could not be cut back.
        """
        refused = refusal(error)
        if refused is None:
            raise error
        topic = pending.topic
        assert topic.file is not None
        topic.file.cut_back(pending.size_before)
        for partition, stream in pending.streams.items():
            topic.ends[partition] = stream.base
        for placed in reversed(pending.placed):
            topic.producers.taken_back(*placed)
        for results, number, partition in pending.answers:
            result = results[number]
            stream_part = pending.streams.get(partition)
            if stream_part is None or not isinstance(result, Appended):
                continue
            if result.base_offset >= stream_part.base:
                results[number] = refused

    def _enter(self, pending: _PendingFile, batch: Batch) -> None:
        topic = pending.topic
        assert topic.file is not None
        position = pending.size_before
        for partition, stream in pending.streams.items():
            end = topic.ends[partition]
            new = Run(stream.base, end, position, stream.bytes, pending.time_us, 0)
            open_run = topic.open_runs.setdefault(partition, OpenRun())
            pieces = (piece for parts in stream.frames for piece in parts)
            run = open_run.add(new, pieces, self._run_bytes_max)
            batch.stored.append(
                StoredFrames(
                    topic.file.segment,
                    partition,
                    stream.base,
                    end,
                    pending.time_us,
                    run,
                    stream.bases,
                    stream.frames,
                    stream.bytes,
                    stream.may_be_lost,
                )
            )
            topic.frames += len(stream.frames)
            position += stream.bytes
        batch.files.append(WrittenFile(topic.file.segment, topic.file.size, pending.wants_sync))

    def _switch(self, storage_topic_id: int, file: SegmentWriter) -> Switched:
        topic = self._topics[storage_topic_id]
        left = self._leave(topic)
        topic.file = file
        topic.frames = 0
        return Switched(left, topic.producers.encode(Covered(*file.segment, file.size)))

    def _raise_ceilings(self, storage_topic_id: int, ceilings: Mapping[int, int]) -> None:
        topic = self._topics.get(storage_topic_id)
        if topic is not None:
            topic.ceilings.update(ceilings)

    def _mark(self, storage_topic_id: int) -> Marked | None:
        topic = self._topics.get(storage_topic_id)
        if topic is None or topic.file is None:
            return None
        topic.file.sync()
        topic.open_runs.clear()
        return _marked(topic, topic.file.size)

    def _leave(self, topic: WriterTopic) -> WrittenFile | None:
        """Close a topic's file with all in it durable."""
        file = topic.file
        if file is None:
            return None
        file.sync()
        topic.file = None
        topic.open_runs.clear()
        self._open_files.close(file)
        return WrittenFile(file.segment, file.size, synced=True)

    def _leave_all(self) -> dict[int, Closed]:
        states: dict[int, Closed] = {}
        for topic in self._topics.values():
            try:
                left = self._leave(topic)
            except OSError as error:
                if refusal(error) is None:
                    raise
                # The next start finds its row behind its file, and reads it.
                assert topic.file is not None
                self._open_files.close(topic.file)
                continue
            if left is not None:
                snapshot = topic.producers.encode(Covered(*left.segment, left.size))
                states[topic.storage_topic_id] = Closed(_marked(topic, left.size), snapshot)
        return states

    def _seal(self, storage_topic_id: int) -> list[int]:
        topic = self._topics[storage_topic_id]
        if topic.file is not None:
            topic.file.sync()
        topic.sealed = True
        return list(topic.ends)

    def _remove(self, storage_topic_id: int) -> None:
        topic = self._topics.pop(storage_topic_id, None)
        if topic is None:
            return
        topic.producers.count_in(Followed())
        if topic.file is not None:
            self._open_files.close(topic.file)


def _refused_by_state(topic: WriterTopic, header: FrameHeader, partition: int) -> DssError | None:
    if topic.sealed:
        return StorageTopicSealed(topic=f"id {topic.storage_topic_id}", ordinal="?")
    if header.partition != partition:
        return FrameCorrupt(reason=f"it is for partition {header.partition}, not {partition}")
    if topic.file is None:
        return DiskFull()
    return None


def _place(pending: _PendingFile, append: Append, header: FrameHeader) -> Answer:
    """Give a frame the next offsets of its stream."""
    topic = pending.topic
    partition = header.partition
    base = topic.ends[partition]
    stream = pending.streams.get(partition)
    if stream is None:
        stream = pending.streams[partition] = _Pending(base)
    head = stamped(
        append.frame,
        base_offset=base,
        append_time_us=pending.time_us,
        topic_epoch=append.topic_epoch,
        storage_topic_id=topic.storage_topic_id,
    )
    stream.bases.append(base)
    stream.frames.append((head, memoryview(append.frame)[HEADER_BYTES:]))
    stream.bytes += header.frame_bytes
    topic.ends[partition] = base + header.records
    answer = Answer(base, header.records, pending.time_us)
    topic.producers.stored(partition, header.producer_id, header.sequence, answer)
    pending.placed.append((partition, header.producer_id, header.sequence))
    if append.durability == "os":
        stream.may_be_lost = True
    if append.durability != "os" or topic.ends[partition] > topic.ceilings.get(partition, 0):
        pending.wants_sync = True
    return answer


def _marked(topic: WriterTopic, size: int) -> Marked:
    changes = topic.producers.take_changes()
    return Marked(size, topic.frames, topic.last_us, changes, tuple(topic.ends))


def _outcome_of(order: Order) -> object:
    """What an order gives, or why it was refused.

    Raises:
        OSError: the disk failed.
    """
    try:
        return order.work()
    except OSError as error:
        refused = refusal(error)
        if refused is None:
            raise
        return refused


def _resolve(done: "asyncio.Future[object]", outcome: object) -> Iterator[None]:
    if isinstance(outcome, DssError) and not done.done():
        done.set_exception(outcome)
    elif not done.done():
        done.set_result(outcome)
    yield
