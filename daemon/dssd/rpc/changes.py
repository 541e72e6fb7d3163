"""Changes by operators, between the wire and the values of `dssd.operations.changes`.

Invariant: a change that comes from the wire is untrusted; what does not fit is refused here or by
its kind, and nothing is done. A resolved change goes out and comes back the same.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dss_api.v1 import groups_pb2, operations_pb2, types_pb2
from dss_core.errors import IllegalArgument
from dss_core.progress import Progress, normalised
from dssd.machines.start_point import OFFSET_MAX
from dssd.operations.changes import (
    ByRecords,
    BySpan,
    Change,
    CloseSession,
    Direction,
    EditGroup,
    EditTopic,
    Evict,
    ImportOffsets,
    MoveCursors,
    PauseGroup,
    Rebalance,
    RecordSpan,
    RemoveGroup,
    RemoveTopic,
    ResumeGroup,
    RevokeGrant,
    SkipRecords,
    StreamMove,
    StreamOffsets,
    StreamTarget,
    Target,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
    TransferGrant,
    Undo,
)
from dssd.rpc import simple_changes
from dssd.rpc.job_changes import JOB_DECODERS, JOB_ENCODERS
from dssd.rpc.schedule_changes import SCHEDULE_DECODERS, SCHEDULE_ENCODERS

_DIRECTIONS = {
    operations_pb2.CURSOR_DIRECTION_REWIND: Direction.REWIND,
    operations_pb2.CURSOR_DIRECTION_SKIP: Direction.SKIP,
    operations_pb2.CURSOR_DIRECTION_SEEK: Direction.SEEK,
}
_DIRECTION_NUMBERS = {direction: number for number, direction in _DIRECTIONS.items()}


def change_from(message: operations_pb2.Change) -> Change:
    """The change that a caller asks for.

    Raises:
        IllegalArgument: it is none.
    """
    kind = message.WhichOneof("change")
    decode = _DECODERS.get(kind or "")
    if decode is None:
        raise IllegalArgument(argument="the change", rule="it is one that this daemon knows")
    change: Change = decode(getattr(message, kind or ""))
    return change


def change_message(change: Change) -> operations_pb2.Change:
    """A resolved change, so that it can be applied as it was planned."""
    field, message = _ENCODERS[type(change)](change)
    return operations_pb2.Change(**{field: message})


def move_message(move: StreamMove) -> operations_pb2.StreamMove:
    """A stream that changes its holder."""
    return operations_pb2.StreamMove(
        stream=move.stream,
        from_client_id=move.from_client_id,
        to_client_id=move.to_client_id,
        from_borrower_id=move.from_borrower_id,
        to_borrower_id=move.to_borrower_id,
    )


def _move_cursors(message: operations_pb2.MoveCursors) -> MoveCursors:
    direction = _DIRECTIONS.get(message.direction)
    if direction is None:
        raise IllegalArgument(argument="the direction", rule="it is rewind, skip or seek")
    targets = tuple(
        StreamTarget(each.stream, each.storage_topic_id, _offset(each.offset))
        for each in message.targets
    )
    return MoveCursors(message.group, direction, tuple(message.streams), _target(message), targets)


def _target(message: operations_pb2.MoveCursors) -> Target | None:
    kind = message.WhichOneof("to")
    return None if kind is None else _TARGETS[kind](getattr(message, kind))


def _move_cursors_message(change: MoveCursors) -> tuple[str, operations_pb2.MoveCursors]:
    return "move_cursors", operations_pb2.MoveCursors(
        group=change.group,
        direction=_DIRECTION_NUMBERS[change.direction],
        targets=[
            operations_pb2.StreamTarget(
                stream=each.stream, storage_topic_id=each.storage_topic_id, offset=each.offset
            )
            for each in change.targets
        ],
    )


def _import_offsets(message: operations_pb2.ImportOffsets) -> ImportOffsets:
    return ImportOffsets(message.group, tuple(_stream_offsets(each) for each in message.streams))


def _stream_offsets(message: groups_pb2.StreamOffsets) -> StreamOffsets:
    progress = message.progress
    ranges = normalised((_offset(each.start), _offset(each.end)) for each in progress.ranges)
    return StreamOffsets(
        topic=message.topic,
        ordinal=message.ordinal,
        partition=message.partition,
        partitions=message.partitions,
        progress=Progress(_offset(progress.floor)).with_acked(ranges),
        end=_offset(message.end),
    )


def _import_offsets_message(change: ImportOffsets) -> tuple[str, operations_pb2.ImportOffsets]:
    streams = [
        groups_pb2.StreamOffsets(
            topic=each.topic,
            ordinal=each.ordinal,
            partition=each.partition,
            partitions=each.partitions,
            progress=types_pb2.Progress(
                floor=each.progress.floor,
                ranges=[types_pb2.Range(start=low, end=high) for low, high in each.progress.ranges],
            ),
            end=each.end,
        )
        for each in change.streams
    ]
    return "import_offsets", operations_pb2.ImportOffsets(group=change.group, streams=streams)


def _skip_records(message: operations_pb2.SkipRecords) -> SkipRecords:
    more = tuple(
        RecordSpan(each.stream, _offset(each.offset), each.count or 1) for each in message.more
    )
    return SkipRecords(
        message.group, message.stream, _offset(message.offset), message.count or 1, more
    )


def _skip_records_message(change: SkipRecords) -> tuple[str, operations_pb2.SkipRecords]:
    return "skip_records", operations_pb2.SkipRecords(
        group=change.group,
        stream=change.stream,
        offset=change.offset,
        count=change.count,
        more=[
            operations_pb2.RecordSpan(stream=each.stream, offset=each.offset, count=each.count)
            for each in change.more
        ],
    )


def _rebalance(message: operations_pb2.Rebalance) -> Rebalance:
    moves = tuple(
        StreamMove(
            each.stream,
            each.from_client_id,
            each.to_client_id,
            each.from_borrower_id,
            each.to_borrower_id,
        )
        for each in message.moves
    )
    most = message.moves_max if message.HasField("moves_max") else None
    return Rebalance(message.group, most, moves)


def _rebalance_message(change: Rebalance) -> tuple[str, operations_pb2.Rebalance]:
    return "rebalance", operations_pb2.Rebalance(
        group=change.group,
        moves_max=change.moves_max,
        moves=[move_message(each) for each in change.moves],
    )


def _transfer(message: operations_pb2.TransferGrant) -> TransferGrant:
    return TransferGrant(message.group, message.stream, message.to)


def _transfer_message(change: TransferGrant) -> tuple[str, operations_pb2.TransferGrant]:
    return "transfer_grant", operations_pb2.TransferGrant(
        group=change.group, stream=change.stream, to=change.to
    )


def _revoke(message: operations_pb2.RevokeGrant) -> RevokeGrant:
    return RevokeGrant(message.group, message.stream)


def _revoke_message(change: RevokeGrant) -> tuple[str, operations_pb2.RevokeGrant]:
    return "revoke_grant", operations_pb2.RevokeGrant(group=change.group, stream=change.stream)


def _evict(message: operations_pb2.Evict) -> Evict:
    grace_ms = message.grace_ms if message.HasField("grace_ms") else None
    ban_ms = message.ban_ms if message.HasField("ban_ms") else None
    return Evict(message.group, message.borrower, grace_ms, ban_ms)


def _evict_message(change: Evict) -> tuple[str, operations_pb2.Evict]:
    return "evict", operations_pb2.Evict(
        group=change.group,
        borrower=change.borrower,
        grace_ms=change.grace_ms,
        ban_ms=change.ban_ms,
    )


def _pause_group(message: operations_pb2.PauseGroup) -> PauseGroup:
    return PauseGroup(message.group, message.until_ms if message.HasField("until_ms") else None)


def _pause_group_message(change: PauseGroup) -> tuple[str, operations_pb2.PauseGroup]:
    return "pause_group", operations_pb2.PauseGroup(group=change.group, until_ms=change.until_ms)


def _resume_group(message: operations_pb2.ResumeGroup) -> ResumeGroup:
    return ResumeGroup(message.group)


def _resume_group_message(change: ResumeGroup) -> tuple[str, operations_pb2.ResumeGroup]:
    return "resume_group", operations_pb2.ResumeGroup(group=change.group)


def _undo(message: operations_pb2.Undo) -> Undo:
    return Undo(message.number)


def _undo_message(change: Undo) -> tuple[str, operations_pb2.Undo]:
    return "undo", operations_pb2.Undo(number=change.number)


def _offset(offset: int) -> int:
    if offset > OFFSET_MAX:
        raise IllegalArgument(argument=f"the offset {offset}", rule=f"it is at most {OFFSET_MAX}")
    return offset


_TARGETS: Mapping[str, Callable[[Any], Target]] = {
    "earliest": lambda _: ToEarliest(),
    "latest": lambda _: ToLatest(),
    "time_us": ToTime,
    "offset": lambda offset: ToOffset(_offset(offset)),
    "records": ByRecords,
    "span_ms": BySpan,
}

_DECODERS: Mapping[str, Callable[[Any], Change]] = {
    "move_cursors": _move_cursors,
    "import_offsets": _import_offsets,
    "skip_records": _skip_records,
    "undo": _undo,
    "edit_group": simple_changes.edit_group,
    "remove_group": simple_changes.remove_group,
    "edit_topic": simple_changes.edit_topic,
    "remove_topic": simple_changes.remove_topic,
    "close_session": simple_changes.close_session,
    "rebalance": _rebalance,
    "transfer_grant": _transfer,
    "revoke_grant": _revoke,
    "evict": _evict,
    "pause_group": _pause_group,
    "resume_group": _resume_group,
    **SCHEDULE_DECODERS,
    **JOB_DECODERS,
}

_ENCODERS: Mapping[type[Change], Callable[[Any], tuple[str, Any]]] = {
    MoveCursors: _move_cursors_message,
    ImportOffsets: _import_offsets_message,
    SkipRecords: _skip_records_message,
    Undo: _undo_message,
    EditGroup: simple_changes.edit_group_message,
    RemoveGroup: simple_changes.remove_group_message,
    EditTopic: simple_changes.edit_topic_message,
    RemoveTopic: simple_changes.remove_topic_message,
    CloseSession: simple_changes.close_session_message,
    Rebalance: _rebalance_message,
    TransferGrant: _transfer_message,
    RevokeGrant: _revoke_message,
    Evict: _evict_message,
    PauseGroup: _pause_group_message,
    ResumeGroup: _resume_group_message,
    **SCHEDULE_ENCODERS,
    **JOB_ENCODERS,
}
