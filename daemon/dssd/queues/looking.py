"""Reading the entries of a queue for operators: what they ask of it, and what they choose.

Invariant: a look is bounded in bytes by its budget, and holds the loop no longer than a read does:
records are decoded in a thread. Entries that are done are skipped. Nothing here knows groups.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from dss_core.answers import ErrorCount, KeyCount
from dss_core.decode import decode
from dss_core.ids import StreamId, StreamName
from dss_core.lane import ERROR_HEADER, LANE_HEADER, LaneEntry
from dss_core.progress import Ranges, complement, covers
from dss_core.rows_layout import Headers
from dssd.log.port import Log
from dssd.look_thread import looked
from dssd.machines.queues import QueueState
from dssd.queues.entries import error_of, lane_of

LOOKED_AT_BYTES = 128 << 10
"""The size of one read of a look: some hundred entries, which a thread decodes in a few
milliseconds. That is as long as one thread keeps the interpreter, so the loop gets its turns."""


Found = TypeVar("Found")
Look = Callable[["Lane", bytes, Ranges], Found]
"""Makes a value of frames of a queue, without the records of a mask, in a thread."""


class Budget(Protocol):
    """What may still be read."""

    bytes: int

    @property
    def spent(self) -> bool:
        """Whether nothing more may be read."""


class Lane(NamedTuple):
    """A queue of a stream, to be looked at."""

    topic: str
    """Whose records it holds."""
    level: int
    queue: QueueState


class QueueEntry(NamedTuple):
    """A record in a queue."""

    stream: StreamName
    """Of the record that failed."""
    level: int
    queue: StreamId
    queue_offset: int
    subject: str
    key: bytes | None
    payload: bytes
    headers: Headers
    """The headers, without those of the entry."""
    entered_at_us: int
    error: str
    entry: LaneEntry

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the error, for people; empty: there is no error."""
        return fingerprint_text(self.entry.fingerprint)

    @property
    def error_words(self) -> str:
        """What went wrong, in one line."""
        told = ": ".join(filter(None, (self.entry.error_type, self.error)))
        return told or self.entry.cause

    @property
    def origin(self) -> tuple[int, int]:
        """Storage topic and offset of the record; records of a key sort in their order."""
        return self.entry.origin_ordinal, self.entry.origin_offset

    def is_of(self, stream: StreamName, offset: int) -> bool:
        """Whether it is an entry of this record."""
        return self.stream == stream and self.entry.origin_offset == offset


ErrorCounts = Mapping[tuple[int, str], ErrorCount]
"""By fingerprint, or by cause where there is none."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which entries an operator names; a condition that is empty or None excludes nothing."""

    error: str = ""
    """A fingerprint or the beginning of one; for entries without an error, a cause."""
    key: bytes | None = None
    stream: StreamName | None = None
    offset: int | None = None
    client_id: str = ""
    """The client that had the record last."""
    start_us: int | None = None
    end_us: int | None = None
    """Entries that came to the queue from ``start`` on, and before ``end``."""
    attempt: int = 0
    """Entries that failed at least so often."""

    def may_be_in(self, lane: StreamName, *, ordered: bool) -> bool:
        """Whether queues of that stream may hold some. In an ordered group, entries follow their
        keys to the streams of later storage topics."""
        stream = self.stream
        if stream is None or stream == lane:
            return True
        return ordered and stream.topic == lane.topic and stream.ordinal < lane.ordinal

    def takes(self, found: QueueEntry) -> bool:
        """Whether the choice names the entry."""
        return self.means(found.stream.topic, found.key, found.entry, found.entered_at_us)

    def means(self, topic: str, key: bytes | None, entry: LaneEntry, entered_at_us: int) -> bool:
        """Whether the choice names an entry of a record of that topic."""
        return (
            (not self.error or _is_of_error(entry, self.error))
            and (self.key is None or key == self.key)
            and (self.stream is None or self._is_there(topic, entry))
            and (self.offset is None or entry.origin_offset == self.offset)
            and (not self.client_id or entry.client_id == self.client_id)
            and (self.start_us is None or self.start_us <= entered_at_us)
            and (self.end_us is None or entered_at_us < self.end_us)
            and self.attempt <= entry.attempt
        )

    def _is_there(self, topic: str, entry: LaneEntry) -> bool:
        return self.stream == (topic, entry.origin_ordinal, entry.origin_partition)


ALL = Choice()


def fingerprint_text(fingerprint: int) -> str:
    """The fingerprint of an error, for people; empty: there is no error."""
    return f"{fingerprint:016x}" if fingerprint else ""


def _is_of_error(entry: LaneEntry, error: str) -> bool:
    if entry.fingerprint:
        return fingerprint_text(entry.fingerprint).startswith(error)
    return entry.cause == error


