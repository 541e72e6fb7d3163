"""`Publish`: plain records from callers without the frame format; the daemon builds the frames.

The caller cannot number its calls, so nobody can tell a repeated one: these frames have no
producer, and a call whose answer was lost may be stored twice by its repetition.

Invariant: the records of one stream travel in one frame, so all of them are stored, or none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dss_api.v1 import log_pb2, types_pb2
from dss_core.build import Columns, build_frame
from dss_core.errors import DssError, IllegalArgument, PublishedInPart
from dss_core.filters import check_subject
from dss_core.ids import StreamId, StreamName
from dss_core.routing import key_hash, partition_of
from dssd.clock import Clock
from dssd.limits import PUBLISH_RECORDS_MAX
from dssd.log.port import Append, Appended, Log
from dssd.log.producers import NO_PRODUCER
from dssd.rpc.intake import Gate
from dssd.rpc.room import Room
from dssd.topics.catalogue import Topic


@dataclass(frozen=True, slots=True)
class _Share:
    """What one partition gets of a call."""

    rows: list[int]
    """The places of its records in the request."""
    append: Append


class Publisher:
    """Publishes plain records through the log."""

    def __init__(self, log: Log, room: Room, clock: Clock) -> None:
        self._log = log
        self._room = room
        self._clock = clock
        self._keyless = 0
        """Counts records without a key, which go round the partitions."""

    async def publish(
        self, gate: Gate, records: Sequence[types_pb2.Record]
    ) -> list[log_pb2.Published]:
        """Store the records; returns where, one a record, in order.

        Raises:
            IllegalArgument: there are too many records.
            IllegalSubject, SubjectOutsideTopic: nothing was stored.
            RecordTooLarge, FrameTooLarge: nothing was stored.
            PublishedInPart: only some streams took theirs.
        """
        if len(records) > PUBLISH_RECORDS_MAX:
            rule = f"at most {PUBLISH_RECORDS_MAX:,} in one call, not {len(records):,}"
            raise IllegalArgument(argument="records", rule=rule)
        _check_subjects(gate, records)
        shares = [
            self._share(gate, records, partition, rows)
            for partition, rows in self._routed(gate.topic, records).items()
        ]
        results = await self._append([share.append for share in shares])
        published = [log_pb2.Published() for _ in records]
        for share, result in zip(shares, results, strict=True):
            if isinstance(result, Appended):
                _fill(published, share, result, gate)
        _raise_refusals(gate, shares, results)
        return published

    async def _append(self, appends: list[Append]) -> list[Appended | BaseException]:
        size_bytes = sum(len(append.frame) for append in appends)
        await self._room.take(size_bytes)
        try:
            return await self._log.append(appends)
        finally:
            self._room.give_back(size_bytes)

    def _routed(self, topic: Topic, records: Sequence[types_pb2.Record]) -> dict[int, list[int]]:
        storage = topic.producing
        routed: dict[int, list[int]] = {}
        for row, record in enumerate(records):
            if record.HasField("key"):
                hashed = key_hash(record.key)
                partition = partition_of(topic.router, hashed, storage.partitions, storage.factor)
            else:
                partition = self._keyless % storage.partitions
                self._keyless += 1
            routed.setdefault(partition, []).append(row)
        return routed

    def _share(
        self, gate: Gate, records: Sequence[types_pb2.Record], partition: int, rows: list[int]
    ) -> _Share:
        topic = gate.topic
        stream = StreamId(topic.producing.storage_topic_id, partition)
        frame = build_frame(
            _columns(topic.name, [records[row] for row in rows], self._clock.wall_us()),
            partition=partition,
            producer_id=NO_PRODUCER,
            sequence=0,
        )
        return _Share(rows, Append(stream, frame, topic.topic_epoch, topic.durability))


def _check_subjects(gate: Gate, records: Sequence[types_pb2.Record]) -> None:
    topic = gate.topic.name
    for subject in {_subject(record, topic) for record in records}:
        check_subject(subject)
        gate.check_subject(subject)


def _subject(record: types_pb2.Record, topic: str) -> str:
    return record.subject if record.HasField("subject") else topic


def _columns(topic: str, records: Sequence[types_pb2.Record], now_us: int) -> Columns:
    return Columns(
        payloads=[record.payload for record in records],
        keys=[record.key if record.HasField("key") else None for record in records],
        subjects=[_subject(record, topic) for record in records],
        headers=[tuple((head.name, head.value) for head in record.headers) for record in records],
        timestamps_us=[
            record.timestamp_us if record.HasField("timestamp_us") else now_us for record in records
        ],
    )


def _fill(published: list[log_pb2.Published], share: _Share, result: Appended, gate: Gate) -> None:
    stream = str(StreamName(gate.topic.name, gate.ordinal, share.append.stream.partition))
    for place, row in enumerate(share.rows):
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
