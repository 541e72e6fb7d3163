"""Plans and operations, as the daemon tells of them.

Invariant: frozen values out; no wire message leaves this module.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_client.changes import Change, StreamMove
from dss_core.answers import StreamPlan as StreamPlan
from dss_core.progress import Progress

if TYPE_CHECKING:
    from dss_api.v1 import operations_pb2


@dataclass(frozen=True, slots=True)
class OperationPlan:
    """What applying a change would do, as the daemon saw it."""

    change: Change
    """Resolved: applied under this revision, it does exactly this."""
    kind: str
    """Such as ``offsets.rewind``."""
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
    """The client that it waits for; empty where there is none."""


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
    records_done: int | None = None
    """Dead letters that came back, or were given up, by now; while an operation on them runs."""
    records_asked: int | None = None
    """Of so many."""

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to wait for."""
        return self.state not in ("running", "cancelling")


def plan_from_wire(plan: "operations_pb2.OperationPlan") -> OperationPlan:
    """A plan as a value of our own."""
    from dss_api.values import decoded
    from dss_client._changes_on_wire import change_from_wire

    return decoded(plan, OperationPlan, change=change_from_wire(plan.change))
