"""The state of one stream of a group, as its leader lends it.

`stream` has the transitions that change it. Invariant: it has a holder in the states of `HELD`
only; otherwise `holder` names the last holder.
"""

from enum import Enum

from dss_core.shards import Shard
from dssd.machines.attempts import Attempts
from dssd.machines.leader.events import (
    CursorMove,
    EndedMove,
    GrantRecord,
    Parents,
    StoredStream,
    StreamRecord,
)
from dssd.machines.messages import NO_PAUSE, BorrowerId, GrantedStream, Pause, Stall
from dssd.machines.queues import Queues, are_known, asked_of_holder, out_of_sight


class StreamState(Enum):
    """Where a stream stands."""

    # Members are single objects; the hash that Enum gives them is computed in Python each time.
    __hash__ = object.__hash__

    FREE = "free"
    GRANTING = "granting"
    GRANTED = "granted"
    REVOKING = "revoking"
    REVOKED = "revoked"
    CLOSED = "closed"
    REHOMING = "rehoming"
    FINISHED = "finished"


HELD = frozenset(
    {StreamState.GRANTING, StreamState.GRANTED, StreamState.REVOKING, StreamState.REVOKED}
)
"""The states in which a stream has a holder."""

NOT_LENT = frozenset({StreamState.CLOSED, StreamState.REHOMING, StreamState.FINISHED})
"""The states in which nobody may have a stream."""

TRANSIENT = frozenset({StreamState.GRANTING, StreamState.REVOKING, StreamState.REVOKED})
"""The states in which a message is sent again until it is answered."""

ENDED_BY_DEADLINE = frozenset({StreamState.GRANTING, StreamState.REVOKING})
"""The states that a deadline ends: the holder is then told that the stream is revoked. `REVOKED`
has no deadline: a holder that lives may hand out records until it hears of it, so the stream is
free once the holder has answered, or at the end of its lease."""


class LentStream:
    """The state, owned by the leader; `state`, `holder` and `grant_epoch` change in a step only."""

    __slots__ = (
        "attempts", "cancelled_moves", "cursor_generation", "durable", "ended_move", "fate",
        "finish_saved", "frontier", "goes_back", "grant_epoch", "grant_unsaved", "heir", "holder",
        "is_closed", "move", "moved_epoch", "parents", "pinned_session_id", "progress", "queues",
        "reserved", "saved", "saved_queues", "sealed_end", "session_id", "shard", "shard_epoch",
        "since_ms", "stall", "state", "stream", "suspect_end", "unmeasured",
    )  # fmt: skip

    def __init__(self, stored: StoredStream) -> None:
        self.stream = stored.stream
        self.state = StreamState.FREE
        self.grant_epoch = stored.grant_epoch
        self.session_id = stored.session_id
        self.pinned_session_id = stored.pinned_session_id
        """The session whose member it stays with; None: allocation chooses."""
        self.holder = stored.borrower_id
        """The holder; while the stream is free, the last holder."""
        self.heir: BorrowerId | None = None
        """The member that gets it next, if that is planned."""
        self.progress = stored.progress
        self.saved = stored.progress
        self.frontier = stored.frontier
        self.attempts: Attempts = stored.attempts
        self.fate = stored.fate
        self.queues: Queues = stored.queues
        self.saved_queues: Queues = stored.queues
        self.sealed_end = stored.sealed_end
        doubtful_end = 0 if stored.borrower_id is None else stored.end
        self.suspect_end = max(stored.marked_below, doubtful_end)
        self.unmeasured = False
        self.stall = Stall.NONE
        """Why delivery is paused, as its holder says."""
        self.cursor_generation = stored.cursor_generation
        self.move: CursorMove | None = None
        """The move that an operation asks for; it waits until nobody holds the stream."""
        self.ended_move: EndedMove | None = None
        """A move that was made or cancelled, until a commit holds that."""
        self.cancelled_moves: set[int] = set()
        """Numbers of moves that this leader has cancelled: they may be asked for again."""
        self.moved_epoch = 0
        """The grant epoch of the last move; progress that was committed before it is void."""
        self.reserved = False
        self.durable = False
        """The commit that the present state waits for is durable."""
        self.grant_unsaved = False
        self.since_ms = 0
        self.shard: Shard | None = None
        """The shard under which its holder has it, in a group that is shared out by shards."""
        self.shard_epoch = 0
        self.parents: Parents = stored.parents
        self.is_closed = self.goes_back = False
        """``is_closed``: a parent is not finished. ``goes_back``: its move opens it again after it
        was read to its end (`going_back`)."""
        self.finish_saved = stored.finished
        """It is durably finished, so it no longer closes its children."""
        if not stored.finished and (stored.grant_epoch or self.keeps_order):
            self.queues = out_of_sight(self.queues)
        if stored.finished or (self.is_over() and not self.keeps_order):
            self.state = StreamState.FINISHED

    @property
    def keeps_order(self) -> bool:
        """Whether its group keeps the order of keys: parents are read before children, and what is
        left in its queues is re-homed to its children."""
        return self.parents is not None

    def is_read(self) -> bool:
        """Whether everything it will ever hold is acknowledged, or in its queues."""
        return self.sealed_end is not None and self.progress.floor >= self.sealed_end

    def is_at_end(self) -> bool:
        """Whether everything it will ever hold is acknowledged or a dead letter. If the group keeps
        the order, no dead letter may be left, as these go to the children."""
        if not self.is_read() or not self.queues:
            return self.is_read()
        retry, dead = self.queues
        is_left = dead.is_empty if self.keeps_order else True
        return retry.is_empty and is_left and not asked_of_holder(self.queues)

    def is_over(self) -> bool:
        """Whether it is at its end, and its queues hold no unreported entries."""
        return self.is_at_end() and are_known(self.queues)

    def is_to_rehome(self) -> bool:
        """Whether its queues may hold entries that have to go to its children."""
        return self.keeps_order and self.is_read() and not self.is_over()

    def at_work(self) -> int:
        """The operation whose entries the holder has not durably dealt with; 0: none."""
        return asked_of_holder(self.saved_queues)

    def is_exact(self) -> bool:
        """Whether the frontier bounds what was ever handed out."""
        return not self.unmeasured and self.suspect_end <= max(self.frontier, self.progress.floor)

    def record(self) -> StreamRecord:
        """Its state for a commit."""
        grant = None
        if self.grant_unsaved:
            doubtful = self.state in HELD or self.reserved or not self.is_exact()
            grant = GrantRecord(
                self.grant_epoch,
                self.session_id,
                self.holder if doubtful else None,
                self.pinned_session_id,
            )
        finished = self.state is StreamState.FINISHED
        return StreamRecord(
            self.stream,
            self.progress,
            self.frontier,
            self.attempts,
            finished,
            grant,
            self.fate,
            self.cursor_generation,
            self.suspect_end,
            self.ended_move,
            tuple([each for each in self.queues if each not in self.saved_queues]),
        )

    def granted(self, pause: Pause = NO_PAUSE) -> GrantedStream:
        """Its state for a grant message, with the pause of the group."""
        suspect_end = max(self.suspect_end, self.frontier)
        return GrantedStream(
            self.stream,
            self.grant_epoch,
            self.progress,
            self.frontier,
            self.attempts,
            suspect_end,
            self.fate,
            pause,
            self.queues,
            self.cursor_generation,
            self.shard,
            self.shard_epoch,
        )
