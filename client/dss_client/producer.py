"""Publishing to one topic: gathering, routing, and what became of each record.

Records are routed by the topic's description as they are sent, gathered a frame a stream, and
written by `dss_client._produce_call.ProduceCall`. Invariant: what `send_nowait`, `enqueue` or
`send_columns` accepted is stored once and in order, or its failure is told: to whoever awaits it,
else to the next `flush`. What is held unacknowledged is bounded by bytes.
"""

from collections.abc import Callable, Generator, Mapping, Sequence, Sized
from datetime import datetime
from operator import length_hint
from time import time_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypedDict, TypeVar, Unpack

from dss_client._pending_frame import Ack, PendingFrame
from dss_client._start_point import time_us
from dss_client._stop import the_stop
from dss_client._task_spawner import Spawn
from dss_client.limits import PRODUCER_BUFFER_BYTES, RECORD_OVERHEAD_BYTES
from dss_core.errors import BufferFull, IllegalArgument, RecordTooLarge
from dss_core.lane import refuse_reserved
from dss_core.limits import (
    FRAME_BYTES_USUAL,
    HEADER_BYTES_MAX,
    HEADERS_MAX,
    KEY_BYTES_MAX,
    RECORD_BYTES_MAX,
)

if TYPE_CHECKING:
    from dss_client._connection import Connection
    from dss_client._produce_call import ProduceCall
    from dss_client._routes import Routes
    from dss_core.columns import Columns

COLUMNS_SLICE_RECORDS_MAX = 16_384
"""`send_columns` works in slices of this size, so that the loop is held a few milliseconds."""


Handle = TypeVar("Handle")
BytesLike = bytes | bytearray | memoryview
HeadersArgument = Mapping[str, bytes | str] | Sequence[tuple[str, bytes | str]]

_BYTES = frozenset((bytes, bytearray, memoryview))
_BYTES_OR_NONE = _BYTES | {type(None)}

_SURELY_LEGAL_BYTES = KEY_BYTES_MAX
"""A record below it can break no limit of size."""

__all__ = ["Ack", "Delivery", "Producer", "RecordFields"]


class RecordFields(TypedDict, total=False):
    """The parts of a record beside its payload, the same for every way to send one."""

    key: bytes | None
    """Records of one key stay in order; records without one are spread round-robin."""
    subject: str | None
    """What it is about; the topic's name where absent."""
    headers: HeadersArgument | None
    """Further facts, a mapping or pairs."""
    timestamp: datetime | None
    """The record's own time; now where absent."""


class Delivery:
    """The result of one record of `Producer.send_nowait`; await it for its `Ack`."""

    __slots__ = ("_frame", "_row")

    def __init__(self, frame: PendingFrame, row: int) -> None:
        self._frame = frame
        self._row = row

    def done(self) -> bool:
        """Whether it is stored, or has failed."""
        return self._frame.settled

    @property
    def offset(self) -> int | None:
        """Its offset in its stream once it is stored."""
        frame, row = self._frame.place_of(self._row)
        ack = frame.ack
        return None if ack is None else ack.offset + row

    def __await__(self) -> Generator[Any, None, Ack]:
        """Wait until it is stored.

        Raises:
            DssError: it failed; `OutcomeUnknown` where nobody knows whether it was stored.
        """
        return self._frame.outcome_of(self._row).__await__()


class Gathers(Protocol):
    """Where a record goes once it is known to break no rule that can be seen here."""

    routes: "Routes"
    room_bytes: int
    open_frames: list[PendingFrame | None]

    def begin(self, partition: int, subject: str) -> PendingFrame:
        """An open frame for a partition that has none; its first record has the subject."""

    def close(self, partition: int) -> None:
        """The open frame of the partition takes no further record."""

    def refuse_unless_empty(self) -> None:
        """Let a record into an empty buffer only, however large it is."""