class EntryLook:
    """Looks of one question, which share its budget."""

    def __init__(self, log: Log, budget: Budget, chunk_bytes: int | None = None) -> None:
        self._chunk_bytes = chunk_bytes or LOOKED_AT_BYTES
        self._log = log
        self.budget = budget

    async def entries(
        self, lane: Lane, start: int = 0, key: bytes | None = None
    ) -> AsyncGenerator[tuple[int, list[QueueEntry]], None]:
        """The entries of a queue from an offset on: yields how far was looked, and the entries.

        Where a key is given, other entries may be left out. Ends and raises as `pieces`.
        """
        async with aclosing(self.pieces(lane, entries_in, start, key)) as pieces:
            async for end, found in pieces:
                yield end, found or []

    async def pieces(
        self, lane: Lane, look: Look[Found], start: int = 0, key: bytes | None = None
    ) -> AsyncGenerator[tuple[int, Found | None], None]:
        """A queue from an offset on: yields how far was looked, and the value made of each piece.

        It ends early where the budget is spent.

        Raises:
            LogUnreadable, FrameCorrupt: a read failed.
            StreamNotFound: the topic was removed.
        """
        queue = lane.queue
        at = self.first(queue, start)
        while at is not None and not self.budget.spent:
            chunk = await self._log.read(queue.stream, at, bytes_max=self._chunk_bytes)
            if chunk.next <= at:
                return
            self.budget.bytes -= max(len(chunk.frames), 1)
            found: Found | None = None
            if chunk.frames and (key is None or key in chunk.frames):
                found = await looked(look, lane, chunk.frames, chunk.mask)
            yield chunk.next, found
            at = self.first(queue, chunk.next)

    def first(self, queue: QueueState, start: int) -> int | None:
        """The first offset from ``start`` on that is not done."""
        waiting = self.waiting(queue, start)
        return waiting[0][0] if waiting else None

    def waiting(self, queue: QueueState, start: int = 0) -> Ranges:
        """The entries of the queue that are not done."""
        return waiting_in(self._log, queue, start)


def waiting_in(log: Log, queue: QueueState, start: int = 0) -> Ranges:
    """The entries of a queue that are not done, from an offset on."""
    kept_from, end = log.span(queue.stream)
    floor = max(queue.progress.floor, kept_from, start)
    return complement(queue.progress.ranges, floor, end)


def entries_in(lane: Lane, frames: bytes, mask: Ranges) -> list[QueueEntry]:
    """The entries in the frames that are not done."""
    batch = decode(frames, mask, checksums=False)
    columns = zip(
        batch.offsets,
        batch.subjects,
        batch.keys,
        batch.payloads,
        batch.headers,
        batch.append_times_us,
        strict=True,
    )
    is_done = lane.queue.progress.is_acked
    return [_entry(lane, *row) for row in columns if not is_done(row[0])]


def errors_in(lane: Lane, frames: bytes, mask: Ranges) -> ErrorCounts:
    """Counts those entries by error."""
    batch = decode(frames, mask, checksums=False)
    is_done = lane.queue.progress.is_acked
    counts: dict[tuple[int, str], int] = {}
    oldest_us: dict[tuple[int, str], int] = {}
    newest: dict[tuple[int, str], tuple[LaneEntry, Headers, int]] = {}
    rows = zip(batch.offsets, batch.headers, batch.append_times_us, strict=True)
    for offset, headers, entered_at_us in rows:
        if not is_done(offset):
            entry = lane_of(headers)
            name = entry.fingerprint, "" if entry.fingerprint else entry.cause
            counts[name] = counts.get(name, 0) + 1
            oldest_us.setdefault(name, entered_at_us)
            newest[name] = entry, headers, entered_at_us
    topic = lane.topic
    return {
        name: _error_count(topic, counts[name], oldest_us[name], *newest[name]) for name in counts
    }


def _error_count(
    topic: str,
    count: int,
    oldest_us: int,
    entry: LaneEntry,
    headers: Headers,
    newest_us: int,
) -> ErrorCount:
    return ErrorCount(
        fingerprint_text(entry.fingerprint),
        entry.cause,
        entry.error_type,
        error_of(headers),
        count,
        newest_us,
        oldest_us,
        str(StreamName(topic, entry.origin_ordinal, entry.origin_partition)),
        entry.origin_offset,
    )


def keys_in(error: str, lane: Lane, frames: bytes, mask: Ranges) -> Mapping[bytes | None, KeyCount]:
    """Counts those entries that have an error by key."""
    counts: dict[bytes | None, KeyCount] = {}
    for each in entries_in(lane, frames, mask):
        if error and not _is_of_error(each.entry, error):
            continue
        known = counts.get(each.key)
        found = _key_count(each)
        counts[each.key] = found if known is None else known.with_more(found)
    return counts


def _key_count(found: QueueEntry) -> KeyCount:
    entry, at_us = found.entry, found.entered_at_us
    place = str(found.stream), entry.origin_offset
    error = entry.cause, entry.error_type, found.error, found.fingerprint
    return KeyCount(found.key, 1, at_us, at_us, *place, *error)


def _entry(
    lane: Lane,
    offset: int,
    subject: str,
    key: bytes | None,
    payload: bytes,
    headers: Headers,
    entered_at_us: int,
) -> QueueEntry:
    entry = lane_of(headers)
    if covers(lane.queue.hurried.ranges, offset):
        entry = entry._replace(due_ms=entered_at_us // 1_000)
    return QueueEntry(
        StreamName(lane.topic, entry.origin_ordinal, entry.origin_partition),
        lane.level,
        lane.queue.stream,
        offset,
        subject,
        key,
        payload,
        tuple(each for each in headers if each[0] not in (LANE_HEADER, ERROR_HEADER)),
        entered_at_us,
        error_of(headers),
        entry,
    )
