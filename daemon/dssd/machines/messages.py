"""What leader and borrower say to each other: docs/protocol.md, "Messages".

Messages may be lost, doubled, delayed or reordered, and either side may die at any point. So each
message carries the epochs that make it harmless when it comes at the wrong time. Every message
names the borrower; `leader_epoch` is the epoch of the leader that sends it, or of the leader that
the borrower knows (0: none). A lower leader epoch is ignored; a higher one means a new leader.

    borrower → registry   LeaderWanted
    borrower → leader     Ping  UpdateProgress  RevokeFinished  Disconnect  PauseObeyed
    leader → borrower     LeaderConnectResponse  PingResponse  Grant  ProgressSaved
                          Revoke  Revoked  Invalidate  PauseChanged

In a group of the lease protocol (docs/protocol.md, "The lease protocol") stream sets with versions
replace grants, revokes and pings; the rest is the same:

    borrower → leader     UpdateStreamStates
    leader → borrower     LeaseStreams  UpdateStreams  RenewStreamLease
"""

from dataclasses import dataclass
from enum import StrEnum

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_core.shards import Shard
from dssd.machines.attempts import Attempts
from dssd.machines.fate import NO_FATE, Fate
from dssd.machines.queues import Queues

BorrowerId = bytes
"""Random, 128 bit, new for each incarnation."""

SessionId = bytes


class Stall(StrEnum):
    """Why the delivery of a stream is paused, though there are records."""

    # Members are single objects; the hash that Enum gives them is computed in Python each time.
    __hash__ = object.__hash__

    NONE = ""
    UNACKED = "unacked"
    """Too many acknowledged or resting ranges lie above the oldest unacknowledged record."""
    UNREADABLE = "unreadable"
    """A read of the log fails; it is tried again."""
    DAMAGED = "damaged"
    """Records are confirmed damaged, and the group wants to stop there."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Whether a group is paused, so that nothing new is handed out, as one of its leaders says."""

    change: int = 0
    """Counts the changes under that leader; the answer to an older one is ignored."""
    paused: bool = False


NO_PAUSE = Pause()


@dataclass(frozen=True, slots=True)
class StreamReport:
    """How a grant stands, as its holder or the leader knows it."""

    stream: StreamId
    grant_epoch: int
    progress: Progress
    frontier: int
    """Every offset below it was handed to the user or is settled."""
    attempts: Attempts = ()
    sent: int | None = None
    """Nothing at or above it was sent to the client, so nothing there can have been handed out.
    In a final report, records from the frontier to here are sent again marked redelivered. None
    in a `Disconnect`: we cannot know what was sent, so all records of the stream are marked. None
    in a final report after a revoke: the client confirms that it dropped all above the frontier."""
    stall: Stall = Stall.NONE
    """Why delivery is paused."""
    fate: Fate = NO_FATE
    is_awaited: bool = False
    """A client waits until it is durable, so the leader commits it at once."""
    queues: Queues = ()
    """The queues of a lane, at the same moment."""


@dataclass(frozen=True, slots=True)
class LeaderWanted:
    """A borrower looks for the leader, and presents what it holds."""

    borrower_id: BorrowerId
    leader_epoch: int
    session_id: SessionId
    client_id: str
    held: tuple[StreamReport, ...] = ()
    version: int = 0
    """The version of its stream set; 0 if it has none, as under the borrow protocol."""
    sent_ms: int = 0
    """Under the lease protocol, as in `UpdateStreamStates`."""
    paused: bool = False
    """An earlier leader told it that the group is paused."""
    subscription: int = 0
    """The number of the subscription in the session; all its borrowers have the same."""
    by_shard: bool = False
    """It keeps state by shard, and is told which shards it has."""


@dataclass(frozen=True, slots=True)
class Ping:
    """The lease runs from `sent_ms` of an answered ping, on the borrower's own clock."""

    borrower_id: BorrowerId
    leader_epoch: int
    sent_ms: int


@dataclass(frozen=True, slots=True)
class UpdateProgress:
    """Reports. The first report of a grant confirms that it arrived."""

    borrower_id: BorrowerId
    leader_epoch: int
    reports: tuple[StreamReport, ...]
    final: bool = False
    """The holder stopped reading these streams: the report is final."""
    leaving: bool = False
    """The subscription was left: the borrower takes nothing more."""


@dataclass(frozen=True, slots=True)
class RevokeFinished:
    """The holder has dropped the stream."""

    borrower_id: BorrowerId
    leader_epoch: int
    stream: StreamId
    grant_epoch: int


@dataclass(frozen=True, slots=True)
class Disconnect:
    """The borrower ends, with its final reports."""

    borrower_id: BorrowerId
    leader_epoch: int
    reports: tuple[StreamReport, ...]
    silent_ms: int | None = None
    """For how long its lost client has said nothing. It may live, and hand out for a while what
    it has. None: it hands out nothing more."""


@dataclass(frozen=True, slots=True)
class PauseObeyed:
    """A change of the pause reached the client: it hands out nothing more, or hands out again."""

    borrower_id: BorrowerId
    leader_epoch: int
    change: int


@dataclass(frozen=True, slots=True)
class LeaderConnectResponse:
    """The leader knows the borrower. A duplicate is ignored in every state."""

    borrower_id: BorrowerId
    leader_epoch: int
    lease_ms: int


@dataclass(frozen=True, slots=True)
class PingResponse:
    """Answers a ping."""

    borrower_id: BorrowerId
    leader_epoch: int
    sent_ms: int