class Sender(Generic[Handle]):
    """Gathers records in frames of their streams."""

    topic: str
    into: Gathers

    def __init__(self, handle: Callable[[PendingFrame, int], Handle]) -> None:
        self._handle = handle

    def send_nowait(
        self,
        payload: bytes,
        *,
        key: bytes | None = None,
        subject: str | None = None,
        headers: HeadersArgument | None = None,
        timestamp: datetime | None = None,
    ) -> Handle:
        """Hand over one record, with its `RecordFields`, without waiting.

        The handle tells what became of it.

        Raises:
            BufferFull: await something first, `flush` for example, or use `enqueue`.
            DssError: the record breaks a rule, or nothing can be published any more.
        """
        call = self.into
        routes = call.routes
        # Of None too, which has no length; what is not bytes is refused below.
        size_bytes = length_hint(payload) + RECORD_OVERHEAD_BYTES
        if key is None:
            partition, hashed = routes.next_keyless(), None
        else:
            size_bytes += len(key)
            partition, hashed = routes.by_key.get(key) or routes.learn(key)
        if subject is None:
            subject = self.topic
        if subject not in routes.subjects:
            routes.admit(subject)
        pairs = None
        if headers is not None:
            pairs = header_pairs(headers)
            size_bytes += sum(len(name) + len(value) for name, value in pairs)
        if size_bytes > _SURELY_LEGAL_BYTES or payload.__class__ is not bytes:
            payload = _admitted(payload, key, size_bytes)
        room_bytes = call.room_bytes - size_bytes
        if room_bytes < 0:
            call.refuse_unless_empty()
        frame = call.open_frames[partition] or call.begin(partition, subject)
        call.room_bytes = room_bytes
        payloads = frame.payloads
        row = len(payloads)
        payloads.append(payload)
        frame.keys.append(key)
        frame.hashes.append(hashed)
        if frame.subjects is not None or subject != frame.subject:
            # In the frame each subject of its own takes its bytes.
            subject_bytes = len(subject.encode())
            size_bytes += subject_bytes
            call.room_bytes -= subject_bytes
            frame.note_subject(row, subject)
        if pairs is not None or timestamp is not None:
            frame.note_rare(row, pairs, None if timestamp is None else time_us(timestamp))
        frame.size_bytes += size_bytes
        if frame.size_bytes >= FRAME_BYTES_USUAL:
            call.close(partition)
        return self._handle(frame, row)


