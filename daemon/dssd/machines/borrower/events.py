"""Inputs and effects of a borrower: what its agent tells it, and what it asks of its agent.

The agent (``dssd.subscriptions``) owns one borrower per incarnation of a subscription. It feeds
inputs, each with the session's monotonic clock, and carries out effects in order. The session
learns of streams only through these effects.
"""

from dataclasses import dataclass

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.messages import (
    GrantedStream,
    LeaderWanted,
    StreamReport,
    ToBorrower,
    ToLeader,
)
from dssd.machines.queues import Queues


@dataclass(frozen=True, slots=True)
class Started:
    """The subscription begins; look for the leader."""

    now_ms: int


@dataclass(frozen=True, slots=True)
class Received:
    """A message of the leader came."""

    message: ToBorrower
    now_ms: int


@dataclass(frozen=True, slots=True)
class Reported:
    """The session settled something under these grants. `final`: it stopped reading them."""

    reports: tuple[StreamReport, ...]
    now_ms: int
    final: bool = False


@dataclass(frozen=True, slots=True)
class PauseTaken:
    """The client hands out nothing more, or hands out again, as `SetPaused` asked."""

    turn: int
    """The number in that `SetPaused`."""
    now_ms: int


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    """The client left the subscription; final reports will follow."""

    now_ms: int


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The client is gone: report what is known, end."""

    now_ms: int
    silent_ms: int | None = None
    """For how long the lost client has said nothing. It may live, and hand out for a while what
    it has. None: it hands out nothing more."""


@dataclass(frozen=True, slots=True)
class Ticked:
    """The time of a `WakeAt` came, or later."""

    now_ms: int


BorrowerInput = Started | Received | Reported | PauseTaken | Unsubscribed | Disconnected | Ticked


@dataclass(frozen=True, slots=True)
class SendToRegistry:
    """Pass it to the registry, which finds or starts the leader."""

    message: LeaderWanted


@dataclass(frozen=True, slots=True)
class SendToLeader:
    """Pass it to the leader."""

    message: ToLeader


@dataclass(frozen=True, slots=True)
class InstallStream:
    """Begin to read and deliver the stream under this grant."""

    granted: GrantedStream


@dataclass(frozen=True, slots=True)
class RevokeStream:
    """Stop delivering the stream; send a final `Reported` once its records in flight are
    settled."""

    stream: StreamId
    grant_epoch: int
    deadline_ms: int
    """A duration."""


@dataclass(frozen=True, slots=True)
class DropStream:
    """The grant is over: forget the stream at once."""

    stream: StreamId
    grant_epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class ProgressDurable:
    """This progress is durable: answers synchronous acks."""

    stream: StreamId
    grant_epoch: int
    progress: Progress
    queues: Queues = ()


@dataclass(frozen=True, slots=True)
class SuspendDelivery:
    """The leader was silent for 0.6 L: hand out nothing until `ResumeDelivery`."""


@dataclass(frozen=True, slots=True)
class ResumeDelivery:
    """The leader answered again."""


@dataclass(frozen=True, slots=True)
class SetPaused:
    """The group was paused: the client is to hand out nothing new; or it was resumed.

    Answered by `PauseTaken`. `SetPaused` and `SuspendDelivery` are independent.
    """

    paused: bool
    turn: int
    """A rising number; an answer to an earlier one is ignored."""


@dataclass(frozen=True, slots=True)
class Standing:
    """For people: standby (connected, holds no stream), active, or connecting."""

    state: str


@dataclass(frozen=True, slots=True)
class Recreate:
    """This incarnation is over; the subscription is not. Make a new borrower with a new id."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """This borrower is gone: the session asked for it, or the leader did, with an error code."""

    reason: str
    error_code: str = ""
    detail: str = ""
    """As in `Invalidate`."""


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Feed a `Ticked` at this time, unless a later effect of this kind says otherwise."""

    at_ms: int


BorrowerEffect = (
    SendToRegistry
    | SendToLeader
    | InstallStream
    | RevokeStream
    | DropStream
    | ProgressDurable
    | SuspendDelivery
    | ResumeDelivery
    | SetPaused
    | Standing
    | Recreate
    | Ended
    | WakeAt
)
