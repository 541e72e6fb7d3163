"""What the daemon asks of its log.

A stream is named by `dss_core.ids.StreamId`. Positions inside it are offsets, which strictly
increase. Here they are also dense, except for gaps that a start leaves, but callers must not rely
on that (`Log.count` says how many records lie between two offsets). Every call but `append`,
`read`, `locate` and `close` answers from memory and never blocks.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.progress import Range, Ranges
from dssd.log.producer_room import NOBODY
from dssd.log.segment.run_index import Run
from dssd.store.port import Precondition, Write

Answered = Callable[[list["Appended | BaseException"]], None]
"""Called on the event loop with one result or error per frame, in order."""

AboutToGo = Callable[[Mapping[StreamId, Range]], Awaitable[None]]
"""Called with the offsets, by stream, that retention will delete, before it deletes the first."""

AskFloors = Callable[[], Awaitable[Sequence[int]]]
"""Gives, by partition, the offset below which no record is needed any more."""

Frames = Callable[[], Iterable[Sequence[bytes | memoryview]]]
"""Yields unstamped frames that passed `dss_core.frame.verify`, some at a time; each batch is valid
until the next one. Called in a thread."""

Rest = Callable[[int], Awaitable[None]]
"""Awaited after each small copied piece, with its bytes; it may rest. Without it the copy runs at
the speed of the disk."""


@dataclass(frozen=True, slots=True)
class Append:
    """One frame for one stream. The frame is as a producer built it, not stamped yet."""

    stream: StreamId
    frame: bytes
    topic_epoch: int
    """Stamped into the frame; the caller has checked it against the topic."""
    durability: str = "sync"
    """``sync`` or ``os``, as the topic says."""
    repeats_only: bool = False
    """Only answer it if it was stored before; otherwise refuse it, as if the storage topic were
    sealed."""
    owner: int = NOBODY
    """The owner of its producer (`producer_room.owner_of`)."""


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a frame was stored, as durably as it asked for."""

    base_offset: int
    records: int
    append_time_us: int
    repeated: bool
    """Whether the producer had sent this sequence before: then this is its first answer again."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a stream holds."""

    start: int
    """The first kept offset."""
    end: int
    """The next offset."""
    bytes: int


class Ends(NamedTuple):
    """The final ends of a storage topic."""

    offsets: tuple[int, ...]
    """By partition."""
    last_us: int
    """When it was sealed, by the wall clock; no record of it was appended later."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive frames of a stream."""

    frames: bytes
    """Stamped frames, end to end; empty where nothing matched or nothing is there yet."""
    mask: Ranges
    """Offsets inside the frames that are not part of the answer: below the asked offset, or
    rejected by the filter."""
    records: int
    """Records in the frames, masked ones included."""
    base: int
    """The offset of the frames' first record; equals next where there are none."""
    next: int
    """Where to read on. Offsets from the asked one up to next that the frames do not hold were
    skipped: rejected by the filter, lost to retention or a loss of power, or damaged."""
    damaged: Ranges
    """The skipped offsets that are confirmed unreadable: read anew, their checksum was wrong, or
    there is nothing to read. A read that fails raises instead."""
    lost: Ranges = ()
    """The skipped offsets that retention or a loss of power took."""
    at_end: bool = False
    """Whether the stream had no more records when it was read."""


class Expiring(NamedTuple):
    """The records that a retention run would remove."""

    ranges: dict[StreamId, Range]
    """The offsets, by stream."""
    bytes: int
    """Bytes of whole files."""
    held_bytes: int = 0
    """Segments that stay for now, because a holder needs records in them."""


@dataclass(frozen=True, slots=True)
class FileRuns:
    """Runs of one file, in their order, without a missing offset."""

    path: Path
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Adopted:
    """Where frames were stored that came all at once."""

    ranges: Mapping[int, Range]
    """By partition: the offsets that their records have."""
    append_time_us: int
    frames: int
    records: int
    bytes: int


class Publication(NamedTuple):
    """What is committed together with frames that are adopted, and on which conditions."""

    writes: Sequence[Write] = ()
    preconditions: Sequence[Precondition] = ()


Publish = Callable[[Adopted], Publication]
"""Called with the offsets of the frames, just before they become visible."""