class Producer(Sender[Delivery]):
    """Made by `Client.producer`; open inside its ``async with`` block."""

    def __init__(
        self,
        connection: "Connection",
        topic: str,
        *,
        spawn: Spawn,
        buffer_bytes: int = PRODUCER_BUFFER_BYTES,
    ) -> None:
        super().__init__(Delivery)
        self.topic = topic
        self._connection = connection
        self._spawn = spawn
        self._buffer_bytes = buffer_bytes
        self.call: ProduceCall

    async def __aenter__(self) -> Self:
        """Describe the topic and start sending.

        Raises:
            TopicNotFound: there is none of this name.
            Unreachable: no daemon answers the first call of this client.
        """
        from dss_client._produce_call import ProduceCall
        from dss_client.topics import routing_of

        topic = await routing_of(self._connection, self.topic)
        self.into = self.call = ProduceCall(
            self._connection, topic, buffer_bytes=self._buffer_bytes
        )
        self.call.start(self._spawn)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Flush, then stop; after an exception, stop without waiting, unless the program ends.

        Raises:
            DssError: something failed that nobody was told about.
        """
        try:
            if error is None or the_stop.is_of(error):
                await self.flush()
        finally:
            await self.call.stop()

    async def send(self, payload: bytes, **fields: Unpack[RecordFields]) -> Ack:
        """Publish one record and wait until it is stored.

        Args:
            payload: what it says.
            fields: its `RecordFields`.

        Raises:
            DssError: it was not stored; `OutcomeUnknown` where nobody knows.
        """
        delivery = await self.enqueue(payload, **fields)
        return await delivery

    async def enqueue(
        self,
        payload: bytes,
        *,
        key: bytes | None = None,
        subject: str | None = None,
        headers: HeadersArgument | None = None,
        timestamp: datetime | None = None,
    ) -> Delivery:
        """Hand over one record, with its `RecordFields`, waiting for room in the buffer.

        It does not wait for storage: the handle tells what became of it.

        Raises:
            DssError: the record breaks a rule, or nothing can be published any more.
        """
        if self.call.crowded:
            await self.call.pause()
        while True:
            try:
                return self.send_nowait(
                    payload, key=key, subject=subject, headers=headers, timestamp=timestamp
                )
            except BufferFull:
                await self.call.room()

    async def send_columns(
        self,
        payloads: Sequence[BytesLike],
        keys: Sequence[bytes | None] | None = None,
        subjects: Sequence[str] | str | None = None,
        headers: Sequence[HeadersArgument | None] | None = None,
        timestamps: Sequence[int] | None = None,
    ) -> list[Ack]:
        """Publish many records given as columns, and wait until all are stored.

        Args:
            payloads: one a record.
            keys: one a record, None where it has none; or None where no record has a key.
            subjects: one a record, or one for all; the topic's name where absent.
            headers: one mapping or sequence of pairs a record.
            timestamps: microseconds since 1970, one a record; now where absent.

        Returns:
            One ack a frame that was stored, in no particular order: its first offset and how
            many records it holds.

        Raises:
            IllegalArgument: the columns differ in length, or a value is not bytes.
            DssError: some of it was not stored; what was is not undone.
        """
        whole = self._columns(payloads, keys, subjects, headers, timestamps)
        frames: list[PendingFrame] = []
        for start in range(0, whole.records, COLUMNS_SLICE_RECORDS_MAX):
            piece = whole.cut(start, min(start + COLUMNS_SLICE_RECORDS_MAX, whole.records))
            routes = self.call.routes
            for partition, frame in routes.frames(piece):
                await self.call.room_for(frame.size_bytes)
                self.call.add(routes, partition, frame)
                frames.append(frame)
            await self.call.pause()
        for frame in frames:
            frame.awaited = True
        return [ack for frame in frames for ack in await frame.outcomes()]

    async def flush(self) -> None:
        """Wait until everything handed over so far is stored, or has failed.

        Raises:
            DssError: something failed since the last flush, and nobody awaited it.
        """
        await self.call.flush()

    def _columns(
        self,
        payloads: Sequence[BytesLike],
        keys: Sequence[bytes | None] | None,
        subjects: Sequence[str] | str | None,
        headers: Sequence[HeadersArgument | None] | None,
        timestamps: Sequence[int] | None,
    ) -> "Columns":
        from dss_core.columns import Columns

        columns: dict[str, Sized | None] = {
            "keys": keys,
            "subjects": None if isinstance(subjects, str) else subjects,
            "headers": headers,
            "timestamps": timestamps,
        }
        for name, column in columns.items():
            if column is not None and len(column) != len(payloads):
                raise IllegalArgument(argument=name, rule="every column has one value a record")
        if subjects is None:
            subjects = self.topic
        _check_bytes("payloads", payloads, _BYTES)
        if keys is not None:
            _check_bytes("keys", keys, _BYTES_OR_NONE)
        self.call.routes.admit_all((subjects,) if isinstance(subjects, str) else subjects)
        return Columns(
            payloads=payloads,
            keys=keys,
            subjects=subjects,
            headers=None if headers is None else [_pairs_or_none(each) for each in headers],
            timestamps_us=time_ns() // 1_000 if timestamps is None else timestamps,
        )


def header_pairs(headers: HeadersArgument) -> tuple[tuple[str, bytes], ...]:
    """Headers as they are stored.

    Raises:
        IllegalArgument: there are too many, or they are too large.
        HeaderReserved: no producer may set one of them.
    """
    given = headers.items() if isinstance(headers, Mapping) else headers
    pairs = tuple(
        (name, value.encode() if isinstance(value, str) else bytes(value)) for name, value in given
    )
    refuse_reserved(name for name, _ in pairs)
    size_bytes = sum(len(name.encode()) + len(value) for name, value in pairs)
    if len(pairs) > HEADERS_MAX or size_bytes > HEADER_BYTES_MAX:
        raise IllegalArgument(
            argument="headers",
            rule=f"at most {HEADERS_MAX} headers and {HEADER_BYTES_MAX} bytes are allowed",
        )
    return pairs


def _pairs_or_none(headers: HeadersArgument | None) -> tuple[tuple[str, bytes], ...] | None:
    return None if headers is None else header_pairs(headers)


def _check_bytes(name: str, column: Sequence[BytesLike | None], kinds: frozenset[type]) -> None:
    """Refuse a column of text, which Arrow would encode without a word.

    Raises:
        IllegalArgument: a value is of none of the kinds.
    """
    arrow_type = getattr(column, "type", None)
    if arrow_type is None:
        fits = kinds.issuperset(map(type, column))
    else:
        fits = "binary" in str(arrow_type)
    if not fits:
        raise IllegalArgument(argument=name, rule="a value is bytes; encode text")


def _admitted(payload: bytes, key: bytes | None, size_bytes: int) -> bytes:
    """The payload as bytes, of a record that is perhaps too large.

    Raises:
        RecordTooLarge: it is.
        IllegalArgument: the payload is not bytes, or the key is too long.
    """
    if not isinstance(payload, (bytes, bytearray, memoryview)):
        raise IllegalArgument(argument="payload", rule="it is bytes; encode text")
    if size_bytes - RECORD_OVERHEAD_BYTES > RECORD_BYTES_MAX:
        raise RecordTooLarge(
            size_bytes=size_bytes - RECORD_OVERHEAD_BYTES, limit_bytes=RECORD_BYTES_MAX
        )
    if key is not None and len(key) > KEY_BYTES_MAX:
        raise IllegalArgument(argument="key", rule=f"it has at most {KEY_BYTES_MAX} bytes")
    return payload if isinstance(payload, bytes) else memoryview(payload).tobytes()
