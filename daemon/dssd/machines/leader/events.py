"""Inputs and effects of a leader: what its actor tells it, and what it asks of its actor.

The actor (``dssd.leaders.actor``) owns one leader per live group. It feeds inputs, each with the
daemon's monotonic clock, and carries out effects in order. Rows, preconditions and mailboxes are
the actor's business; the leader knows only what is said here.
"""

from dataclasses import dataclass
from typing import NamedTuple

from dss_core.ids import StreamId
from dss_core.progress import Progress, Ranges
from dssd.machines.attempts import Attempts
from dssd.machines.fate import NO_FATE, Fate
from dssd.machines.leader.hand_over_events import Ban, HandOverInstruction
from dssd.machines.leader.slicing import Slicing
from dssd.machines.messages import BorrowerId, SessionId, Stall, ToBorrower, ToLeader
from dssd.machines.queues import Queues

Parents = tuple[StreamId, ...] | None
"""In a group that keeps the order of keys: the streams of the storage topic before that can hold
keys of this one. Its records are sent once these are finished. None: the group keeps no order."""


@dataclass(frozen=True, slots=True)
class StoredStream:
    """A stream of the group as the store and the log have it when a leader takes over."""

    stream: StreamId
    progress: Progress
    frontier: int
    end: int
    """The stream's next offset at the takeover."""
    sealed_end: int | None
    """The end of the stream if its storage topic is sealed; else None."""
    grant_epoch: int = 0
    session_id: SessionId | None = None
    borrower_id: BorrowerId | None = None
    """The holder. Not None: the last grant did not end with an exact report."""
    attempts: Attempts = ()
    finished: bool = False
    fate: Fate = NO_FATE
    cursor_generation: int = 0
    """The number of the newest operation that moved the cursor."""
    marked_below: int = 0
    """Unacked records below it were perhaps handed out before."""
    pinned_session_id: SessionId | None = None
    """An operator pinned it to this session, until the session leaves."""
    queues: Queues = ()
    """The stream's queues, in a group that has queues."""
    parents: Parents = None


@dataclass(frozen=True, slots=True)
class CursorMove:
    """A move of a stream's cursor that an operation asks for: `cursor_moves` has the theory."""

    stream: StreamId
    number: int
    """The number of the operation; numbers rise."""
    dropped: Ranges
    """Offsets that become unacknowledged. Normalised."""
    added: Ranges
    """Offsets that become acknowledged, after ``dropped``. Normalised."""
    cancelled: bool = False
    """Its operation was cancelled before a leader heard of it: the move is not made."""
    redriven: Ranges = ()
    """Dead letters of the stream to redrive."""
    redrive_ms: int = 0
    """The duration over which they come back evenly."""
    whole_keys: bool = False
    """They are all the dead letters of their keys."""
    discarded: Ranges = ()
    """Dead letters of the stream to discard."""
    errand: str = ""
    """What is to be done with ``entries``; empty: nothing."""
    entries: Ranges = ()
    """Entries of the stream's retry queue."""
    stops_redrive: bool = False
    """Its operation was cancelled while holders dealt with its entries: the others stay."""


@dataclass(frozen=True, slots=True)
class MadeMove:
    """A move that was made, and what the stream had before and after it."""

    number: int
    before: Progress
    after: Progress


@dataclass(frozen=True, slots=True)
class CancelledMove:
    """A move that was not made, or not to its end, because its operation was cancelled."""

    number: int


EndedMove = MadeMove | CancelledMove


@dataclass(frozen=True, slots=True)
class MoveCursors:
    """Make these moves, all of one operation, each as soon as nobody holds its stream."""

    number: int
    moves: tuple[CursorMove, ...]


@dataclass(frozen=True, slots=True)
class CancelMoves:
    """Do not make the moves of the operation that were not made yet, and bring back no more dead
    letters."""

    number: int


@dataclass(frozen=True, slots=True)
class PauseGroup:
    """Let the members hand out nothing new, or let them hand out again: as it is stored now."""

    number: int
    paused: bool


@dataclass(frozen=True, slots=True)
class CancelPause:
    """Wait no more until the members have confirmed; the group stays as it is stored."""

    number: int


@dataclass(frozen=True, slots=True)
class ShareByShards:
    """Cut the streams into these shards, and share them out."""

    number: int
    slicing: Slicing | None


Instruction = (
    MoveCursors | CancelMoves | PauseGroup | CancelPause | ShareByShards | HandOverInstruction
)
"""What an operation asks of the leader."""


