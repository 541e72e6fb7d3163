"""The one thread that writes frames: its queue, and the orders between two group commits.

    event loop          log-writer                               disk
    append ─┐
    append ─┼─ queue ─▶ one group commit of all that wait  ─────▶ (the next batch gathers)
    append ─┘
            ◀────────── one report answers all
    switch, seal, mark … ─▶ orders, each in its turn

Invariant: offsets, stamps and sequences are assigned in the order of the queue, by this thread
alone, and its reports come in that order too. After a disk error or a programmer's error nothing is
reported any more. If the disk is full or no descriptor is left, frames and orders are refused.
`group_commit` decides about frames; this module must not know store or index.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from dss_core.errors import DiskFailed, DssError, StorageTopicSealed, StreamNotFound
from dssd.log.disk_errors import refusal
from dssd.log.port import Ends
from dssd.log.producer_room import ProducerRoom
from dssd.log.segment.file import SegmentWriter
from dssd.log.sequences import SnapshotPosition
from dssd.log.write.append_descriptors import AppendDescriptors
from dssd.log.write.group_commit import GroupCommit
from dssd.log.write.loop_reports import LoopReports
from dssd.log.writer_messages import (
    AppendCall,
    Batch,
    Closed,
    Marked,
    Switched,
    WriterTopic,
    WrittenFile,
)
from dssd.measuring.latencies import Latencies

WRITER_BATCH_BYTES_MAX = 16 << 20
"""How many bytes one group commit takes: enough to make its sync cheap, few enough for callers that
wait."""

WRITER_BATCH_CALLS_MAX = 2_048
"""How many callers one group commit answers: later ones do not wait for long."""


@dataclass(frozen=True, slots=True)
class Order:
    """Work for the writer thread between two batches; its outcome goes back to the loop."""

    work: Callable[[], object]
    done: "asyncio.Future[object]"


class WriterThread:
    """The writer thread. Public methods are called on the event loop.

    The steps that ``published`` gives for a batch run there too, before later reports of the
    writer. ``failed`` is called by the writer thread as its last act, or on the loop for a step
    that raised.
    """

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        published: Callable[[Batch], Iterator[None]],
        failed: Callable[[BaseException], None],
        wall_us: Callable[[], int],
        monotonic_us: Callable[[], int],
        run_bytes_max: int,
        descriptors_max: int,
    ) -> None:
        self._loop = loop
        self._reports = LoopReports(loop, failed)
        self._published = published
        self._failed = failed
        self._wall_us = wall_us
        self._open_files = AppendDescriptors(descriptors_max)
        self._room = ProducerRoom(monotonic_us())
        self._queue: SimpleQueue[AppendCall | Order | None] = SimpleQueue()
        self._topics: dict[int, WriterTopic] = {}
        self._group_commit = GroupCommit(
            self._topics,
            self._open_files,
            wall_us=wall_us,
            monotonic_us=monotonic_us,
            run_bytes_max=run_bytes_max,
        )
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def syncs(self) -> Latencies:
        """How long syncs took that frames waited for."""
        return self._group_commit.syncs

    @property
    def producers(self) -> int:
        """How many producers are remembered."""
        return self._room.count

    def append(self, call: AppendCall) -> None:
        """Queue frames; the receiver of the batch answers the call."""
        self._queue.put(call)

    def add(self, topic: WriterTopic) -> None:
        """Add a storage topic; appends that are queued later find it."""
        topic.producers.count_in(self._room)
        self._topics[topic.storage_topic_id] = topic

    def forgotten_us(self, storage_topic_id: int) -> int:
        """The newest begin time of forgotten producers of the storage topic; 0: none was
        forgotten."""
        topic = self._topics.get(storage_topic_id)
        return 0 if topic is None else topic.producers.forgotten_us

    async def switch(self, storage_topic_id: int, file: SegmentWriter) -> Switched:
        """Continue in another file, after all frames queued before are durable in the old one.

        Raises:
            DiskFull: they cannot be made durable; the topic continues in the old file.
        """
        outcome = await self._order(lambda: self._switch(storage_topic_id, file))
        assert isinstance(outcome, Switched)
        return outcome

    async def seal(self, storage_topic_id: int) -> Ends:
        """Refuse appends from now on; returns the ends after all frames before are durable.

        Raises:
            DiskFull: it cannot be made durable; appends are still taken.
        """
        outcome = await self._order(lambda: self._seal(storage_topic_id))
        assert isinstance(outcome, Ends)
        return outcome

    def unseal(self, storage_topic_id: int) -> None:
        """Take back a seal: what is queued behind this is appended again."""
        self._queue.put(Order(lambda: self._unseal(storage_topic_id), self._loop.create_future()))

    async def begin_at(self, storage_topic_id: int, begins_us: int) -> None:
        """Give a storage topic without records its first append time; producers begin later."""
        await self._order(lambda: self._begin_at(storage_topic_id, begins_us))

    async def last_snapshot(self, storage_topic_id: int) -> bytes | None:
        """What producers had sent to a sealed storage topic; None where it has no open file."""
        outcome = await self._order(lambda: self._last_snapshot(storage_topic_id))
        assert outcome is None or isinstance(outcome, bytes)
        return outcome

    async def end(self, storage_topic_id: int) -> WrittenFile | None:
        """Close the file of a sealed storage topic for good; None where it has none.

        Raises:
            DiskFull: it cannot be made durable.
        """
        outcome = await self._order(lambda: self._end(storage_topic_id))
        assert outcome is None or isinstance(outcome, WrittenFile)
        return outcome

    async def mark(self, storage_topic_id: int) -> Marked | None:
        """Sync the topic's file and return its state; None if it has no file.

        The open runs end here, so no run reaches over the mark.

        Raises:
            DiskFull: it cannot be made durable.
        """
        outcome = await self._order(lambda: self._mark(storage_topic_id))
        assert outcome is None or isinstance(outcome, Marked)
        return outcome

    async def sync(self, storage_topic_id: int) -> None:
        """Return after all frames queued before are durable.

        Raises:
            DiskFull: they cannot be made durable.
        """
        await self._order(lambda: self._sync(storage_topic_id))

    async def reach(self) -> None:
        """Return once everything queued before is done, which shows that the thread works."""
        await self._order(lambda: None)

    async def stand(self, storage_topic_id: int) -> tuple[list[int], int]:
        """The end of each stream of a topic, and an append time for what comes there next.

        Raises:
            StreamNotFound: the topic was removed.
            StorageTopicSealed: nothing comes there any more.
        """
        outcome = await self._order(lambda: self._stand(storage_topic_id))
        assert isinstance(outcome, tuple)
        ends, time_us = outcome
        return ends, time_us

    async def advance(self, storage_topic_id: int, ends: Mapping[int, int]) -> None:
        """Continue at these ends: the records below them were stored by somebody else, durably."""
        await self._order(lambda: self._advance(storage_topic_id, ends))

    async def raise_ceilings(self, storage_topic_id: int, ceilings: Mapping[int, int]) -> None:
        """Report frames that may be lost without a sync, up to these offsets of their streams.

        The store has these ceilings.
        """
        await self._order(lambda: self._raise_ceilings(storage_topic_id, ceilings))

    async def remove(self, storage_topic_id: int) -> None:
        """Close the file of a storage topic and forget it."""
        await self._order(lambda: self._remove(storage_topic_id))

    async def stop(self) -> dict[int, Closed]:
        """Sync and close all files, end the thread; returns the state of each topic."""
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
                self._report_to_loop(self._published(self._group_commit.carry_out(calls)))
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

    def _report_to_loop(self, report: Iterator[None]) -> None:
        self._loop.call_soon_threadsafe(self._reports.take, report)

    def _switch(self, storage_topic_id: int, file: SegmentWriter) -> Switched:
        topic = self._topics[storage_topic_id]
        left = self._leave(topic)
        topic.file = file
        topic.frames = 0
        # A segment adopted beside this file may carry the present time. The snapshot keeps that
        # time, so that no later frame is stamped earlier once the adopted segment is removed.
        topic.last_us = max(topic.last_us, self._wall_us())
        return Switched(left, _snapshot(topic, SnapshotPosition(*file.segment, file.size)))

    def _stand(self, storage_topic_id: int) -> tuple[list[int], int] | DssError:
        topic = self._topics.get(storage_topic_id)
        if topic is None:
            return StreamNotFound(stream=f"{storage_topic_id}:0")
        if topic.sealed:
            return StorageTopicSealed(topic=f"id {storage_topic_id}", ordinal="?")
        return list(topic.ends), topic.last_us

    def _advance(self, storage_topic_id: int, ends: Mapping[int, int]) -> None:
        topic = self._topics.get(storage_topic_id)
        if topic is not None:
            for partition, end in ends.items():
                assert end >= topic.ends[partition], "offsets are never given twice"
                topic.ends[partition] = end

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

    def _sync(self, storage_topic_id: int) -> None:
        topic = self._topics.get(storage_topic_id)
        if topic is not None and topic.file is not None:
            topic.file.sync()

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
                # The file is ahead of its row: the next start reads it.
                assert topic.file is not None
                self._open_files.close(topic.file)
                continue
            if left is not None:
                snapshot = _snapshot(topic, SnapshotPosition(*left.segment, left.size))
                states[topic.storage_topic_id] = Closed(_marked(topic, left.size), snapshot)
        return states

    def _last_snapshot(self, storage_topic_id: int) -> bytes | None:
        topic = self._topics.get(storage_topic_id)
        if topic is None or topic.file is None or not topic.sealed:
            return None
        return _snapshot(topic, SnapshotPosition(*topic.file.segment, topic.file.size))

    def _end(self, storage_topic_id: int) -> WrittenFile | None:
        topic = self._topics.get(storage_topic_id)
        return self._leave(topic) if topic is not None and topic.sealed else None

    def _seal(self, storage_topic_id: int) -> Ends:
        topic = self._topics[storage_topic_id]
        if topic.file is not None:
            topic.file.sync()
        topic.sealed = True
        return Ends(tuple(topic.ends), max(topic.last_us, self._wall_us()))

    def _unseal(self, storage_topic_id: int) -> None:
        topic = self._topics.get(storage_topic_id)
        if topic is not None:
            topic.sealed = False

    def _begin_at(self, storage_topic_id: int, begins_us: int) -> None:
        topic = self._topics.get(storage_topic_id)
        if topic is not None:
            topic.begin_at(begins_us)

    def _remove(self, storage_topic_id: int) -> None:
        topic = self._topics.pop(storage_topic_id, None)
        if topic is None:
            return
        topic.producers.count_in(ProducerRoom())
        if topic.file is not None:
            self._open_files.close(topic.file)


def _snapshot(topic: WriterTopic, covered: SnapshotPosition) -> bytes:
    topic.producers.newest_us = topic.last_us
    return topic.producers.encode(covered)


def _marked(topic: WriterTopic, size: int) -> Marked:
    changes = topic.producers.take_changes()
    return Marked(size, topic.frames, topic.last_us, changes, tuple(topic.ends))


def _outcome_of(order: Order) -> object:
    """The result of an order, or why it was refused.

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