@dataclass(frozen=True, slots=True)
class GrantedStream:
    """One stream of a grant message."""

    stream: StreamId
    grant_epoch: int
    progress: Progress
    frontier: int
    """Records below it that are not acknowledged were handed out before: redelivered."""
    attempts: Attempts
    suspect_end: int
    """Records below it were perhaps handed out before a crash: marked redelivered."""
    fate: Fate = NO_FATE
    pause: Pause = NO_PAUSE
    """The pause of the group, known so before anything of the stream is read."""
    queues: Queues = ()
    """The queues of a lane."""
    cursor_generation: int = 0
    """The holder writes it into the entries that it makes."""
    shard: Shard | None = None
    """The shard that it is a part of, in a group that is shared out by shards."""
    shard_epoch: int = 0
    """The epoch of the shard: higher than that of any earlier owner."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Streams are lent; durable before it is sent. Also counts as connect response."""

    borrower_id: BorrowerId
    leader_epoch: int
    streams: tuple[GrantedStream, ...]
    lease_ms: int


@dataclass(frozen=True, slots=True)
class ProgressSaved:
    """The durable progress of a grant."""

    borrower_id: BorrowerId
    leader_epoch: int
    stream: StreamId
    grant_epoch: int
    progress: Progress
    queues: Queues = ()


@dataclass(frozen=True, slots=True)
class Revoke:
    """Stop reading the stream; answer with the final report within the deadline."""

    borrower_id: BorrowerId
    leader_epoch: int
    stream: StreamId
    grant_epoch: int
    deadline_ms: int
    """A duration from receipt."""


@dataclass(frozen=True, slots=True)
class Revoked:
    """The grant is over: drop the stream, answer RevokeFinished in every state."""

    borrower_id: BorrowerId
    leader_epoch: int
    stream: StreamId
    grant_epoch: int
    progress: Progress
    """The durable progress; less than the last report if the deadline came before it."""
    queues: Queues = ()


@dataclass(frozen=True, slots=True)
class Invalidate:
    """Stop at once. With a stream: that grant only; without: the whole borrower."""

    borrower_id: BorrowerId
    leader_epoch: int
    reason: str
    """For a whole borrower: the code of a condition ends its subscription for good."""
    stream: StreamId | None = None
    grant_epoch: int = 0
    detail: str = ""
    """A detail of the condition: why a borrower was evicted, or until when its client is banned,
    in milliseconds of the wall clock."""


@dataclass(frozen=True, slots=True)
class PauseChanged:
    """The group was paused, or resumed; sent again until it is answered by `PauseObeyed`."""

    borrower_id: BorrowerId
    leader_epoch: int
    pause: Pause


@dataclass(frozen=True, slots=True)
class TakenState:
    """A stream that is taken over, or given back, as its holder knows it."""

    report: StreamReport
    final: bool
    """The client has settled all of it that was out: the report is final."""


@dataclass(frozen=True, slots=True)
class UpdateStreamStates:
    """Which set the borrower has, with reports on its streams; also the answer to a set."""

    borrower_id: BorrowerId
    leader_epoch: int
    sent_ms: int
    """The lease runs from it once the leader has heard it, on the borrower's own clock."""
    version: int
    states: tuple[StreamReport, ...] = ()
    """Reports on streams of the set; those that are not named did not change."""
    version_old: int | None = None
    """While the set is being updated: the version before."""
    taken_over: tuple[TakenState, ...] = ()
    asks_renewal: bool = False
    """The leader shall renew the lease; `taken_over` names every stream that is taken over."""
    leaving: bool = False
    """As in `UpdateProgress`."""


@dataclass(frozen=True, slots=True)
class LeaseStreams:
    """The first stream set of a borrower; durable before it is sent."""

    borrower_id: BorrowerId
    leader_epoch: int
    version: int
    streams: tuple[GrantedStream, ...]
    lease_ms: int
    heard_ms: int
    """The newest `sent_ms` that the leader received: the lease runs from it."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A stream that is no longer in the set: its holder must finish it."""

    stream: StreamId
    grant_epoch: int
    deadline_ms: int
    """A duration from receipt."""


@dataclass(frozen=True, slots=True)
class UpdateStreams:
    """The set of one version becomes that of another; durable before it is sent."""

    borrower_id: BorrowerId
    leader_epoch: int
    version_old: int
    version: int
    streams: tuple[GrantedStream, ...]
    """All of the new set."""
    taken_over: tuple[Taken, ...]
    heard_ms: int


@dataclass(frozen=True, slots=True)
class RenewStreamLease:
    """The lease goes on. With an old version: the update to the new one is still under way."""

    borrower_id: BorrowerId
    leader_epoch: int
    version: int
    heard_ms: int
    version_old: int | None = None
    accepted: tuple[tuple[StreamId, int], ...] = ()
    """Taken-over streams, with their grant epochs, whose final reports are durable."""


ToLeader = (
    LeaderWanted
    | Ping
    | UpdateProgress
    | RevokeFinished
    | Disconnect
    | UpdateStreamStates
    | PauseObeyed
)
ToBorrower = (
    LeaderConnectResponse
    | PingResponse
    | Grant
    | ProgressSaved
    | Revoke
    | Revoked
    | Invalidate
    | LeaseStreams
    | UpdateStreams
    | RenewStreamLease
    | PauseChanged
)