@dataclass(frozen=True, slots=True)
class Instructed:
    """An operation asks for something. What is known already changes nothing."""

    instruction: Instruction
    now_ms: int


@dataclass(frozen=True, slots=True)
class TookOver:
    """Leadership is claimed, and this is what the group has."""

    now_ms: int
    streams: tuple[StoredStream, ...]
    restarted: bool
    """The daemon restarted since the last leader: no borrower of that time is left."""
    versions: tuple["SetVersion", ...] = ()
    """Of a lease group: the newest stream set of each session."""
    moves: tuple[CursorMove, ...] = ()
    """Moves of cursors that applied operations wait for."""
    bans: tuple[Ban, ...] = ()
    """Clients that operators keep out."""
    paused: bool = False
    """The group is paused."""
    slicing: Slicing | None = None
    """The shards by which streams are shared out; None: each by itself."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message of a borrower came."""

    message: ToLeader
    now_ms: int


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """The client's connection closed: the session's borrowers are dead."""

    session_id: SessionId
    now_ms: int
    silent_ms: int | None = None
    """For how long the lost client has said nothing. It may live, and hand out for a while what
    it has. None: it hands out nothing more."""


@dataclass(frozen=True, slots=True)
class PresentStream:
    """A stream that the filter selects."""

    stream: StreamId
    sealed_end: int | None
    queues: Queues = ()
    """As in `StoredStream`, before anything is in them."""
    parents: Parents = None


@dataclass(frozen=True, slots=True)
class StreamsChanged:
    """Streams appeared, were sealed, or went away. What is known already changes nothing."""

    now_ms: int
    present: tuple[PresentStream, ...] = ()
    gone: tuple[StreamId, ...] = ()
    slicing: Slicing | None = None
    """The slicing that includes them; None: it did not change."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A `Persist` is durable."""

    commit_id: int
    now_ms: int
    ends: tuple[tuple[StreamId, int], ...] = ()
    """The next offset of each stream that the `Persist` asked to measure."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Take all streams back and lend none; answered by `Held`."""

    now_ms: int


@dataclass(frozen=True, slots=True)
class LendAgain:
    """End a `Hold`."""

    now_ms: int
    lanes: tuple[tuple[StreamId, Queues, Parents], ...] = ()
    """The queues and the parents that streams have from now on; those that are not named stay as
    they are."""
    slicing: Slicing | None = None
    """As in `TookOver`."""


@dataclass(frozen=True, slots=True)
class Rehomed:
    """All that waited in the queues of a lane is durable in those of its children."""

    stream: StreamId
    grant_epoch: int
    """As in the `Rehome`."""
    queues: Queues
    """The lane's queues after that: nothing is left in them."""
    now_ms: int


@dataclass(frozen=True, slots=True)
class WentBack:
    """All entries that had to go back to a stream are durable in its queues."""

    stream: StreamId
    grant_epoch: int
    """As in the `GoBack`."""
    lanes: tuple[tuple[StreamId, Queues], ...]
    """Lanes that lost entries by this, with their queues after it."""
    now_ms: int


@dataclass(frozen=True, slots=True)
class Destroyed:
    """The group was removed."""

    now_ms: int


@dataclass(frozen=True, slots=True)
class SessionsEnding:
    """The daemon stops, and ends its sessions: `StopAsked` follows their goodbyes."""

    now_ms: int


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The daemon stops: save everything, then stop."""

    now_ms: int


@dataclass(frozen=True, slots=True)
class Ticked:
    """The time of a `WakeAt` came, or later."""

    now_ms: int


LeaderInput = (
    TookOver
    | Received
    | SessionClosed
    | StreamsChanged
    | Committed
    | Instructed
    | Hold
    | LendAgain
    | Rehomed
    | WentBack
    | Destroyed
    | SessionsEnding
    | StopAsked
    | Ticked
)


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """The state of one stream in a commit."""

    stream: StreamId
    progress: Progress
    frontier: int
    attempts: Attempts
    finished: bool
    grant: "GrantRecord | None"
    """None where only the progress changed."""
    fate: Fate = NO_FATE
    cursor_generation: int = 0
    marked_below: int = 0
    """As in `StoredStream`."""
    ended_move: EndedMove | None = None
    """The move that this commit ends."""
    queues: Queues = ()
    """Queues with changes that no commit holds yet."""


@dataclass(frozen=True, slots=True)
class GrantRecord:
    """Who holds a stream under which grant."""

    grant_epoch: int
    session_id: SessionId | None
    """The session that holds it or held it last, and may come back for it after a restart."""
    borrower_id: BorrowerId | None
    """The holder, while we cannot know what it handed out; else None."""
    pinned_session_id: SessionId | None = None
    """As in `StoredStream`."""


@dataclass(frozen=True, slots=True)
class SetVersion:
    """The newest version of a session's stream sets, in a lease group."""

    session_id: SessionId
    version: int | None
    """None: forget the session; no borrower of it is left."""


