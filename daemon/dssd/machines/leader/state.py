"""The state of a leader: its members, its streams, its commit, its timers.

Owned by the leader's actor. Only a step of `machine` changes it, through `members`, `receiving`,
`commits`, `rebalance`, `stream_acts` and `stream_sets`, which all import it. Invariant: a stream in
a state of `HELD` is in `Member.streams` of its holder, and its heir has it in `Member.inherits`.
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.deadlines import Deadlines
from dssd.machines.leader.barrier_state import Barrier
from dssd.machines.leader.events import (
    LeaderGlance,
    LeaderView,
    MemberView,
    StreamGlance,
    StreamView,
)
from dssd.machines.leader.lent_stream import HELD, TRANSIENT, LentStream, StreamState
from dssd.machines.leader.operated_state import Evictions, HandOvers
from dssd.machines.leader.shard_state import Shards
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.machines.leader.timing import LeaderTiming
from dssd.machines.messages import NO_PAUSE, BorrowerId, Pause, SessionId
from dssd.machines.queues import Queues


class LeaderState(Enum):
    """Where a leader stands."""

    # Members are single objects; the hash that Enum gives them is computed in Python each time.
    __hash__ = object.__hash__

    LOADING = "loading"
    LEADING = "leading"
    STOPPING = "stopping"
    STOPPED = "stopped"


class Alarm(Enum):
    """What the leader as a whole waits for."""

    # Members are single objects; the hash that Enum gives them is computed in Python each time.
    __hash__ = object.__hash__

    COMMIT = "commit"
    REBALANCE = "rebalance"
    MOVE = "move"
    """A rebalance has more moves than one step may begin."""
    HAND_OVER = "hand_over"
    """An operation has more hand-overs than one step may begin."""
    RESERVE = "reserve"
    SILENCE = "silence"
    """Until then a lost client may hand out what it has."""
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class MemberLease:
    """When a member counts as dead."""

    borrower_id: BorrowerId


@dataclass(frozen=True, slots=True)
class Resend:
    """When a transient state of a stream is sent again."""

    stream: StreamId


@dataclass(frozen=True, slots=True)
class StateDeadline:
    """When a transient state of a stream ends by itself."""

    stream: StreamId


@dataclass(frozen=True, slots=True)
class ForgetDeparted:
    """When the leader forgets that a borrower is gone."""

    borrower_id: BorrowerId


@dataclass(frozen=True, slots=True)
class BanEnds:
    """When a client may be a member again."""

    client_id: str


@dataclass(frozen=True, slots=True)
class TellPause:
    """When a member is told again whether the group is paused."""

    borrower_id: BorrowerId


Timer = Alarm | MemberLease | Resend | StateDeadline | ForgetDeparted | BanEnds | TellPause


class Committing(NamedTuple):
    """What the commit under way holds of a stream."""

    stream: StreamId
    grant_epoch: int
    progress: Progress
    moved_by: int
    """The operation whose move it ends; 0: none."""
    queues: Queues


class Member:
    """A borrower that the leader knows."""

    __slots__ = (
        "borrower_id", "by_shard", "client_id", "inherits", "joined_ms", "leaving", "session_id",
        "streams", "subscription",
    )  # fmt: skip

    def __init__(
        self,
        borrower_id: BorrowerId,
        session_id: SessionId,
        client_id: str,
        joined_ms: int,
        subscription: int = 0,
        *,
        by_shard: bool = False,
    ) -> None:
        self.borrower_id = borrower_id
        self.by_shard = by_shard
        """It keeps state by shard: `sharding`."""
        self.subscription = subscription
        self.session_id = session_id
        self.client_id = client_id
        self.joined_ms = joined_ms
        self.leaving = False
        """It gives back what it holds and takes nothing more."""
        self.streams: set[StreamId] = set()
        self.inherits: set[StreamId] = set()
        """Streams that it gets as soon as their holders have let go."""


class Leader:
    """The state of one leader."""

    __slots__ = (
        "barrier",
        "commit_begun_ms",
        "commit_id",
        "commit_took_ms",
        "departed",
        "dirty",
        "evictions",
        "hand_overs",
        "holding",
        "in_flight",
        "leader_epoch",
        "leaving",
        "members",
        "moves",
        "moving",
        "order",
        "owner_session",
        "pause",
        "paused_ms",
        "pausing",
        "rebalanced_ms",
        "resend_ms",
        "reserve",
        "returning",
        "sessions",
        "sessions_ending",
        "shards",
        "state",
        "stream_sets",
        "streams",
        "telling",
        "timers",
        "timing",
        "urgent",
        "wake_ms",
    )  # fmt: skip

    def __init__(
        self,
        leader_epoch: int,
        *,
        owner_session: SessionId | None = None,
        timing: LeaderTiming | None = None,
        stream_sets: StreamSets | None = None,
    ) -> None:
        self.leader_epoch = leader_epoch
        self.owner_session = owner_session
        """Of an exclusive group: the only session whose borrowers may join."""
        self.timing = timing or LeaderTiming()
        self.stream_sets = stream_sets
        """The stream sets of a group of the lease protocol; else None."""
        self.state = LeaderState.LOADING
        self.members: dict[BorrowerId, Member] = {}
        self.sessions: dict[SessionId, dict[BorrowerId, None]] = {}
        """The members of each session, in the order in which they joined."""
        self.sessions_ending = False
        """The daemon is ending all sessions: their clients may still hand out what they have."""
        self.departed: set[BorrowerId] = set()
        """Borrowers that went within the last lease: a late request of theirs must not make them
        members again."""
        self.streams: dict[StreamId, LentStream] = {}
        self.order: tuple[StreamId, ...] = ()
        """The streams, sorted; allocation walks them in this order."""
        self.barrier = Barrier()
        self.timers: Deadlines[Timer] = Deadlines()
        self.wake_ms: int | None = None
        self.resend_ms: dict[StreamId, int] = {}
        self.leaving: set[SessionId] = set()
        """Sessions that left since the last rebalance."""
        self.reserve: KeptFor = KeptFor.NOTHING
        self.moves: deque[tuple[StreamId, BorrowerId]] = deque()
        """Moves of the last rebalance that were not begun: streams, and who gets them."""
        self.returning = False
        """The moves return streams to their last sessions; shares are computed after them."""
        self.shards = Shards()
        self.rebalanced_ms: int | None = None
        self.dirty: dict[StreamId, None] = {}
        """Streams with changes that are in no commit yet, in the order in which they changed."""
        self.urgent = False
        """Somebody waits for the next commit."""
        self.in_flight: tuple[Committing, ...] = ()
        """Streams of the commit under way, and what it holds of them."""
        self.moving: dict[int, set[StreamId]] = {}
        """Streams whose moves are not durably ended, by the number of the operation."""
        self.hand_overs = HandOvers()
        self.evictions = Evictions()
        self.holding = Holding.NOTHING
        self.pause: Pause = NO_PAUSE
        self.paused_ms = 0
        """When the group was paused or resumed last, as far as this leader knows."""
        self.telling: dict[BorrowerId, int] = {}
        """Members that have not confirmed the present pause, and after how long each is told
        again."""
        self.pausing: set[int] = set()
        """Operations that wait until all members have confirmed."""
        self.commit_id = 0
        self.commit_begun_ms = self.commit_took_ms = 0

    def is_committing(self) -> bool:
        """Whether a commit is under way."""
        return bool(self.in_flight) or (
            self.stream_sets is not None and bool(self.stream_sets.in_flight)
        )


def is_pause_obeyed(state: Leader) -> bool:
    """Whether every client that may hand out records knows whether the group is paused."""
    silent = not state.pause.paused or state.timers.at_ms(Alarm.SILENCE) is None
    return not state.telling and state.reserve is KeptFor.NOTHING and silent


class Holding(Enum):
    """The phases of holding all streams back: `holding_back`."""

    NOTHING = "nothing"
    """Streams are lent."""
    WAITING = "waiting"
    """Streams are still kept for those who held them before this leader."""
    TAKING_BACK = "taking_back"
    FENCING = "fencing"
    """Nobody holds a stream, and that is being made durable."""
    HELD = "held"


class KeptFor(Enum):
    """For whom free streams are kept after a takeover."""

    NOTHING = "nothing"
    FOR_SESSIONS = "for_sessions"
    """The daemon restarted: sessions come back with new borrowers."""
    FOR_HOLDERS = "for_holders"
    """Only the leader is new: the holders live and present what they hold."""


def view(state: Leader, now_ms: int) -> LeaderView:
    """The leader as people see it; changes nothing."""
    members = tuple(
        MemberView(
            member.borrower_id,
            member.session_id,
            member.client_id,
            len(member.streams),
            now_ms - member.joined_ms,
            member.leaving,
            member.subscription,
            member.by_shard,
        )
        for member in state.members.values()
    )
    streams = tuple(_stream_view(state, stream, now_ms) for stream in state.order)
    obeyed = is_pause_obeyed(state)
    return LeaderView(state.leader_epoch, _is_rebalancing(state), members, streams, obeyed)


def glance(state: Leader) -> LeaderGlance:
    """A summary of the group for those who look often; changes nothing."""
    return LeaderGlance(
        state.leader_epoch,
        _is_rebalancing(state),
        len(state.members),
        sum(not member.streams for member in state.members.values()),
        tuple(
            [
                StreamGlance(stream, lent.progress, lent.fate, lent.stall, lent.queues)
                for stream, lent in zip(
                    state.order, map(state.streams.__getitem__, state.order), strict=True
                )
            ]
        ),
    )


def _is_rebalancing(state: Leader) -> bool:
    if not state.members:
        return False
    if state.moves or state.timers.at_ms(Alarm.REBALANCE) is not None:
        return True
    return any(lent.state in TRANSIENT for lent in state.streams.values())


def _stream_view(state: Leader, stream: StreamId, now_ms: int) -> StreamView:
    lent = state.streams[stream]
    holder = state.members.get(lent.holder) if lent.holder and lent.state in HELD else None
    pinned = state.sessions.get(lent.pinned_session_id or b"", {})
    return StreamView(
        stream,
        lent.state.value,
        holder.client_id if holder else "",
        lent.grant_epoch,
        lent.progress,
        now_ms - lent.since_ms,
        lent.stall,
        lent.fate,
        lent.cursor_generation,
        lent.move is not None,
        owner_of(lent),
        lent.pinned_session_id,
        next((state.members[each].client_id for each in pinned), ""),
        lent.queues,
        unfinished_parents(state, lent) if lent.state is StreamState.CLOSED else (),
    )


def unfinished_parents(state: Leader, lent: LentStream) -> tuple[StreamId, ...]:
    """The parents that keep the stream closed; a parent that is gone does not."""
    return tuple(
        parent
        for parent in lent.parents or ()
        if (found := state.streams.get(parent)) is not None
        and (found.goes_back or not found.finish_saved)
    )


def owner_of(lent: LentStream) -> BorrowerId | None:
    """The member that has the stream or is to have it next, for allocation."""
    if lent.state in (StreamState.GRANTING, StreamState.GRANTED):
        return lent.holder
    if lent.state in (StreamState.REVOKING, StreamState.REVOKED):
        return lent.heir
    return None
