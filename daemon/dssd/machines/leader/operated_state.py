"""The state of a leader about operations on its members and grants.

`hand_overs` and `evictions` have the rules that change it; `state` holds it, hence this module.
Invariant: a stream has at most one hand-over under way, a member at most one eviction.
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
        """The session to have it; None: the stream stays where it is, and only the pin goes."""
        self.pins = pins
        """The stream is pinned to the session."""
        self.saved = not pins and session_id is not None
        """Its change of the pin is durable."""


class HandOvers:
    """The hand-overs that operations asked for."""

    __slots__ = ("asked", "open", "postponed", "unended")

    def __init__(self) -> None:
        self.asked: deque[tuple[int, HandOver]] = deque()
        """Hand-overs that were not begun, each with the number of its operation."""
        self.open: dict[StreamId, OpenHandOver] = {}
        self.unended: dict[int, set[StreamId]] = {}
        """By number of the operation: streams whose hand-overs wait or are open."""
        self.postponed: dict[int, HandOverInstruction] = {}
        """By number: instructions that wait until no stream is kept for its last holder."""


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