@dataclass(frozen=True, slots=True)
class Persist:
    """Commit these, all or nothing, under this leadership; answer with `Committed`.

    There is one at a time. When the leadership is lost meanwhile, the actor stops at once.
    """

    commit_id: int
    records: tuple[StreamRecord, ...]
    measure: tuple[StreamId, ...]
    """Streams whose next offset is wanted, read after the commit."""
    versions: tuple[SetVersion, ...] = ()


@dataclass(frozen=True, slots=True)
class Concluded:
    """This leader has done all that the operation asked, durably."""

    number: int


@dataclass(frozen=True, slots=True)
class Rehome:
    """Append what waits in the queues of a lane to those of its children; answer with `Rehomed`.

    Nobody holds the lane, nor a child of it, until then.
    """

    stream: StreamId
    grant_epoch: int
    """Appends of holders before it are refused from now on."""
    progress: Progress
    queues: Queues


class ClosedLane(NamedTuple):
    """A lane that nobody holds until the `WentBack`."""

    stream: StreamId
    grant_epoch: int
    """Appends of holders before it are refused from now on."""
    progress: Progress
    queues: Queues


@dataclass(frozen=True, slots=True)
class GoBack:
    """Move entries from the queues of later streams back to the queues of a stream that was read to
    its end: those of its keys that do not come behind all of its records. Answer with `WentBack`.

    Until then nobody holds the stream, nor any of those lanes.
    """

    stream: StreamId
    grant_epoch: int
    queues: Queues
    lanes: tuple[ClosedLane, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """Durably nobody holds a stream, and it stays so until `LendAgain`."""


@dataclass(frozen=True, slots=True)
class Send:
    """Pass it to the borrower that it names."""

    message: ToBorrower


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Feed a `Ticked` at this time, unless a later effect of this kind says otherwise."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Stop:
    """The leader is done, and all that it may save is saved."""

    reason: str


LeaderEffect = Persist | Send | Concluded | Held | Rehome | GoBack | WakeAt | Stop


@dataclass(frozen=True, slots=True)
class MemberView:
    """A borrower, for people."""

    borrower_id: BorrowerId
    session_id: SessionId
    client_id: str
    streams: int
    connected_for_ms: int
    leaving: bool = False
    """It gets nothing more."""
    subscription: int = 0
    """Of its session."""
    by_shard: bool = False
    """Its program keeps state by shard."""


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream, for people."""

    stream: StreamId
    state: str
    client_id: str
    """The session of the holder; empty if the stream is free."""
    grant_epoch: int
    progress: Progress
    state_age_ms: int
    stall: Stall = Stall.NONE
    """Why its delivery is paused."""
    fate: Fate = NO_FATE
    cursor_generation: int = 0
    """The number of the newest operation that moved its cursor."""
    moving: bool = False
    """An operation waits to move its cursor."""
    owner: BorrowerId | None = None
    """The session that has it or is to have it next."""
    pinned_session_id: SessionId | None = None
    """As in `StoredStream`."""
    pinned_to: str = ""
    """The client of that session, where it is known; empty: none."""
    queues: Queues = ()
    """As in `StoredStream`."""
    waits_for: tuple[StreamId, ...] = ()
    """The unfinished parents of a closed stream."""


@dataclass(frozen=True, slots=True)
class LeaderView:
    """A live group as its leader has it in memory."""

    leader_epoch: int
    rebalancing: bool
    members: tuple[MemberView, ...]
    streams: tuple[StreamView, ...]
    pause_obeyed: bool = True
    """All members have confirmed whether the group is paused."""


class StreamGlance(NamedTuple):
    """Values of a stream that tell whether it changed; they are replaced, never mutated."""

    stream: StreamId
    progress: Progress
    fate: Fate
    stall: Stall
    queues: Queues = ()


class LeaderGlance(NamedTuple):
    """A live group, for those who look at all groups often."""

    leader_epoch: int
    rebalancing: bool
    borrowers: int
    standby: int
    """Members without a stream."""
    streams: tuple[StreamGlance, ...]
