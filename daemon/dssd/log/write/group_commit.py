"""One group commit: places, writes, syncs and reports the frames of many calls together.

    calls ─▶ place: offsets, stamps, producers
             write: a pwritev a file
             sync:  one fdatasync a file
             enter: runs, ends ─▶ the batch, to be reported

Invariant: the frames that a batch reports are stored as durably as they asked for; a frame that may
be lost and ends above its stream's ceiling is reported only after a sync. If the disk is full or no
descriptor is left, the frames that the batch placed in that file are taken back: offsets,
sequences, answers. Any other disk error is raised, and then nothing of the batch may be reported.
This module must not know the event loop, the store or the index.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter

from dss_core.errors import (
    DiskFull,
    DssError,
    FrameCorrupt,
    StorageTopicSealed,
    StreamNotFound,
    TooManyProducers,
)
from dss_core.frame import HEADER_BYTES, read_header, stamped
from dss_core.frame import Header as FrameHeader
from dssd.log.disk_errors import refusal
from dssd.log.port import Append, Appended
from dssd.log.recent_sequences import FirstAnswer
from dssd.log.segment.run_index import OpenRun, Run
from dssd.log.write.append_descriptors import AppendDescriptors
from dssd.log.writer_messages import (
    AppendCall,
    Batch,
    Pieces,
    Result,
    StoredFrames,
    WriterTopic,
    WrittenFile,
)
from dssd.measuring.latencies import Latencies
from dssd.measuring.limits import LATENCY_BOUNDS_S

PRODUCERS_SWEEP_US = 3_600 * 1_000_000
"""How often producers that are silent for long enough are forgotten."""


@dataclass(slots=True, eq=False)
class _Pending:
    """The frames of one batch for one stream."""

    base: int
    bases: list[int] = field(default_factory=list)
    pieces: Pieces = field(default_factory=list)
    bytes: int = 0
    may_be_lost: bool = False


@dataclass(slots=True, eq=False)
class _PendingFile:
    """The frames of one batch for one storage topic."""

    topic: WriterTopic
    time_us: int
    streams: dict[int, _Pending] = field(default_factory=dict)
    placed: list[tuple[int, bytes, int]] = field(default_factory=list)
    """Partition, producer and sequence of each frame, to take them back."""
    answers: list[tuple[list[Result], int, int]] = field(default_factory=list)
    """Results that depend on the write: their list, their index in it, their partition."""
    wants_sync: bool = False
    size_before: int = 0


class GroupCommit:
    """Carries out one batch after the other. Used by the writer thread alone.

    ``topics`` are the writer's, by storage topic; ``open_files`` opens their files.
    """

    def __init__(
        self,
        topics: Mapping[int, WriterTopic],
        open_files: AppendDescriptors,
        *,
        wall_us: Callable[[], int],
        monotonic_us: Callable[[], int],
        run_bytes_max: int,
    ) -> None:
        self._topics = topics
        self._open_files = open_files
        self._wall_us = wall_us
        self._monotonic_us = monotonic_us
        self._run_bytes_max = run_bytes_max
        self._swept_us = -PRODUCERS_SWEEP_US
        self._now_us = 0
        self.syncs = Latencies(LATENCY_BOUNDS_S)
        """Durations of syncs of files, for the frames of batches."""

    def carry_out(self, calls: list[AppendCall]) -> Batch:
        """Place, write, sync; returns the batch to report.

        Raises:
            OSError: the disk failed. None of the calls may be answered.
        """
        batch = Batch(calls)
        files: dict[int, _PendingFile] = {}
        now_us = self._wall_us()
        self._now_us = self._monotonic_us()
        if self._now_us >= self._swept_us + PRODUCERS_SWEEP_US:
            self._sweep()
        for call in calls:
            results = call.results
            for append in call.appends:
                results.append(self._placed(append, files, now_us, results))
        written = [pending for pending in files.values() if self._write(pending)]
        synced = [pending for pending in written if self._sync(pending)]
        for pending in synced:
            self._enter(pending, batch)
        return batch

    def _placed(
        self,
        append: Append,
        files: dict[int, _PendingFile],
        now_us: int,
        results: list[Result],
    ) -> Result:
        """Give a frame its offsets and add it to its file's part of the batch, or refuse it."""
        topic = self._topics.get(append.stream.storage_topic_id)
        partition = append.stream.partition
        if topic is None or partition >= len(topic.ends):
            return StreamNotFound(stream=append.stream)
        header = read_header(append.frame)
        topic.producers.now_us = self._now_us
        try:
            known = _known(topic, header, append)
        except DssError as refused:
            return refused
        pending = files.get(topic.storage_topic_id)
        if known is not None:
            if pending is not None:
                pending.answers.append((results, len(results), partition))
            return Appended(*known, repeated=True)
        refused_by_state = _refused_by_state(topic, header, append)
        if refused_by_state is not None:
            return refused_by_state
        if pending is None:
            topic.last_us = max(topic.last_us, now_us)
            pending = files[topic.storage_topic_id] = _PendingFile(topic, topic.last_us)
        answer = _place(pending, append, header)
        pending.answers.append((results, len(results), partition))
        return Appended(*answer, repeated=False)

    def _sweep(self) -> None:
        """Forget the producers of all topics that were silent for long enough."""
        self._swept_us = self._now_us
        for topic in list(self._topics.values()):
            topic.producers.forget_silent(self._now_us)

    def _write(self, pending: _PendingFile) -> bool:
        """Write a file's part; False if the disk is full, and the part was taken back."""
        file = pending.topic.file
        assert file is not None
        pending.size_before = file.size
        buffers: Pieces = []
        for stream in pending.streams.values():
            buffers += stream.pieces
        try:
            self._open_files.use(file)
            file.write(buffers, sum(stream.bytes for stream in pending.streams.values()))
        except OSError as error:
            self._take_back(pending, error)
            return False
        return True

    def _sync(self, pending: _PendingFile) -> bool:
        """Sync a file if its frames need it; False if the disk is full."""
        file = pending.topic.file
        assert file is not None
        if pending.wants_sync:
            began_s = perf_counter()
            try:
                file.sync()
            except OSError as error:
                self._take_back(pending, error)
                return False
            self.syncs.note(perf_counter() - began_s)
        return True

    def _take_back(self, pending: _PendingFile, error: OSError) -> None:
        """Refuse a file's part if the disk is full or no descriptor is left.

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
            run = open_run.add(new, stream.pieces, self._run_bytes_max)
            batch.stored.append(
                StoredFrames(
                    topic.file.segment,
                    partition,
                    stream.base,
                    end,
                    pending.time_us,
                    run,
                    stream.bases,
                    stream.pieces,
                    stream.bytes,
                    stream.may_be_lost,
                )
            )
            topic.frames += len(stream.bases)
            position += stream.bytes
        batch.files.append(WrittenFile(topic.file.segment, topic.file.size, pending.wants_sync))


def _known(topic: WriterTopic, header: FrameHeader, append: Append) -> FirstAnswer | None:
    """The first answer of a repeated frame.

    Raises:
        SequenceGap, SequenceTooOld, ProducerForgotten: it is neither one, nor to be stored.
    """
    find = topic.producers.first_answer if append.repeats_only else topic.producers.answer
    return find(append.stream.partition, header.producer_id, header.sequence)


def _refused_by_state(topic: WriterTopic, header: FrameHeader, append: Append) -> DssError | None:
    partition = append.stream.partition
    if topic.sealed or append.repeats_only:
        return StorageTopicSealed(topic=f"id {topic.storage_topic_id}", ordinal="?")
    if header.partition != partition:
        return FrameCorrupt(reason=f"it is for partition {header.partition}, not {partition}")
    refused = _no_room(topic, header, append)
    if refused is not None:
        topic.producers.refused(partition, header.producer_id, header.sequence)
    return refused


def _no_room(topic: WriterTopic, header: FrameHeader, append: Append) -> DssError | None:
    if topic.file is None:
        return DiskFull()
    try:
        topic.producers.make_room(append.stream.partition, header.producer_id, append.owner)
    except TooManyProducers as refused:
        return refused
    return None


def _place(pending: _PendingFile, append: Append, header: FrameHeader) -> FirstAnswer:
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
    stream.pieces += (head, memoryview(append.frame)[HEADER_BYTES:])
    stream.bytes += header.frame_bytes
    topic.ends[partition] = base + header.records
    answer = FirstAnswer(base, header.records, pending.time_us)
    topic.producers.stored(partition, header.producer_id, header.sequence, answer, append.owner)
    pending.placed.append((partition, header.producer_id, header.sequence))
    if append.durability == "os":
        stream.may_be_lost = True
    if append.durability != "os" or topic.ends[partition] > topic.ceilings.get(partition, 0):
        pending.wants_sync = True
    return answer
