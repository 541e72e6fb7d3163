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
from dss_core.errors import (
    DssError,
    IllegalArgument,
    PublishedInPart,
    StorageTopicSealed,
    TopicNotFound,
)
from dss_core.filters import check_subject
from dss_core.ids import StreamId, StreamName
from dss_core.limits import HEADERS_MAX
from dss_core.producer_ids import NO_PRODUCER
from dss_core.routing import key_hash, partition_of
from dssd.clock import Clock
from dssd.log.port import Append, Appended, Log
from dssd.loop_yield import LoopTurn
from dssd.rpc.backpressure import AppendShare
from dssd.rpc.frame_checks import Gate, Gates
from dssd.topics.catalogue import Topic

PUBLISH_RECORDS_MAX = 4_096
"""Records in one unary publish: the daemon builds these frames on its own loop, and one of so many
records takes 3 ms."""


_Row = tuple[bytes, bytes | None, str, tuple[tuple[str, bytes], ...], int]
"""Payload, key, subject, headers, timestamp."""


@dataclass(frozen=True, slots=True)
class _Share:
    """The records of a call for one partition."""

    rows: list[int]
    """Indexes of its records in the request."""
    append: Append


class RecordPublisher:
    """Publishes plain records through the log."""

    def __init__(self, log: Log, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._keyless = 0
        """Counts records without a key, which go round the partitions."""

    async def publish(
        self, gates: Gates, budget: AppendShare, topic: str, records: Sequence[types_pb2.Record]
    ) -> list[log_pb2.Published]:
        """Store the records; returns where, one a record, in order.

        Records that are refused because the topic grew are routed again. A key has one stream
        before and one after, so its records stay in order.

        Raises:
            TopicNotFound: there is no such topic.
            IllegalArgument: there are too many records.
            IllegalSubject, SubjectOutsideTopic, HeaderReserved: nothing was stored.
            RecordTooLarge, FrameTooLarge: nothing was stored.
            PublishedInPart: only some streams took theirs.
        """
        if len(records) > PUBLISH_RECORDS_MAX:
            rule = f"at most {PUBLISH_RECORDS_MAX:,} in one call, not {len(records):,}"
            raise IllegalArgument(argument="records", rule=rule)
        gate = gates.of(topic)
        turn = LoopTurn()
        await _check_subjects(gate, records, turn)
        outcome = _Outcome(len(records))
        rows = list(range(len(records)))
        while rows:
            shares = await self._shares(gate.topic, records, rows, turn)
            results = await self._append(budget, [share.append for share in shares])
            rows, later = [], _later(gates, gate)
            for share, result in zip(shares, results, strict=True):
                if later is not None and isinstance(result, StorageTopicSealed):
                    rows += share.rows
                else:
                    await outcome.add(gate, share, result, turn)
            rows.sort()
            gate = later or gate
        outcome.raise_refusals()
        return outcome.published

    async def _append(
        self, budget: AppendShare, appends: list[Append]
    ) -> list[Appended | BaseException]:
        size_bytes = sum(len(append.frame) for append in appends)
        await budget.take(size_bytes)
        try:
            return await self._log.append(appends)
        finally:
            budget.give_back(size_bytes)

    async def _shares(
        self,
        topic: Topic,
        records: Sequence[types_pb2.Record],
        rows: Sequence[int],
        turn: LoopTurn,
    ) -> list[_Share]:
        shares = []
        for partition, own in (await self._routed(topic, records, rows, turn)).items():
            columns = await self._columns(topic.name, [records[row] for row in own], turn)
            shares.append(_share(topic, partition, own, columns))
        return shares

    async def _routed(
        self,
        topic: Topic,
        records: Sequence[types_pb2.Record],
        rows: Sequence[int],
        turn: LoopTurn,
    ) -> dict[int, list[int]]:
        storage = topic.producing
        routed: dict[int, list[int]] = {}
        for row in rows:
            record = records[row]
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
    # Read at most one more than allowed, which is enough to refuse.
    headers = record.headers[: HEADERS_MAX + 1]
    return (
        record.payload,
        record.key if record.HasField("key") else None,
        _subject(record, topic),
        tuple((head.name, head.value) for head in headers),
        record.timestamp_us if record.HasField("timestamp_us") else now_us,
    )


def _later(gates: Gates, gate: Gate) -> Gate | None:
    """The new gate of a topic that grew meanwhile; None if it did not."""
    try:
        now = gates.of(gate.topic.name)
    except TopicNotFound:
        return None
    is_same = now.topic.topic_id == gate.topic.topic_id
    return now if is_same and now.topic.topic_epoch != gate.topic.topic_epoch else None


class _Outcome:
    """The outcome of a call."""

    def __init__(self, records: int) -> None:
        self.published = [log_pb2.Published() for _ in range(records)]
        self._stored = 0
        self._refusals: list[DssError] = []

    async def add(
        self, gate: Gate, share: _Share, result: Appended | BaseException, turn: LoopTurn
    ) -> None:
        """Note that a stream stored or refused its records."""
        if isinstance(result, Appended):
            self._stored += 1
            await self._fill(gate, share, result, turn)
        elif isinstance(result, DssError):
            self._refusals.append(gate.named(result, share.append.stream.partition))
        else:
            raise result

    async def _fill(self, gate: Gate, share: _Share, result: Appended, turn: LoopTurn) -> None:
        stream = str(StreamName(gate.topic.name, gate.ordinal, share.append.stream.partition))
        for place, row in enumerate(share.rows):
            await turn.give_way()
            published = self.published[row]
            published.stream = stream
            published.offset = result.base_offset + place
            published.append_time_us = result.append_time_us
            published.durability = gate.topic.durability

    def raise_refusals(self) -> None:
        """Raise the condition for the caller, if there is one.

        Raises:
            PublishedInPart: only some streams took their records.
            DssError: none did.
        """
        if self._refusals and not self._stored:
            raise self._refusals[0]
        if self._refusals:
            streams = self._stored + len(self._refusals)
            raise PublishedInPart(stored=self._stored, streams=streams, reason=self._refusals[0])
