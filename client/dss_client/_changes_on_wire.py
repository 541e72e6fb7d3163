"""Changes to the wire and back, and as JSON documents.

Invariant: what was encoded is decoded as the same change, but for the spelling of its target.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from datetime import timedelta
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from dss_api.v1 import jobs_pb2
from dss_api.v1 import operations_pb2 as pb
from dss_client._start_point import time_us
from dss_client.changes import (
    CancelJob,
    Change,
    CloseSession,
    CreateJob,
    CreateSchedule,
    EditGroup,
    EditSchedule,
    EditTopic,
    Evict,
    ImportOffsets,
    MoveCursors,
    PauseGroup,
    PauseJob,
    PauseSchedule,
    Rebalance,
    RecordSpan,
    RemoveGroup,
    RemoveJob,
    RemoveSchedule,
    RemoveTopic,
    ResumeGroup,
    ResumeJob,
    ResumeSchedule,
    RevokeGrant,
    RunTask,
    SkipRecords,
    StreamMove,
    StreamTarget,
    Target,
    TransferGrant,
    Undo,
)
from dss_client.groups import on_damage_from_wire, on_damage_to_wire
from dss_client.job_values import JobInput
from dss_client.jobs import source_range_from_wire
from dss_client.offsets import offsets_from_wire, offsets_to_wire
from dss_core.errors import IllegalArgument

_DIRECTIONS = {
    "rewind": pb.CURSOR_DIRECTION_REWIND,
    "skip": pb.CURSOR_DIRECTION_SKIP,
    "seek": pb.CURSOR_DIRECTION_SEEK,
}
_PLAIN: Mapping[type[Change], str] = {
    SkipRecords: "skip_records",
    Undo: "undo",
    PauseGroup: "pause_group",
    ResumeGroup: "resume_group",
    Evict: "evict",
    TransferGrant: "transfer_grant",
    RevokeGrant: "revoke_grant",
    RemoveGroup: "remove_group",
    EditTopic: "edit_topic",
    RemoveTopic: "remove_topic",
    CloseSession: "close_session",
    RunTask: "run_task",
    CreateSchedule: "create_schedule",
    EditSchedule: "edit_schedule",
    RemoveSchedule: "remove_schedule",
    PauseSchedule: "pause_schedule",
    ResumeSchedule: "resume_schedule",
    PauseJob: "pause_job",
    ResumeJob: "resume_job",
    CancelJob: "cancel_job",
    RemoveJob: "remove_job",
}
"""Changes whose fields the wire has under the same names, and their own name there."""
_MS = timedelta(milliseconds=1)


def change_to_wire(change: Change) -> pb.Change:
    """The change as the wire has it.

    Raises:
        IllegalArgument, IllegalTime: a value breaks its rule.
    """
    try:
        return _encoded(change)
    except (ValueError, OverflowError) as problem:
        # What protobuf says of a number that does not fit its field. The change may hold a secret.
        raise IllegalArgument(argument="this change", rule=str(problem)) from problem


def document_of(change: Change) -> dict[str, object]:
    """The change as a JSON document."""
    message = change_to_wire(change)
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def change_of(document: Mapping[str, object]) -> Change:
    """The change of a document.

    Raises:
        IllegalArgument: it is not one.
    """
    try:
        return change_from_wire(json_format.ParseDict(dict(document), pb.Change()))
    except json_format.ParseError as problem:
        raise IllegalArgument(argument="the change", rule=str(problem)) from problem


def _encoded(change: Change) -> pb.Change:
    match change:
        case MoveCursors():
            return pb.Change(move_cursors=_moved_cursors(change))
        case ImportOffsets(group, offsets):
            streams = (offsets_to_wire(each) for each in offsets)
            return pb.Change(import_offsets=pb.ImportOffsets(group=group, streams=streams))
        case Rebalance(group, moves_max, moves):
            moved = (_move_to_wire(each) for each in moves)
            rebalance = pb.Rebalance(group=group, moves_max=moves_max, moves=moved)
            return pb.Change(rebalance=rebalance)
        case EditGroup(group, ack_wait_ms, on_damage):
            damage = on_damage_to_wire(on_damage)
            edit = pb.EditGroup(group=group, ack_wait_ms=ack_wait_ms, on_damage=damage)
            return pb.Change(edit_group=edit)
        case CreateJob():
            return pb.Change(create_job=_created_job(change))
        case _:
            values = asdict(change)
            message: dict[str, Any] = {_PLAIN[type(change)]: values}
            return pb.Change(**message)


def _created_job(change: CreateJob) -> pb.CreateJob:
    plain = {field.name: getattr(change, field.name) for field in fields(change)}
    inputs = [
        pb.JobInput(text=each.text, records=each.records, bytes=each.bytes)
        for each in change.inputs
    ]
    ranges = [
        jobs_pb2.SourceRange(
            stream=each.stream,
            storage_topic_id=each.storage_topic_id,
            partition=each.partition,
            start=each.start,
            end=each.end,
        )
        for each in change.ranges
    ]
    return pb.CreateJob(**{**plain, "inputs": inputs, "ranges": ranges})


def _moved_cursors(change: MoveCursors) -> pb.MoveCursors:
    if change.direction not in _DIRECTIONS:
        rule = f"it is one of {', '.join(_DIRECTIONS)}"
        raise IllegalArgument(argument=f"direction {change.direction}", rule=rule)
    if change.to is not None and change.by is not None:
        raise IllegalArgument(argument="the target", rule="say either where to, or by how much")
    message = pb.MoveCursors(
        group=change.group,
        direction=_DIRECTIONS[change.direction],
        streams=change.streams,
        targets=(
            pb.StreamTarget(
                stream=each.stream, storage_topic_id=each.storage_topic_id, offset=each.offset
            )
            for each in change.targets
        ),
    )
    if change.to is not None:
        _put_target(message, change.to)
    elif isinstance(change.by, timedelta):
        message.span_ms = change.by // _MS
    elif change.by is not None:
        message.records = change.by
    return message


def _put_target(message: pb.MoveCursors, to: Target) -> None:
    match to:
        case "earliest":
            message.earliest = True
        case "latest" | "now":
            message.latest = True
        case int():
            message.offset = to
        case str() if to.startswith("=") and to[1:].isascii() and to[1:].isdecimal():
            message.offset = int(to[1:])
        case _:
            message.time_us = time_us(to)


def _move_to_wire(move: StreamMove) -> pb.StreamMove:
    return pb.StreamMove(
        stream=move.stream,
        from_client_id=move.from_client_id,
        to_client_id=move.to_client_id,
        from_borrower_id=bytes.fromhex(move.from_borrower_id),
        to_borrower_id=bytes.fromhex(move.to_borrower_id),
    )


def moves_from_wire(moves: Iterable[pb.StreamMove]) -> tuple[StreamMove, ...]:
    """Moves as values of our own."""
    return tuple(
        StreamMove(
            each.stream,
            each.from_client_id,
            each.to_client_id,
            each.from_borrower_id.hex(),
            each.to_borrower_id.hex(),
        )
        for each in moves
    )


def change_from_wire(change: pb.Change) -> Change:
    """The change as a value of our own.

    Raises:
        IllegalArgument: it is of a kind that this version does not know.
    """
    which = change.WhichOneof("change")
    if which is None:
        raise IllegalArgument(argument="the change", rule="it is of an unknown kind")
    return _DECODERS[which](change)


def _number(message: Message, field: str) -> int | None:
    """A number that may be absent."""
    if not message.HasField(field):
        return None
    number: int = getattr(message, field)
    return number


def _pause_group(pause: pb.PauseGroup) -> PauseGroup:
    return PauseGroup(pause.group, _number(pause, "until_ms"))


def _import_offsets(imported: pb.ImportOffsets) -> ImportOffsets:
    return ImportOffsets(
        imported.group, tuple(offsets_from_wire(each) for each in imported.streams)
    )


def _skip_records(skip: pb.SkipRecords) -> SkipRecords:
    more = tuple(RecordSpan(each.stream, each.offset, each.count or 1) for each in skip.more)
    return SkipRecords(skip.group, skip.stream, skip.offset, skip.count or 1, more)


def _rebalance(rebalance: pb.Rebalance) -> Rebalance:
    moves = moves_from_wire(rebalance.moves)
    return Rebalance(rebalance.group, _number(rebalance, "moves_max"), moves)


def _evict(evict: pb.Evict) -> Evict:
    return Evict(evict.group, evict.borrower, _number(evict, "grace_ms"), _number(evict, "ban_ms"))


def _transfer_grant(transfer: pb.TransferGrant) -> TransferGrant:
    return TransferGrant(transfer.group, transfer.stream, transfer.to)


def _move_cursors(move: pb.MoveCursors) -> MoveCursors:
    words = {number: word for word, number in _DIRECTIONS.items()}
    to: Target | None = None
    by: int | timedelta | None = None
    match move.WhichOneof("to"):
        case "earliest":
            to = "earliest"
        case "latest":
            to = "latest"
        case "time_us":
            to = f"@{move.time_us // 1_000_000}.{move.time_us % 1_000_000:06}"
        case "offset":
            to = move.offset
        case "records":
            by = move.records
        case "span_ms":
            by = timedelta(milliseconds=move.span_ms)
        case None:
            pass
    return MoveCursors(
        group=move.group,
        direction=words.get(move.direction, ""),
        to=to,
        by=by,
        streams=tuple(move.streams),
        targets=tuple(
            StreamTarget(each.stream, each.storage_topic_id, each.offset) for each in move.targets
        ),
    )


def _edit_group(edit: pb.EditGroup) -> EditGroup:
    return EditGroup(
        group=edit.group,
        ack_wait_ms=_number(edit, "ack_wait_ms"),
        on_damage=on_damage_from_wire(edit.on_damage) if edit.on_damage else None,
    )


def _edit_topic(edit: pb.EditTopic) -> EditTopic:
    return EditTopic(
        topic=edit.topic,
        retention_ms=_number(edit, "retention_ms"),
        retention_bytes=_number(edit, "retention_bytes"),
        no_retention_ms=edit.no_retention_ms,
        no_retention_bytes=edit.no_retention_bytes,
        durability=edit.durability or None,
    )


_SETTINGS = (
    "time_zone", "jitter_ms", "overlap", "catch_up_ms", "timeout_ms", "retries", "backoff_ms",
)  # fmt: skip
"""Of a schedule that is made or edited."""


def _present(message: Message, names: Iterable[str]) -> dict[str, Any]:
    """Fields that may be absent."""
    return {name: getattr(message, name) for name in names if message.HasField(name)}


def _run_task(run: pb.RunTask) -> RunTask:
    return RunTask(run.task, dict(run.arguments), _number(run, "timeout_ms"))


def _create_schedule(create: pb.CreateSchedule) -> CreateSchedule:
    return CreateSchedule(
        create.schedule,
        create.task,
        create.cron,
        dict(create.arguments),
        paused=create.paused,
        **_present(create, _SETTINGS),
    )


def _edit_schedule(edit: pb.EditSchedule) -> EditSchedule:
    return EditSchedule(
        edit.schedule,
        arguments=dict(edit.arguments),
        no_arguments=tuple(edit.no_arguments),
        **_present(edit, ("cron", *_SETTINGS)),
    )


def _create_job(created: pb.CreateJob) -> CreateJob:
    return CreateJob(
        name=created.name,
        kind=created.kind,
        engine=created.engine,
        source=created.source,
        start_us=_number(created, "start_us"),
        end_us=_number(created, "end_us"),
        filter=created.filter,
        target=created.target,
        rate_bytes_s=created.rate_bytes_s,
        chunk_bytes=created.chunk_bytes,
        hops_max=created.hops_max,
        allow_loop=created.allow_loop,
        params=created.params,
        inputs=tuple(JobInput(each.text, each.records, each.bytes) for each in created.inputs),
        ranges=tuple(map(source_range_from_wire, created.ranges)),
    )


_DECODERS: Mapping[str, Callable[[pb.Change], Change]] = {
    "move_cursors": lambda change: _move_cursors(change.move_cursors),
    "import_offsets": lambda change: _import_offsets(change.import_offsets),
    "skip_records": lambda change: _skip_records(change.skip_records),
    "undo": lambda change: Undo(change.undo.number),
    "pause_group": lambda change: _pause_group(change.pause_group),
    "resume_group": lambda change: ResumeGroup(change.resume_group.group),
    "rebalance": lambda change: _rebalance(change.rebalance),
    "evict": lambda change: _evict(change.evict),
    "transfer_grant": lambda change: _transfer_grant(change.transfer_grant),
    "revoke_grant": lambda change: RevokeGrant(
        change.revoke_grant.group, change.revoke_grant.stream
    ),
    "edit_group": lambda change: _edit_group(change.edit_group),
    "remove_group": lambda change: RemoveGroup(change.remove_group.group),
    "edit_topic": lambda change: _edit_topic(change.edit_topic),
    "remove_topic": lambda change: RemoveTopic(
        change.remove_topic.topic, change.remove_topic.force
    ),
    "close_session": lambda change: CloseSession(
        change.close_session.client_id, change.close_session.session_id
    ),
    "run_task": lambda change: _run_task(change.run_task),
    "create_schedule": lambda change: _create_schedule(change.create_schedule),
    "edit_schedule": lambda change: _edit_schedule(change.edit_schedule),
    "remove_schedule": lambda change: RemoveSchedule(change.remove_schedule.schedule),
    "pause_schedule": lambda change: PauseSchedule(change.pause_schedule.schedule),
    "resume_schedule": lambda change: ResumeSchedule(change.resume_schedule.schedule),
    "create_job": lambda change: _create_job(change.create_job),
    "pause_job": lambda change: PauseJob(change.pause_job.job),
    "resume_job": lambda change: ResumeJob(change.resume_job.job),
    "cancel_job": lambda change: CancelJob(change.cancel_job.job),
    "remove_job": lambda change: RemoveJob(change.remove_job.job),
}
