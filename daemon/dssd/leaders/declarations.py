"""What a declaration of a group asks for, and whether a group that is there is that.

Invariant: values and their rules only; nothing here is committed or remembered.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dss_core.errors import GroupOfAnotherKind, IllegalArgument, StartConflict
from dss_core.filters import SubscriptionFilter, TopicFilter
from dssd.limits import ACK_WAIT_MS_MAX
from dssd.machines.start_point import StartPoint, shown_start, start_text
from dssd.store.port import Precondition, Write
from dssd.store.rows import GroupRow

PASS, STALL = "pass", "stall"
"""What becomes of records that are confirmed damaged."""

EXCLUSIVE = "exclusive"
"""The kind of a private subscription's group, which its session owns."""

SESSION_DIGITS = 12
"""Of a session id, in the name of an exclusive group."""


Beside = Callable[[GroupRow], Sequence[Write]]
"""What is written together with a group that is being declared."""


def nothing_beside(group: GroupRow) -> Sequence[Write]:
    """Nothing more is written."""
    return ()


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """The group that a declaration asks for."""

    name: str
    filter: TopicFilter
    kind: str
    start: StartPoint | None
    ack_wait_ms: int | None
    session_id: bytes | None = None
    protocol: str | None = None
    on_damage: str | None = None
    fence: Precondition | None = None
    beside: Beside = nothing_beside

    @property
    def key(self) -> tuple[str, str]:
        """Name and filter: what makes it this group."""
        return self.name, self.filter.text


def check_settings(ack_wait_ms: int, on_damage: str) -> None:
    """Refuse settings that no group can have.

    Raises:
        IllegalArgument: a value is out of its bounds.
    """
    if not 0 < ack_wait_ms <= ACK_WAIT_MS_MAX:
        raise IllegalArgument(argument="ack_wait", rule=f"1 to {ACK_WAIT_MS_MAX:,} ms")
    if on_damage not in (PASS, STALL):
        raise IllegalArgument(argument="on_damage", rule=f"{PASS} or {STALL}")


def asked_by_session(
    parsed: SubscriptionFilter,
    start: StartPoint | None,
    ack_wait_ms: int | None,
    session_id: bytes,
    subscription: int,
) -> GroupRequest:
    """What a subscription asks for: a shared group, or one of its own."""
    if parsed.group is not None:
        return GroupRequest(parsed.group, parsed.filter, kind_asked(parsed), start, ack_wait_ms)
    name = f"~{session_id.hex()[:SESSION_DIGITS]}/{subscription}"
    return GroupRequest(name, parsed.filter, EXCLUSIVE, start, ack_wait_ms, session_id)


def kind_asked(parsed: SubscriptionFilter) -> str:
    """The kind that is written in the filter."""
    return "queue" if parsed.queue else "shared"


def check_kind(group: GroupRow, asked: str) -> None:
    """Refuse a group that was declared as something else.

    What a queue promises its records a shared group does not, so neither stands for the other.

    Raises:
        GroupOfAnotherKind: it was.
    """
    if group.kind == asked:
        return
    written = SubscriptionFilter(group.name, group.kind == "queue", TopicFilter.parse(group.filter))
    raise GroupOfAnotherKind(
        group=group.name, declared=group.kind, asked=asked, written=written.text
    )


def check_start(group: GroupRow, start: StartPoint | None) -> None:
    """Refuse a group that was declared with another start.

    Raises:
        StartConflict: it was.
    """
    if start is not None and start_text(start) != group.start:
        raise StartConflict(
            group=group.name,
            declared=shown_start(group.start),
            asked=shown_start(start_text(start)),
        )
