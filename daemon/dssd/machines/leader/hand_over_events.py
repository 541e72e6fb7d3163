"""What operations on members and grants ask of a leader.

Shapes only: the rules are in `hand_overs` and `evictions`. An event names a session where a member
may come back as another borrower before the operation is done.
"""

from dataclasses import dataclass
from typing import NamedTuple

from dss_core.ids import StreamId
from dssd.machines.messages import BorrowerId, SessionId


class HandOver(NamedTuple):
    """A stream changes its owner."""

    stream: StreamId
    giver: BorrowerId | None
    """None: nobody has it."""
    taker: BorrowerId


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Make these hand-overs. One is void if the stream's owner changed or the taker is gone."""

    number: int
    moves: tuple[HandOver, ...]


@dataclass(frozen=True, slots=True)
class TransferGrant:
    """Pin the stream to a session, and let the member have it."""

    number: int
    stream: StreamId
    borrower_id: BorrowerId
    session_id: SessionId


@dataclass(frozen=True, slots=True)
class RevokeGrant:
    """Take the stream from a session, and pin it to another member."""

    number: int
    stream: StreamId
    session_id: SessionId
    taker: BorrowerId | None = None
    """The taker. None, or gone: the member with the fewest streams."""


@dataclass(frozen=True, slots=True)
class Unpin:
    """The stream is not pinned to the session any more; it stays where it is."""

    number: int
    stream: StreamId
    session_id: SessionId


class Ban(NamedTuple):
    """A client that may not be a member."""

    client_id: str
    until_ms: int
    """By the wall clock, for people."""
    ends_ms: int
    """On the leader's clock."""


@dataclass(frozen=True, slots=True)
class Evict:
    """End the member for good, once it has given back what it holds."""

    number: int
    borrower_id: BorrowerId
    session_id: SessionId
    reason: str
    """A sentence, for the client."""
    grace_ms: int | None = None
    """How long it may take to give streams back; None: as for every revoke."""
    ban: Ban | None = None
    """Keeps its client out from now on; all its members are ended."""
    subscription: int | None = None
    """The subscription to end, so that a later one of the client is not. None: any."""


@dataclass(frozen=True, slots=True)
class LiftBan:
    """The client may be a member again."""

    number: int
    client_id: str


@dataclass(frozen=True, slots=True)
class CancelHandOvers:
    """Begin no more hand-overs of the operation; those under way are completed."""

    number: int


HandOverInstruction = (
    Rebalance | TransferGrant | RevokeGrant | Unpin | Evict | LiftBan | CancelHandOvers
)
