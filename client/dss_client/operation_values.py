"""Plans and operations, as the daemon tells of them.

Invariant: frozen values out; no wire message leaves this module.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_client.changes import Change, StreamMove
from dss_client.offsets import progress_from_wire
from dss_core.progress import Progress

if TYPE_CHECKING:
    from dss_api.v1 import operations_pb2


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What a change would do to one stream."""

    stream: str
    floor: int
    """As it stands now."""
    target: int
    again: int
    """Records that come again."""
    passed: int
    """Records that are passed over."""
    exact: bool
    """Else both are upper bounds."""
    clamped: bool
    """Retention took what lies before the target."""
    client_id: str
    """Of the holder; empty where it is free."""


@dataclass(frozen=True, slots=True)
class OperationPlan:
    """What applying a change would do, as the daemon saw it."""

    change: Change
    """Resolved: applied under this revision, it does exactly this."""
    kind: str
    """``offsets.rewind`` for one."""
    subject: str
    """A group NAME@FILTER, a topic, a client."""
    revision: int
    """Of the subject."""
    summary: str
    streams: tuple[StreamPlan, ...]
    moves: tuple[StreamMove, ...]
    effects: tuple[str, ...]
    """Sentences: what it costs, what is kept of order."""
    members: tuple[str, ...]
    """Client ids that it touches."""
    undoable: bool
    not_undoable_because: str
    undoable_until_ms: int | None
    nothing_to_do: bool
    planned_at_ms: int


@dataclass(frozen=True, slots=True)
class OperatedStream:
    """A stream of an operation that moves cursors."""

    stream: str
    done: bool
    before: Progress | None
    """Once it is done."""
    after: Progress | None
    client_id: str
    """Whom it waits for; empty where for nobody."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A change that was applied, and how far it is."""

    number: int
    operation_id: str
    kind: str
    subject: str
    state: str
    """``running``, ``cancelling``, ``done``, ``cancelled`` or ``failed``."""
    summary: str
    reason: str
    principal: str
    origin: str
    """Where the call came from."""
    applied_at_ms: int
    ended_at_ms: int | None
    revision: int
    """Of the subject, once it was applied."""
    change: str
    """Resolved; JSON, as are the next two."""
    before: str
    after: str
    failure: str
    """Why it failed; empty where it did not."""
    undoes: int
    """The operation that it took back; 0 where none."""
    undone_by: int
    """0 where nothing took it back."""
    undoable: bool
    not_undoable_because: str
    streams_done: int
    streams_waiting: int
    streams: tuple[OperatedStream, ...]
    """Not filled by `Operations.list`."""

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to wait for."""
        return self.state not in ("running", "cancelling")


def plan_from_wire(plan: "operations_pb2.OperationPlan") -> OperationPlan:
    """A plan as a value of our own."""
    from dss_client._changes_on_wire import change_from_wire, moves_from_wire

    return OperationPlan(
        change=change_from_wire(plan.change),
        kind=plan.kind,
        subject=plan.subject,
        revision=plan.revision,
        summary=plan.summary,
        streams=tuple(
            StreamPlan(
                each.stream,
                each.floor,
                each.target,
                each.again,
                each.passed,
                each.exact,
                each.clamped,
                each.client_id,
            )
            for each in plan.streams
        ),
        moves=moves_from_wire(plan.moves),
        effects=tuple(plan.effects),
        members=tuple(plan.members),
        undoable=plan.undoable,
        not_undoable_because=plan.not_undoable_because,
        undoable_until_ms=plan.undoable_until_ms if plan.HasField("undoable_until_ms") else None,
        nothing_to_do=plan.nothing_to_do,
        planned_at_ms=plan.planned_at_ms,
    )


def operation_from_wire(operation: "operations_pb2.Operation") -> Operation:
    """An operation as a value of our own."""
    return Operation(
        number=operation.number,
        operation_id=operation.operation_id,
        kind=operation.kind,
        subject=operation.subject,
        state=operation.state,
        summary=operation.summary,
        reason=operation.reason,
        principal=operation.principal,
        origin=operation.origin,
        applied_at_ms=operation.applied_at_ms,
        ended_at_ms=operation.ended_at_ms if operation.HasField("ended_at_ms") else None,
        revision=operation.revision,
        change=operation.change,
        before=operation.before,
        after=operation.after,
        failure=operation.failure,
        undoes=operation.undoes,
        undone_by=operation.undone_by,
        undoable=operation.undoable,
        not_undoable_because=operation.not_undoable_because,
        streams_done=operation.streams_done,
        streams_waiting=operation.streams_waiting,
        streams=tuple(_operated_stream(each) for each in operation.streams),
    )


def _operated_stream(stream: "operations_pb2.OperatedStream") -> OperatedStream:
    return OperatedStream(
        stream=stream.stream,
        done=stream.done,
        before=progress_from_wire(stream.before) if stream.HasField("before") else None,
        after=progress_from_wire(stream.after) if stream.HasField("after") else None,
        client_id=stream.client_id,
    )
