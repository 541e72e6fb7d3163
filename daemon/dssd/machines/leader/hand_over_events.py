"""What operations on members and grants ask of a leader.

Shapes only: `hand_overs` and `evictions` do it. A session is named where a member may come back as
another borrower before it is done.
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
    """Make these hand-overs. One whose giver or taker is another by now is void."""

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
    """None, or gone: the one that has the fewest."""


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
    """How long it may take for that; None: as for every revoke."""
    ban: Ban | None = None
    """Keeps its client out from now on; all its members are ended."""
    subscription: int | None = None
    """With which it began: what its client subscribes to later is not meant. None: any."""


@dataclass(frozen=True, slots=True)
class LiftBan:
    """The client may be a member again."""

    number: int
    client_id: str


@dataclass(frozen=True, slots=True)
class CancelHandOvers:
    """Begin nothing more of the operation; what of it is under way is done."""

    number: int


HandOverInstruction = (
    Rebalance | TransferGrant | RevokeGrant | Unpin | Evict | LiftBan | CancelHandOvers
)
