"""Answers of the daemon as values that client and daemon share.

The messages on the wire have the same field names; `dss_api.values` converts by name. Invariant:
values only, times by the daemon's wall clock.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a record is not delivered, or a stream makes no progress."""

    code: str
    """A stable word."""
    sentence: str
    command: str = ""
    """The command to run next; empty: none."""
    client_id: str = ""
    """The client that holds it; empty: none."""
    since_ms: int | None = None
    """By the daemon's wall clock."""
    until_ms: int | None = None
    attempt: int = 0
    """How often it was handed out, the present time included; 0: never, or not known."""
    blocked_by: int | None = None
    """The offset that must be finished first."""


@dataclass(frozen=True, slots=True)
class WatchedGrant:
    """A stream of a group, and its holder."""

    group: str
    """NAME@FILTER."""
    stream: str
    state: str
    """``free``, ``granting``, ``granted``, ``revoking``, ``revoked`` or ``finished``."""
    client_id: str
    """Empty where free."""
    grant_epoch: int
    since_ms: int | None
    """When this state began; None: the group has no leader."""
    stall: str
    """Why delivery is stalled, as a sentence; empty: it is not."""
    pinned_to: str
    """The client that an operator pinned it to; empty: none."""


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What a change would do to one stream."""

    stream: str
    floor: int
    """As it stands now."""
    target: int
    again: int
    """Records to be delivered again."""
    passed: int
    """Records to be skipped."""
    exact: bool
    """False: both counts are upper bounds."""
    clamped: bool
    """The target was raised, because retention took records before it."""
    client_id: str
    """Of the holder; empty where it is free."""


@dataclass(frozen=True, slots=True)
class Held:
    """The use of shared limits by all clients, and the limits."""

    connections: int
    connections_max: int
    calls: int
    calls_max: int
    delivery_bytes: int
    """Read for clients, not yet sent to them."""
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
    """False: an upper bound of the records for the group."""
    last_at_ms: int
