"""The records that consumers get, one by one, and batches of them, as columns.

A record is made once per message, so it holds its own facts as plain fields and shares the rest
(stream, attempt, the grant that an ack goes to) with its neighbours through its source.
Invariant: fields of a record never change; only what its grant knows of it does.
"""

from collections.abc import Awaitable, Coroutine, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

from dss_client._done import DONE
from dss_client._failure import Error, Failure, failure_of
from dss_core.lane import MAIN

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from dss_client._acks import Acks
    from dss_client._grant import HeldGrant
    from dss_core.decode import DecodedBatch, Row
    from dss_core.progress import Ranges
    from dss_core.shards import Shard

HeaderPairs = tuple[tuple[str, bytes], ...]

Kind = TypeVar("Kind", bound="Record")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(time_us: int) -> datetime:
    """Microseconds since 1970 as a date in UTC."""
    return _EPOCH + timedelta(microseconds=time_us)


class Source(Protocol):
    """What the records of one piece of a stream share."""

    @property
    def stream(self) -> str:
        """The stream, as TOPIC/ORDINAL/PARTITION."""


class DeliveredSource(Source, Protocol):
    """What a delivered record shares with the others that came with it."""

    grant: "HeldGrant"
    redelivered_below: int
    """Records below this offset may have been seen before."""
    attempt: int
    acks: "Acks"
    """Where an ack leaves its offset."""
    ranges: "Ranges"
    """The offsets that are for the user."""

    def note(self, end: int) -> None:
        """Note that the records below the offset are handed out."""


class Record:
    """One message of a stream. Built by `made`."""

    __slots__ = ("_at", "_source", "headers", "key", "payload", "subject", "timestamp_us")

    _source: Source
    _at: int
    """The offset by which its grant knows it."""
    subject: str
    key: bytes | None
    """None where absent, which is not empty."""
    payload: bytes
    headers: HeaderPairs
    """Pairs of name and value, in order, repeats kept."""
    timestamp_us: int
    """The producer's time, microseconds since 1970."""

    if TYPE_CHECKING:

        @property
        def offset(self) -> int:
            """Its place in the stream."""

    @property
    def stream(self) -> str:
        """The stream, as TOPIC/ORDINAL/PARTITION."""
        return self._source.stream

    @property
    def timestamp(self) -> datetime:
        """The producer's time."""
        return moment(self.timestamp_us)

    def header(self, name: str) -> bytes | None:
        """The first header of the name."""
        return next((value for key, value in self.headers if key == name), None)

    def __repr__(self) -> str:
        """For people."""
        return f"<{type(self).__name__} {self.stream}@{self.offset} {self.subject!r}>"


# The same slot by its public name, without the call of a property.
Record.offset = Record._at  # type: ignore[method-assign,assignment,misc]


class HandedOutRecord(Record):
    """A record that a subscription handed out, whichever way it is acknowledged."""

    __slots__ = ()
    _source: DeliveredSource

    @property
    def redelivered(self) -> bool:
        """Whether it was perhaps seen before; never wrongly false."""
        return self._at < self._source.redelivered_below

    @property
    def attempt(self) -> int:
        """How often it is known to have been handed out, this time included."""
        return self._source.attempt

    @property
    def level(self) -> int:
        """0: from its stream; 1: from the retry queue of its group, after a failure."""
        return MAIN

    @property
    def last_error(self) -> str | None:
        """The error of the last attempt; None for the first attempt."""
        return None

    @property
    def last_error_type(self) -> str | None:
        """The type of that error, such as the name of an exception."""
        return None

    @property
    def grant_number(self) -> int:
        """The number of its stream's grant in this session; a stream lent again has another."""
        return self._source.grant.number

    @property
    def grant_epoch(self) -> int:
        """The epoch of its stream's grant; it rises with each, whatever the session. As in
        `GrantNotice`."""
        return self._source.grant.grant_epoch

    @property
    def shard(self) -> "Shard | None":
        """The shard of the record, as in `on_assigned`; None in a group without shards."""
        held = self._source.grant.lane.shard
        return None if held is None else held.shard

    @property
    def shard_epoch(self) -> int:
        """The epoch of its shard at this client, as in `on_assigned`."""
        held = self._source.grant.lane.shard
        return 0 if held is None else held.epoch

    @property
    def grant_over(self) -> bool:
        """Whether its stream was taken back: an ack comes too late."""
        return self._source.grant.over

    @property
    def acked(self) -> bool:
        """Whether it was acknowledged, perhaps when it was handed out before."""
        source = self._source
        source.note(self._at + 1)
        return source.grant.has_acked(self._at)

    @property
    def refused(self) -> bool:
        """Whether it was refused, and will come again or has moved to a queue."""
        source = self._source
        if not source.grant.refused_any:
            return False
        # Its coming again counts only once it was handed out.
        source.note(self._at + 1)
        return source.grant.has_refused(self._at)


