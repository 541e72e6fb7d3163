"""What applying a change would do: the plan, and what a kind of operation is.

Invariant: a plan changes nothing, and is made anew when it is applied; what makes the second one
the same as the first is that its change is resolved, and that the revision did not move.
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
"""All kinds of operations: for what must not wait for any."""


Cancellation = Instruction | Callable[[], None]
"""What stops the rest of an operation: the leader of its group is told, or it is called."""


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
    """Client ids that it touches."""
    not_undoable_because: str = ""
    """Empty: it can be undone."""
    nothing_to_do: bool = False
    undoes: int = 0
    """The operation that it takes back; 0: none."""
    reason: str = ""
    """Of the operator, once it is applied."""
    principal: str = ""
    """Who applies it, then."""
    beside: Container[str] = frozenset()
    """Kinds of operations that may still run on its subject when it is applied."""
    touches: tuple[str, ...] = ()
    """Further subjects: it rests on how they are, so no operation may run on them either."""
    reopened: tuple[tuple[str, StreamId, Ranges], ...] = ()
    """By stream, what is acknowledged now and will not be any more."""
    found: Any = field(default=None, repr=False, compare=False)
    """What its kind found when it planned, and need not look for when it begins."""


@dataclass(frozen=True, slots=True)
class Worked:
    """What work came to that has something to tell."""

    after: Mapping[str, Any]
    """Kept with the operation."""
    failure: str = ""
    """Empty: it was done."""
    is_undoable: bool = False
    """It can be taken back now, whatever its plan said: what stands against that was not done."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What the commit of an operation holds besides its own row, and what follows it."""

    writes: Sequence[Write] = ()
    preconditions: Sequence[Precondition] = ()
    group: GroupRow | None = None
    """The group as the operation leaves it, its revision aside."""
    instruction: Instruction | None = None
    """What the leader of the group shall do; the operation is done when it has."""
    work: Callable[[], Awaitable[Worked | None]] | None = None
    """What is to be done instead of that; the operation is done when it returns."""
    committed: Callable[[], None] | None = None
    """Tells memory, at once, what the commit made of other rows than that of the group."""
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Made:
    """What an operation has done by now, or had done when its rest was given up."""

    done: int
    of: int
    what: str = ""
    """What is counted, for people: streams have changed hands. Empty: nothing to count."""


class OperationKind(Protocol):
    """One kind of operation, or a few that are alike."""

    async def plan(self, change: Any) -> Plan:  # noqa: ANN401 - each kind takes its own changes
        """What the change would do.

        Raises:
            DssError: it cannot be done.
        """

    async def begin(self, plan: Plan, number: int) -> Begun:
        """What the operation of that number commits to do what was planned."""

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """What taking the operation back would do.

        Raises:
            NotUndoable: it cannot be taken back.
        """

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """What the operation of that number commits to take the other one back."""

    async def resumed(self, row: OperationRow) -> Begun:
        """What is left to do of an operation that was running when the daemon ended."""

    def cancellation(self, row: OperationRow) -> Cancellation | None:
        """What stops the rest of it; None where nothing does."""

    async def made(self, row: OperationRow) -> Made:
        """What it has done, once nothing of it is under way; asked only where it was cancelled."""


@runtime_checkable
class CountsRecords(Protocol):
    """A kind whose streams say too little of how far it is: it deals with records one by one."""

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
    """By an operation's kind, or by what stands before one of its dots; the longest counts."""

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
    """The kind of what an operation does, takes back or does once more."""
    return kind.removesuffix(".undo").removesuffix(".redo")


def subject_of(group: GroupRow) -> str:
    """A group as operations name it."""
    return group.full_name


def change_text(change: Change) -> str:
    """The change as JSON, for people and programs that look at an operation."""
    return json.dumps(
        {"change": type(change).__name__, **asdict(change)}, sort_keys=True, default=bytes.hex
    )
