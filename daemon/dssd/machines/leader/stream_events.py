"""Events of one stream of a group, and acts: what its leader shall do for it then.

`stream` takes the events and answers with acts; `stream_acts` carries these out. An act is about
the stream of the event. Shapes only: no rule is here.
"""

from dataclasses import dataclass
from enum import Enum

from dss_core.progress import Progress
from dssd.machines.leader.events import CursorMove
from dssd.machines.messages import BorrowerId, SessionId, StreamReport
from dssd.machines.queues import Queues


class Act(Enum):
    """What the leader shall do for a stream."""

    SAVE_SOON = "save_soon"
    """With the next commit of reports."""
    SAVE_NOW = "save_now"
    """Somebody waits for it."""
    SEND_GRANT = "send_grant"
    SEND_REVOKE = "send_revoke"
    SEND_REVOKED = "send_revoked"
    SEND_SAVED = "send_saved"
    SEND_INVALIDATE = "send_invalidate"
    """To the borrower of the event, for the epoch of the event."""
    PLACE = "place"
    """The stream is free: give it to its heir, or allocate."""
    SHARE_ANEW = "share_anew"
    """The stream is finished, so the shares of the members may be out of balance."""
    REHOME = "rehome"
    """Durably nobody holds the lane: move the entries of its queues to its children."""
    JUDGE_CHILDREN = "judge_children"
    """The stream became durably finished, or no longer is, or is to be read again."""
    NOTE_MOVED = "note_moved"
    """The end of a move, made or cancelled, is durable: its operation may be done."""


@dataclass(frozen=True, slots=True)
class GrantDecided:
    """The leader lends the stream to a member."""

    borrower_id: BorrowerId
    session_id: SessionId


@dataclass(frozen=True, slots=True)
class Reported:
    """A borrower reports. Final: it stopped reading the stream."""

    borrower_id: BorrowerId
    report: StreamReport
    final: bool
    outdated: bool = False
    """It was sent to a leader before this one: the borrower may have let go of the stream since."""


@dataclass(frozen=True, slots=True)
class RevokeDecided:
    """The stream shall go to another member."""

    heir: BorrowerId | None
    """The heir. None: allocation chooses."""


@dataclass(frozen=True, slots=True)
class MoveAsked:
    """An operation moves the cursor, as soon as nobody holds the stream."""

    move: CursorMove
    heir: BorrowerId | None
    """Who gets the stream after that: its holder, if that one stays."""


@dataclass(frozen=True, slots=True)
class MoveCancelled:
    """An operation is cancelled; a move that was made stays made."""

    number: int


@dataclass(frozen=True, slots=True)
class Released:
    """A borrower says that it has dropped the stream."""

    borrower_id: BorrowerId
    grant_epoch: int


@dataclass(frozen=True, slots=True)
class HolderLost:
    """The holder is gone."""


@dataclass(frozen=True, slots=True)
class ReserveEnded:
    """The stream is no longer kept for its last holder, and how far the holder came is known."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """The deadline of a transient state passed."""


@dataclass(frozen=True, slots=True)
class ResendDue:
    """A transient state was not answered yet."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A commit that held this stream is durable."""

    grant_epoch: int
    progress: Progress
    current: bool
    """Nothing changed since."""
    measured_end: int | None
    moved_by: int = 0
    """The operation whose move the commit ended; 0: none."""
    queues: Queues = ()


@dataclass(frozen=True, slots=True)
class Sealed:
    """The storage topic was sealed with this end."""

    end: int


@dataclass(frozen=True, slots=True)
class ParentsJudged:
    """Whether a parent of the stream is unfinished was determined anew."""

    closed: bool


@dataclass(frozen=True, slots=True)
class QueuesRehomed:
    """The children of the lane have what was in its queues."""

    grant_epoch: int
    queues: Queues


@dataclass(frozen=True, slots=True)
class CameBack:
    """Nobody holds a descendant of the stream, and all entries that had to go back to its queues
    are there."""


StreamEvent = (
    GrantDecided
    | Reported
    | RevokeDecided
    | MoveAsked
    | MoveCancelled
    | Released
    | HolderLost
    | ReserveEnded
    | Overdue
    | ResendDue
    | Saved
    | Sealed
    | ParentsJudged
    | QueuesRehomed
    | CameBack
)
Acts = tuple[Act, ...]
