"""The plan, which says what applying a change would do, and the interface of a kind of operation.

Invariant: a plan changes nothing, and is made anew when it is applied. The second plan equals the
first, because its change is resolved and the revision has not moved.
"""

import json
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable

from dss_core.answers import StreamPlan
from dss_core.changes import Change, StreamMove
from dss_core.ids import StreamId
from dss_core.progress import Ranges
from dssd.machines.leader.events import Instruction
from dssd.store.port import Precondition, Write
from dssd.store.rows import GroupRow, OperationRow


class _Everything(Container[str]):
    def __contains__(self, kind: object) -> bool:
        return True


EVERYTHING: Container[str] = _Everything()
"""All kinds of operations: for an operation that waits for none."""


Cancellation = Instruction | Callable[[], None]
"""Stops the rest of an operation: an instruction for the leader, or a function to call."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What applying a change would do now."""

    change: Change
    """Resolved."""
    kind: str
    subject: str
    """A group NAME@FILTER, a topic, a client."""
    revision: int
    """Of the subject."""
    summary: str
    group: GroupRow | None = None
    streams: tuple[StreamPlan, ...] = ()
    moves: tuple[StreamMove, ...] = ()
    effects: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    """The client ids of members that it affects."""
    not_undoable_because: str = ""
    """Empty: it can be undone."""
    nothing_to_do: bool = False
    undoes: int = 0
    """The operation that it takes back; 0: none."""
    reason: str = ""
    """The operator's reason, once it is applied."""
    principal: str = ""
    """Who applies it, then."""
    beside: Container[str] = frozenset()
    """Kinds of operations that may still run on its subject when it is applied."""
    touches: tuple[str, ...] = ()
    """Further subjects that it depends on: no operation may run on them either."""
    reopened: tuple[tuple[str, StreamId, Ranges], ...] = ()
    """By stream, the acknowledged offsets that it reopens."""
    found: Any = field(default=None, repr=False, compare=False)
    """Findings of the plan that its kind needs again when it begins."""


@dataclass(frozen=True, slots=True)
class Worked:
    """The result of an operation's work."""

    after: Mapping[str, Any]
    """Kept with the operation."""
    failure: str = ""
    """Empty: it was done."""
    is_undoable: bool = False
    """It can be undone, whatever its plan said: the part that prevents an undo was not done."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The commit of an operation, besides its own row, and the work that follows."""

    writes: Sequence[Write] = ()
    preconditions: Sequence[Precondition] = ()
    group: GroupRow | None = None
    """The new row of the group, except for its revision."""
    instruction: Instruction | None = None
    """The instruction for the group's leader; the operation is done when it is concluded."""
    work: Callable[[], Awaitable[Worked | None]] | None = None
    """The work to do instead; the operation is done when it returns."""
    committed: Callable[[], None] | None = None
    """Called right after the commit, to update memory for rows other than the group's."""
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Made:
    """What an operation has done by now, or had done when it was cancelled."""

    done: int
    of: int
    what: str = ""
    """The words for the count, as in "streams have changed hands". Empty: nothing to count."""


class OperationKind(Protocol):
    """One kind of operation, or a few that are alike."""

    async def plan(self, change: Any) -> Plan:  # noqa: ANN401 - each kind takes its own changes
        """What the change would do.

        Raises:
            DssError: it cannot be done.
        """

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The commit and the work of the operation of that number, as planned."""

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """What an undo of the operation would do.

        Raises:
            NotUndoable: it cannot be taken back.
        """

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """The commit and the work of the operation of that number, which undoes the other one."""

    async def resumed(self, row: OperationRow) -> Begun:
        """The remaining work of an operation that was running when the daemon ended."""

    def cancellation(self, row: OperationRow) -> Cancellation | None:
        """How to stop the rest of it; None: it cannot be stopped."""

    async def made(self, row: OperationRow) -> Made:
        """What it has done, once no work is under way; called only after a cancellation."""


@runtime_checkable
class CountsRecords(Protocol):
    """A kind that counts its progress in records, not in streams."""

    async def records_made(self, row: OperationRow) -> Made:
        """How many records it has dealt with by now."""


@runtime_checkable
class FallsShort(Protocol):
    """A kind that may find, once it is done, that some of what it named was no longer there."""

    async def fell_short(self, row: OperationRow) -> Worked | None:
        """How it ends then; None where all of it was done."""


@dataclass(frozen=True, slots=True)
class KindTable:
    """Which kind plans a change, and which one takes an operation back."""

    by_change: Mapping[type[Change], OperationKind]
    by_name: Mapping[str, OperationKind]
    """By an operation's kind, or a prefix of it before a dot; the longest match counts."""

    def joined(self, other: "KindTable") -> "KindTable":
        """With the kinds of another part of the daemon."""
        return KindTable({**self.by_change, **other.by_change}, {**self.by_name, **other.by_name})

    def of_operation(self, row: OperationRow) -> OperationKind:
        """The kind of an operation that was applied."""
        name = row.kind
        while name not in self.by_name:
            name, dot, _ = name.rpartition(".")
            assert dot, row.kind
        return self.by_name[name]


def done_or_undone(kind: str) -> str:
    """The kind of an operation without ``.undo`` and ``.redo``."""
    return kind.removesuffix(".undo").removesuffix(".redo")


def subject_of(group: GroupRow) -> str:
    """A group as operations name it."""
    return group.full_name


def change_text(change: Change) -> str:
    """The change as JSON, for people and programs that look at an operation."""
    return json.dumps(
        {"change": type(change).__name__, **asdict(change)}, sort_keys=True, default=bytes.hex
    )