class DeliveredRecord(HandedOutRecord):
    """A record that a subscription handed out, to be acknowledged."""

    __slots__ = ()

    @overload
    def ack(self, *, sync: Literal[True]) -> Coroutine[Any, Any, None]: ...
    @overload
    def ack(self, *, sync: bool = False) -> Awaitable[None]: ...
    def ack(self, *, sync: bool = False) -> Awaitable[None]:
        """Acknowledge it: the call itself does it; with ``sync`` the await returns when durable.

        With ``sync`` nothing happens before it is awaited.

        Raises:
            GrantNotHeld: with ``sync``: its stream was taken back before, so it does not count.
            OutcomeUnknown: with ``sync``: the connection or the loan of its stream ended before
                the answer came. If the ack did not count, it comes again, marked.
        """
        if sync:
            return self._durably_acked()
        # `Acks.leave` without its call, which would cost as much again, for what is in order.
        acks = self._source.acks
        offset = self._at
        if offset == acks.run_end:
            acks.run_end = offset + 1
        else:
            acks.leave(offset)
        return DONE

    async def _durably_acked(self) -> None:
        self.ack()
        source = self._source
        source.note(self._at + 1)
        await source.grant.settled(((self._at, self._at + 1),))

    async def nak(self, delay: float | None = None, error: Error = None) -> None:
        """Refuse it: it is sent again after ``delay`` seconds, or the daemon's backoff.

        An acknowledged record stays acknowledged. ``error`` says why: a text, or an exception. In
        a group with ``max_deliver`` it goes to the retry queue, or becomes a dead letter after the
        last attempt; a group without it keeps no error, and sends the record again without end.

        Raises:
            IllegalArgument: ``delay`` is no number of seconds from 0 to a day.
        """
        self._refuse(delay, failure_of(error))

    async def reject(self, error: Error = None) -> None:
        """Refuse it for good: it goes to the dead letters of its group at once.

        A group without ``max_deliver`` has none: there it is refused as by `nak`.
        """
        self._refuse(None, failure_of(error, rejects=True))

    def _refuse(self, delay: float | None, failure: Failure) -> None:
        grant = self._source.grant
        if grant.over or not self.acked:
            grant.nak(((self._at, self._at + 1),), delay, failure)

    async def in_progress(self) -> None:
        """Work on it goes on: its ack wait begins anew."""
        self._source.grant.in_progress(((self._at, self._at + 1),))


class Batch:
    """Consecutive records of one stream, as columns that are decoded when asked for."""

    __slots__ = ("_decoded", "_source")

    def __init__(self, source: Source, decoded: "DecodedBatch") -> None:
        self._source = source
        self._decoded = decoded

    def __len__(self) -> int:
        """How many records it holds."""
        return self._decoded.records

    def __iter__(self) -> Iterator[Record]:
        """Its records, one by one."""
        return rows_of(Record, self._source, self._decoded)

    @property
    def stream(self) -> str:
        """The stream, as TOPIC/ORDINAL/PARTITION."""
        return self._source.stream

    @property
    def offsets(self) -> Sequence[int]:
        """Ascending; gaps are records that are not part of the answer."""
        return self._decoded.offsets

    @property
    def payloads(self) -> Sequence[bytes]:
        """One a record."""
        return self._decoded.payloads

    @property
    def keys(self) -> Sequence[bytes | None]:
        """None where absent."""
        return self._decoded.keys

    @property
    def subjects(self) -> Sequence[str]:
        """One a record."""
        return self._decoded.subjects

    @property
    def headers(self) -> Sequence[HeaderPairs]:
        """Pairs of name and value."""
        return self._decoded.headers

    @property
    def timestamps_us(self) -> Sequence[int]:
        """The producer's times, microseconds since 1970."""
        return self._decoded.timestamps_us

    @property
    def append_times_us(self) -> Sequence[int]:
        """When the daemon stored them, microseconds since 1970."""
        return self._decoded.append_times_us

    def to_arrow(self, *, key_hashes: bool = False) -> "pa.Table":
        """The columns as Arrow, without a copy where the frames are Arrow.

        They are offset, subject, key, payload, headers, timestamp_us and append_time_us; with
        ``key_hashes`` also key_hash, by which records are routed.
        """
        return self._decoded.to_arrow(key_hashes=key_hashes)

    def to_pandas(self) -> "pd.DataFrame":
        """The same as a frame of pandas, with times of UTC: timestamp and append_time.

        Raises:
            LibraryMissing: there is no pandas.
        """
        from dss_client._pandas_frame import frame_of

        return frame_of(self.to_arrow())

    def __repr__(self) -> str:
        """For people."""
        return f"<{type(self).__name__} {self.stream} of {len(self)}>"