class Log(Protocol):
    """The port. Adapter: embedded segments."""

    def open_storage_topic(self, storage_topic_id: int, partitions: int) -> None:
        """Make the streams of a new storage topic appendable."""

    async def append(self, appends: Sequence[Append]) -> list[Appended | BaseException]:
        """Append frames, each on its own: one result or error per frame, in order.

        The frames have passed `dss_core.frame.verify`. Idempotence: a repeated (producer,
        sequence) of a stream gets its first answer, checked before everything else. Errors:
        SequenceGap, SequenceTooOld, ProducerForgotten, TooManyProducers, StorageTopicSealed,
        DiskFull, Overloaded. A disk error stops the daemon; then no call returns.
        """

    def begin_append(self, appends: Sequence[Append], answered: Answered) -> None:
        """As `append`, answered by a callback, perhaps before this returns; it cannot be
        cancelled."""

    def producers_begin_us(self, storage_topic_id: int) -> int:
        """A begin time for the ids of new producers: later than that of any forgotten producer."""

    async def read(
        self, stream: StreamId, offset: int, *, bytes_max: int, matching: TopicFilter | None = None
    ) -> Chunk:
        """Frames from the one that holds the offset on, at least one if there is any.

        Raises:
            StreamNotFound: the storage topic was removed.
        """

    def read_in_memory(
        self, stream: StreamId, offset: int, *, bytes_max: int, matching: TopicFilter | None = None
    ) -> Chunk | None:
        """What `read` would answer, if that needs no file; else None.

        Raises:
            StreamNotFound: the storage topic was removed.
        """

    def bounds(self, stream: StreamId) -> Bounds:
        """Start, end and bytes of a stream, now."""

    def span(self, stream: StreamId) -> Range:
        """Start and end of a stream, now: what costs less than all bounds."""

    async def locate(self, stream: StreamId, time_us: int) -> int:
        """The first offset whose append time is at or after the time; the end if none is."""

    async def time_at(self, stream: StreamId, offset: int) -> int | None:
        """The append time of the record at the offset, or None where it is not stored."""

    def count(self, stream: StreamId, start: int, end: int) -> tuple[int, bool]:
        """How many records lie in ``[start, end)``, and whether that is exact."""

    def watch(self, stream: StreamId, grown: Callable[[], None]) -> Callable[[], None]:
        """Call ``grown`` on the event loop after each growth; returns how to stop watching."""

    async def trim(self, stream: StreamId, offset: int) -> None:
        """Delete the records below the offset. A file goes once it holds no other records."""

    async def remove_storage_topic(self, storage_topic_id: int) -> None:
        """Delete its files and rows."""

    async def close(self) -> None:
        """Sync, store the watermarks, close the files."""


class BulkLog(Log, Protocol):
    """Further methods for bulk jobs."""

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

        They get the next offsets of their streams in their order, and become visible with the
        commit of the writes of ``publish``. They have no producer, so the commit itself must detect
        a repetition. Appends to the storage topic wait during the last steps.

        Raises:
            StreamNotFound, StorageTopicSealed, DiskFull, Overloaded, FrameTooLarge: nothing was
                stored.
            PreconditionFailed: nothing was stored, for a condition of ``publish`` did not hold.
            Exception: what ``frames`` raised; nothing was stored.
        """

    async def hold(self, holder: int, ranges: Mapping[StreamId, Range]) -> list[Write]:
        """Keep these records from retention and trims; returns what makes that durable.

        It holds from now on; it holds over a restart once the writes are committed.

        Raises:
            OffsetOutOfRange, StreamNotFound: a part of them is not kept; nothing is held.
        """

    def release(self, holder: int) -> list[Write]:
        """The writes that end the holds of a holder in the store; `released` then ends them in
        memory."""

    def released(self, holder: int) -> None:
        """End its holds in memory: the writes of `release` are committed, or there were none."""

    def holders(self, storage_topic_id: int) -> set[int]:
        """Who holds records of a storage topic."""

    async def run_places(
        self, stream: StreamId, start: int, end: int, *, runs_max: int
    ) -> list[FileRuns]:
        """Locate the runs of a range in files; fewer than all if there are many, or one is missing.

        Raises:
            StreamNotFound: the storage topic was removed.
        """
