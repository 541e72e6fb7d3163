"""Changes, plans and operations as they go over the wire.

Invariant: a change that comes from the wire is untrusted; what does not fit is refused here or by
its kind, and nothing is done.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from google.protobuf.message import Message

from dss_api.changes import change_from, change_message
from dss_api.v1 import operations_pb2, types_pb2
from dss_api.values import encoded, message_of
from dss_core.changes import Change
from dss_core.errors import IllegalArgument, StreamNotFound
from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_core.redaction import masked, masked_json
from dssd.leaders.progress_columns import unpacked_ranges
from dssd.machines.start_point import OFFSET_MAX
from dssd.operations.history import undo_ends_ms
from dssd.operations.plans import Plan
from dssd.store.rows import MadeMoveRow, OperationRow, PendingMoveRow
from dssd.topics.catalogue import Catalogue

DETAIL_LISTED_BYTES_MAX = 2_000
"""Of a change, and of what was before and after it, in a listing: so a page of 500 stays below the
4 MB of a message."""


def asked_change(message: operations_pb2.Change) -> Change:
    """The change that a caller asks for.

    Raises:
        IllegalArgument: it is none, or a number in it is larger than the store can keep.
    """
    _check_numbers(message)
    return change_from(message)


def _check_numbers(message: Message) -> None:
    for field, value in message.ListFields():
        for each in value if field.is_repeated else (value,):
            if isinstance(each, Message):
                _check_numbers(each)
            elif isinstance(each, int) and each > OFFSET_MAX:
                name = f"{field.name} {each}"
                raise IllegalArgument(argument=name, rule=f"it is at most {OFFSET_MAX}")


def plan_message(plan: Plan, now_ms: int) -> operations_pb2.OperationPlan:
    """A plan, made at a time by the wall clock."""
    undoable = not plan.not_undoable_because
    return message_of(
        operations_pb2.OperationPlan,
        plan,
        change=change_message(plan.change),
        undoable=undoable,
        undoable_until_ms=undo_ends_ms(now_ms) if undoable else None,
        planned_at_ms=now_ms,
    )


def operation_message(row: OperationRow) -> operations_pb2.Operation:
    """An operation without its streams."""
    shown = replace(
        row,
        summary=masked(row.summary),
        change=masked_json(row.change),
        before=masked_json(row.before),
        after=masked_json(row.after),
        failure=masked(row.failure),
    )
    undoable = not row.not_undoable_because and not row.undone_by
    return message_of(operations_pb2.Operation, shown, undoable=undoable)


def listed_message(row: OperationRow) -> operations_pb2.Operation:
    """An operation of a page: what is long is left to `Get`."""
    change, before, after = map(_unless_long, (row.change, row.before, row.after))
    return operation_message(replace(row, change=change, before=before, after=after))


def _unless_long(detail: str) -> str:
    return detail if len(detail) <= DETAIL_LISTED_BYTES_MAX else ""


def asked_moves(row: OperationRow) -> int:
    """How many cursors the operation was to move."""
    moves = json.loads(row.after).get("moves", 0)
    return moves if isinstance(moves, int) else 0


def stream_messages(
    made: Sequence[MadeMoveRow],
    pending: Sequence[PendingMoveRow],
    holders: Mapping[StreamId, str],
    catalogue: Catalogue,
) -> Iterator[operations_pb2.OperatedStream]:
    """The streams whose cursors an operation moved, and those that it waits for."""
    for move in made:
        with suppress(StreamNotFound):  # its topic was removed
            yield operations_pb2.OperatedStream(
                stream=_name(move, catalogue),
                done=True,
                before=_progress(move.floor_before, move.ranges_before),
                after=_progress(move.floor_after, move.ranges_after),
            )
    for waiting in pending:
        with suppress(StreamNotFound):
            stream = StreamId(waiting.storage_topic_id, waiting.partition)
            yield operations_pb2.OperatedStream(
                stream=_name(waiting, catalogue), client_id=holders.get(stream, "")
            )


def _name(row: MadeMoveRow | PendingMoveRow, catalogue: Catalogue) -> str:
    return str(catalogue.name_of(StreamId(row.storage_topic_id, row.partition)))


def _progress(floor: int, ranges: bytes) -> types_pb2.Progress:
    return encoded(Progress(floor, unpacked_ranges(ranges)), types_pb2.Progress)
