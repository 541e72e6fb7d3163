"""What a leader keeps of operations on its members and grants.

Apart from `hand_overs` and `evictions`, whose rules change it, because `state` holds it. Invariant:
a stream has at most one hand-over under way, a member at most one eviction.
"""

from collections import deque
from typing import NamedTuple

from dss_core.ids import StreamId
from dssd.machines.leader.hand_over_events import Ban, HandOver, HandOverInstruction
from dssd.machines.messages import BorrowerId, SessionId


class OpenHandOver:
    """A stream that an operation lets change its owner, or its pin."""

    __slots__ = ("number", "pins", "saved", "session_id")

    def __init__(self, number: int, session_id: SessionId | None, *, pins: bool) -> None:
        self.number = number
        self.session_id = session_id
        """Who is to have it; None: it stays where it is, and only the pin goes."""
        self.pins = pins
        """The stream is pinned to the session."""
        self.saved = not pins and session_id is not None
        """What it changed of the pin is durable."""


class HandOvers:
    """The hand-overs that operations asked for."""

    __slots__ = ("asked", "open", "postponed", "unended")

    def __init__(self) -> None:
        self.asked: deque[tuple[int, HandOver]] = deque()
        """Those that no step has begun, with the number of the operation."""
        self.open: dict[StreamId, OpenHandOver] = {}
        self.unended: dict[int, set[StreamId]] = {}
        """Streams of those that were asked for or are open, by the number of the operation."""
        self.postponed: dict[int, HandOverInstruction] = {}
        """What waits until no stream is kept for those who held it, by number."""


class Eviction(NamedTuple):
    """A member that is being ended."""

    number: int
    reason: str
    grace_ms: int | None


class Evictions:
    """Members that are ended, and clients that are kept out."""

    __slots__ = ("bans", "by_member", "ended")

    def __init__(self) -> None:
        self.by_member: dict[BorrowerId, Eviction] = {}
        """Under way."""
        self.ended: dict[BorrowerId, str] = {}
        """Why a borrower was ended, for as long as it is known to have departed."""
        self.bans: dict[str, Ban] = {}
        """By client id."""