class HandedOutBatch(Batch):
    """A batch that a subscription handed out, whichever way it is acknowledged."""

    __slots__ = ()
    _source: DeliveredSource

    @property
    def redelivered(self) -> bool:
        """Whether any of it was perhaps seen before; never wrongly false."""
        return self.offsets[0] < self._source.redelivered_below

    @property
    def attempt(self) -> int:
        """How often it is known to have been handed out, this time included."""
        return self._source.attempt

    @property
    def level(self) -> int:
        """0: it comes from its stream; 1: from the retry queue of its group, after failures."""
        return MAIN


class DeliveredBatch(HandedOutBatch):
    """A batch that a subscription handed out, to be acknowledged as one."""

    __slots__ = ()

    def __iter__(self) -> Iterator[DeliveredRecord]:
        """Its records, one by one."""
        return rows_of(DeliveredRecord, self._source, self._decoded)

    async def ack(self, *, sync: bool = False) -> None:
        """Acknowledge all of it. Returns at once; with ``sync``, when durable.

        Raises:
            GrantNotHeld: with ``sync``: its stream was taken back before, so it does not count.
            OutcomeUnknown: with ``sync``: the connection or the loan of its stream ended before
                the answer came. If the ack did not count, it comes again, marked.
        """
        grant = self._source.grant
        grant.ack(self._source.ranges)
        if sync:
            await grant.settled(self._source.ranges)

    async def nak(self, delay: float | None = None, error: Error = None) -> None:
        """Refuse all of it: it comes again after ``delay`` seconds, or the daemon's back-off.

        ``error`` says why, as for `DeliveredRecord.nak`.

        Raises:
            IllegalArgument: ``delay`` is no number of seconds from 0 to a day.
        """
        self._source.grant.nak(self._source.ranges, delay, failure_of(error))

    async def reject(self, error: Error = None) -> None:
        """Refuse all of it for good, as `DeliveredRecord.reject` does."""
        self._source.grant.nak(self._source.ranges, None, failure_of(error, rejects=True))

    async def in_progress(self) -> None:
        """Work on it goes on: its ack wait begins anew."""
        self._source.grant.in_progress(self._source.ranges)


def grant_behind(handed_out: HandedOutRecord | HandedOutBatch) -> "HeldGrant":
    """The grant that a record or a batch came under; for the client itself."""
    return handed_out._source.grant


def rows_of(kind: type[Kind], source: Source, decoded: "DecodedBatch") -> Iterator[Kind]:
    """The records of a batch, one by one.

    Raises:
        FrameCorrupt: a frame cannot be read; at once, not with the first record.
    """
    return made(kind, source, decoded.rows())


def made(kind: type[Kind], source: Source, pieces: "Iterable[Iterable[Row]]") -> Iterator[Kind]:
    """The records of rows, one by one, each made when it is asked for."""
    # Records have no constructor: its call would cost as much again as all of this.
    # `Subscription` has these lines once more, for the same reason.
    for rows in pieces:
        for offset, subject, key, payload, headers, timestamp_us in rows:
            record = kind()
            record._source = source
            record._at = offset
            record.subject = subject
            record.key = key
            record.payload = payload
            record.headers = headers
            record.timestamp_us = timestamp_us
            yield record


def made_of(kind: type[Kind], source: Source, row: "Row") -> Kind:
    """The record of one row."""
    record = kind()
    record._source = source
    record._at, record.subject, record.key, record.payload, record.headers, record.timestamp_us = (
        row
    )
    return record


def row_of(record: Record) -> "Row":
    """What a record was made of."""
    return (
        record._at,
        record.subject,
        record.key,
        record.payload,
        record.headers,
        record.timestamp_us,
    )
