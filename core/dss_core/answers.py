"""What the daemon answers with and programs get as it is: values that both sides have.

The wire has the same values with the same fields; `dss_api.values` goes by their names. Invariant:
values only, times by the daemon's wall clock.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something does not come, or does not move."""

    code: str
    """A stable word."""
    sentence: str
    command: str = ""
    """What to do next; empty where nothing need be done."""
    client_id: str = ""
    """Who has it; empty where nobody does."""
    since_ms: int | None = None
    """By the daemon's wall clock."""
    until_ms: int | None = None
    attempt: int = 0
    """How often it was handed out, this time included; 0: never, or it is not known."""
    blocked_by: int | None = None
    """The offset that must be done first."""


@dataclass(frozen=True, slots=True)
class WatchedGrant:
    """A stream of a group, and who holds it."""

    group: str
    """NAME@FILTER."""
    stream: str
    state: str
    """``free``, ``granting``, ``granted``, ``revoking``, ``revoked`` or ``finished``."""
    client_id: str
    """Empty where free."""
    grant_epoch: int
    since_ms: int | None
    """In this state; None: nobody leads the group."""
    stall: str
    """Why nothing is delivered, as a sentence; empty where it is."""
    pinned_to: str
    """The client that an operator gave it to; empty where nobody did."""


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
class Held:
    """What all clients together hold of what they share, and may hold."""

    connections: int
    connections_max: int
    calls: int
    calls_max: int
    delivery_bytes: int
    """Read for clients, and not yet taken by them."""
    delivery_bytes_max: int


@dataclass(frozen=True, slots=True)
class UnreadLoss:
    """Records of a topic that retention took although a group had not acknowledged them."""

    topic: str
    group: str
    filter: str
    records: int
    """Since the daemon's start."""
    exact: bool
    """Else at most so many were for the group."""
    last_at_ms: int
