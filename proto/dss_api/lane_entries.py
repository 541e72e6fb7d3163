"""The header of an entry in a queue, to and from its bytes: `lanes.proto`.

Written out, not by the names of fields: a leader's holder reads as many as wait.
"""

from google.protobuf.message import DecodeError

from dss_api.v1 import lanes_pb2
from dss_core.errors import FrameCorrupt
from dss_core.lane import LaneEntry


def entry_bytes(entry: LaneEntry) -> bytes:
    """The header that says this."""
    said = entry._asdict()
    kind = lanes_pb2.EntryKind.ValueType(said.pop("kind"))
    return lanes_pb2.LaneEntry(kind=kind, **said).SerializeToString()


def brief_from(raw: bytes) -> LaneEntry:
    """What the holder of a lane needs of it: source, origin, attempts, cause, and when it is due.

    Raises:
        FrameCorrupt: it is no entry.
    """
    message = _message(raw)
    return LaneEntry(
        message.source_level,
        message.source_offset,
        message.origin_ordinal,
        message.origin_partition,
        message.origin_offset,
        0,
        message.attempt,
        operation=message.operation,
        due_ms=message.due_ms,
        cause=message.cause,
        source_ordinal=_source_ordinal(message),
        source_partition=message.source_partition,
    )


def _source_ordinal(message: lanes_pb2.LaneEntry) -> int | None:
    return message.source_ordinal if message.HasField("source_ordinal") else None


def _message(raw: bytes) -> lanes_pb2.LaneEntry:
    try:
        return lanes_pb2.LaneEntry.FromString(raw)
    except DecodeError as error:
        raise FrameCorrupt(reason="an entry of a queue has a header that cannot be read") from error


def entry_from(raw: bytes) -> LaneEntry:
    """What a header says.

    Raises:
        FrameCorrupt: it is no entry.
    """
    message = _message(raw)
    return LaneEntry(
        message.source_level,
        message.source_offset,
        message.origin_ordinal,
        message.origin_partition,
        message.origin_offset,
        message.origin_time_us,
        message.attempt,
        message.redrives,
        message.operation,
        message.due_ms,
        message.first_failure_ms,
        message.cause,
        message.error_type,
        message.fingerprint,
        message.client_id,
        message.grant_epoch,
        message.cursor_generation,
        message.kind,
        _source_ordinal(message),
        message.source_partition,
    )
