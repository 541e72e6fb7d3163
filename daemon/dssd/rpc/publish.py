"""`Publish`: plain records from callers without the frame format; the daemon builds the frames.

The caller does not number its calls, so the daemon cannot recognise a repeated one: these frames
have no producer, and repeating a call whose answer was lost may store its records twice.

Invariant: the records of one stream travel in one frame, so all of them are stored, or none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dss_api.v1 import log_pb2, types_pb2
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import DssError, IllegalArgument, PublishedInPart
from dss_core.filters import check_subject
from dss_core.ids import StreamId, StreamName
from dss_core.limits import HEADERS_MAX
from dss_core.producer_ids import NO_PRODUCER
from dss_core.routing import key_hash, partition_of
from dssd.clock import Clock
from dssd.log.port import Append, Appended, Log
from dssd.loop_yield import LoopTurn
from dssd.rpc.backpressure import AppendBudget
from dssd.rpc.frame_checks import Gate
from dssd.topics.catalogue import Topic

PUBLISH_RECORDS_MAX = 4_096
"""Records in one unary publish: the daemon builds these frames on its own loop, and one of so many
records takes 3 ms."""


_Row = tuple[bytes, bytes | None, str, tuple[tuple[str, bytes], ...], int]
"""Payload, key, subject, headers, timestamp."""


@dataclass(frozen=True, slots=True)
class _Share:
    """What one partition gets of a call."""

    rows: list[int]
    """The places of its records in the request."""
    append: Append


class RecordPublisher:
    """Publishes plain records through the log."""

    def __init__(self, log: Log, budget: AppendBudget, clock: Clock) -> None:
        self._log = log
        self._budget = budget
        self._clock = clock
        self._keyless = 0
        """Counts records without a key, which go round the partitions."""

    async def publish(
        self, gate: Gate, records: Sequence[types_pb2.Record]
    ) -> list[log_pb2.Published]:
        """Store the records; returns where, one a record, in order.

        Raises:
            IllegalArgument: there are too many records.
            IllegalSubject, SubjectOutsideTopic, HeaderReserved: nothing was stored.
            RecordTooLarge, FrameTooLarge: nothing was stored.
            PublishedInPart: only some streams took theirs.
        """
        if len(records) > PUBLISH_RECORDS_MAX:
            rule = f"at most {PUBLISH_RECORDS_MAX:,} in one call, not {len(records):,}"
            raise IllegalArgument(argument="records", rule=rule)
        turn = LoopTurn()
        await _check_subjects(gate, records, turn)
        routed = await self._routed(gate.topic, records, turn)
        shares = []
        for partition, rows in routed.items():
            columns = await self._columns(gate.topic.name, [records[row] for row in rows], turn)
            shares.append(_share(gate.topic, partition, rows, columns))
        results = await self._append([share.append for share in shares])
        published = [log_pb2.Published() for _ in records]
        for share, result in zip(shares, results, strict=True):
            if isinstance(result, Appended):
                await _fill(published, share, result, gate, turn)
        _raise_refusals(gate, shares, results)
        return published

    async def _append(self, appends: list[Append]) -> list[Appended | BaseException]:
        size_bytes = sum(len(append.frame) for append in appends)
        await self._budget.take(size_bytes)
        try:
            return await self._log.append(appends)
        finally:
            self._budget.give_back(size_bytes)

    async def _routed(
        self, topic: Topic, records: Sequence[types_pb2.Record], turn: LoopTurn
    ) -> dict[int, list[int]]:
        storage = topic.producing
        routed: dict[int, list[int]] = {}
        for row, record in enumerate(records):
            await turn.give_way()
            if record.HasField("key"):
                hashed = key_hash(record.key)
                partition = partition_of(topic.router, hashed, storage.partitions, storage.factor)
            else:
                partition = self._keyless % storage.partitions
                self._keyless += 1
            routed.setdefault(partition, []).append(row)
        return routed

    async def _columns(
        self, topic: str, records: Sequence[types_pb2.Record], turn: LoopTurn
    ) -> Columns:
        now_us = self._clock.wall_us()
        rows = []
        for record in records:
            await turn.give_way()
            rows.append(_row(topic, record, now_us))
        payloads, keys, subjects, headers, timestamps_us = zip(*rows, strict=True)
        return Columns(payloads, keys, subjects, headers, timestamps_us)


def _share(topic: Topic, partition: int, rows: list[int], columns: Columns) -> _Share:
    stream = StreamId(topic.producing.storage_topic_id, partition)
    frame = build_frame(columns, partition=partition, producer_id=NO_PRODUCER, sequence=0)
    return _Share(rows, Append(stream, frame, topic.topic_epoch, topic.durability))


async def _check_subjects(gate: Gate, records: Sequence[types_pb2.Record], turn: LoopTurn) -> None:
    topic = gate.topic.name
    checked: set[str] = set()
    for record in records:
        await turn.give_way()
        subject = _subject(record, topic)
        if subject not in checked:
            check_subject(subject)
            gate.check_subject(subject)
            checked.add(subject)


def _subject(record: types_pb2.Record, topic: str) -> str:
    return record.subject if record.HasField("subject") else topic


def _row(topic: str, record: types_pb2.Record, now_us: int) -> _Row:
    # One more than is allowed is enough for the refusal, however many there are.
    headers = record.headers[: HEADERS_MAX + 1]
    return (
        record.payload,
        record.key if record.HasField("key") else None,
        _subject(record, topic),
        tuple((head.name, head.value) for head in headers),
        record.timestamp_us if record.HasField("timestamp_us") else now_us,
    )


async def _fill(
    published: list[log_pb2.Published], share: _Share, result: Appended, gate: Gate, turn: LoopTurn
) -> None:
    stream = str(StreamName(gate.topic.name, gate.ordinal, share.append.stream.partition))
    for place, row in enumerate(share.rows):
        await turn.give_way()
        published[row].stream = stream
        published[row].offset = result.base_offset + place
        published[row].append_time_us = result.append_time_us
        published[row].durability = gate.topic.durability


def _raise_refusals(
    gate: Gate, shares: Sequence[_Share], results: Sequence[Appended | BaseException]
) -> None:
    refusals: list[DssError] = []
    for share, result in zip(shares, results, strict=True):
        if isinstance(result, DssError):
            refusals.append(gate.named(result, share.append.stream.partition))
        elif isinstance(result, BaseException):
            raise result
    if refusals and len(refusals) == len(results):
        raise refusals[0]
    if refusals:
        stored = len(results) - len(refusals)
        raise PublishedInPart(stored=stored, streams=len(results), reason=refusals[0])
