"""Inputs and effects of a session's delivery window (`window`).

The session feeds inputs, each with its monotonic clock, and carries out effects in order. A grant
is named by its number in the session, a multiple of `LEVELS_MAX`. Where records of one level are
meant (`Read` and its answer, `Deliver`, `Settle`, `TellGone`, `RefuseRange`) the level is added to
it. Offsets in a `Settle` come from a client and are untrusted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dss_core.ids import StreamId
from dss_core.progress import Progress, Ranges, without
from dssd.limits import NAK_RANGES
from dssd.machines.messages import GrantedStream, Stall, StreamReport
from dssd.machines.queues import RetryPolicy


class Entry(NamedTuple):
    """An entry of a queue, as its holder needs it."""

    offset: int
    due_ms: int
    """By the wall clock."""
    attempt: int
    """How often the record failed so far."""
    source_level: int
    """The entry acknowledges the record that it was made of: this one."""
    source_offset: int
    size: int
    """Of the record, in bytes, roughly."""
    origin: int = 0
    """Where it was at first, so that records of a key go in this order: its offset in the stream of
    the lane; of an earlier storage topic it is below 0."""
    key: int = 0
    """Of an ordered lane: the hash of its key; 0: it has none."""
    is_suspect: bool = False
    """Of an ordered lane: so many clients vanished with it that it comes alone."""
    is_rehomed: bool = False
    """It was made of an entry of another lane: it has no source in this one."""
    operation: int = 0
    """That made it what it is; 0: none did."""


@dataclass(frozen=True, slots=True)
class EntriesRead:
    """Of a queue of a lane that is being opened, in order. Answers `OpenLane`, in pieces."""

    grant: int
    level: int
    entries: tuple[Entry, ...]
    end: int
    """Everything below it was read."""


@dataclass(frozen=True, slots=True)
class LaneOpened:
    """All of the queues was read, and nobody else appends to them any more."""

    grant: int
    dead_size: int = 0
    """Of a dead letter, in bytes, on average."""


class MovePiece(NamedTuple):
    """Records of one level that go to a queue together."""

    level: int
    start: int
    end: int
    to: int
    attempt: int
    """How often they failed so far."""
    due_ms: int
    """By the wall clock."""
    cause: str
    error: str = ""
    error_type: str = ""
    operation: int = 0
    """That asks for it."""
    is_copied: bool = False
    """As they are: only the place changes."""

    def left(self, done: Sequence[Ranges]) -> "Iterator[MovePiece]":
        """What of it is not done; `done` is by level."""
        for start, end in without(((self.start, self.end),), done[self.level]):
            yield self._replace(start=start, end=end)


@dataclass(frozen=True, slots=True)
class Moved:
    """Answers a `Move`: what of it is durable in the queues now, what is not, what is no more."""

    grant: int
    entries: tuple[tuple[int, Entry], ...] = ()
    """By level, in the order of their offsets: every entry that the queues got by this."""
    lost: tuple[tuple[int, int, int], ...] = ()
    """Level, start and end of records that the log has no more."""
    failed: tuple[MovePiece, ...] = ()
    """They are where they were."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A stream is lent: read and deliver it under this number."""

    grant: int
    subscription: int
    granted: GrantedStream
    ack_wait_ms: int
    wall_ahead_ms: int = 0
    """The wall clock minus the machine's clock, when the stream was lent."""
    stall_at_damage: bool = False
    """Rather than to pass over records that are confirmed damaged."""
    policy: RetryPolicy | None = None
    """Of a lane; None: the group has no queues."""


@dataclass(frozen=True, slots=True)
class Grown:
    """The stream of the grant has new records."""

    grant: int


@dataclass(frozen=True, slots=True)
class StreamSealed:
    """Of an ordered lane: its stream ends there, and others wait until it is read."""

    grant: int
    end: int


class ChunkRead(NamedTuple):
    """Answers a `Read`: what `dssd.log.port.Chunk` says."""

    grant: int
    offset: int
    """As it was asked."""
    frames: bytes
    mask: Ranges
    records: int
    base: int
    next: int
    lost: Ranges = ()
    damaged: Ranges = ()
    at_end: bool = False
    keys: Sequence[int] = ()
    """Of an ordered lane: the hash of the key of each record from `base` on; 0: it has none."""


@dataclass(frozen=True, slots=True)
class ReadFailed:
    """Answers a `Read`: it failed, and may be tried again."""

    grant: int


class Nak(NamedTuple):
    """The user refused these; bring them again."""

    start: int
    end: int
    delay_ms: int | None = None
    error: str = ""
    error_type: str = ""
    reject: bool = False
    """They shall not come again."""


class Settle(NamedTuple):
    """What the client says of one grant."""

    grant: int
    acked: Ranges = ()
    naks: tuple[Nak, ...] = ()
    frontier: int = 0
    """Every offset below it was handed to the user or is masked."""
    token: int = 0
    """Not 0: answer when the acks are durable."""
    in_progress: Ranges = ()
    """The ack wait of these begins anew."""
    handed_out: Ranges = ()
    """Handed to the user out of turn: above the frontier, or below it and again. Until it is told,
    a nak of what came again is about the sending before."""


def ranges_in(settle: Settle) -> int:
    """How many ranges the settle names."""
    return len(settle.acked) + len(settle.naks) + len(settle.in_progress) + len(settle.handed_out)


def work_of(settle: Settle) -> int:
    """How long it takes to take the settle, in acked ranges."""
    return ranges_in(settle) + (NAK_RANGES - 1) * len(settle.naks)


def pieces_of(settle: Settle, ranges_max: int) -> Iterator[Settle]:
    """The settle, cut into several of at most so much work, in the order in which it is taken.

    The last one has the token, which stands for all of them.
    """
    if work_of(settle) <= ranges_max:
        yield settle
        return
    nothing = settle._replace(acked=(), naks=(), in_progress=(), handed_out=(), token=0)
    for at in range(0, len(settle.acked), ranges_max):
        yield nothing._replace(acked=settle.acked[at : at + ranges_max])
    for at in range(0, len(settle.in_progress), ranges_max):
        yield nothing._replace(in_progress=settle.in_progress[at : at + ranges_max])
    for at in range(0, len(settle.handed_out), ranges_max):
        yield nothing._replace(handed_out=settle.handed_out[at : at + ranges_max])
    naks_max = max(1, ranges_max // NAK_RANGES)
    for at in range(0, len(settle.naks), naks_max):
        yield nothing._replace(naks=settle.naks[at : at + naks_max])
    yield nothing._replace(token=settle.token)


@dataclass(frozen=True, slots=True)
class Settles:
    """Settles that came together; the credit that they give back is spent after all of them."""

    settles: tuple[Settle, ...]


@dataclass(frozen=True, slots=True)
class RevokeBegun:
    """The leader wants the stream back: stop, and report finally within the deadline."""

    grant: int
    deadline_ms: int
    """A duration."""


@dataclass(frozen=True, slots=True)
class RevokeFinished:
    """The client has dropped what it had not handed out. Not asked to: it refuses the grant."""

    grant: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """The grant is over: forget it."""

    grant: int


@dataclass(frozen=True, slots=True)
class Left:
    """The subscription is over, and so are its grants: forget it."""

    subscription: int


@dataclass(frozen=True, slots=True)
class Draining:
    """The connection is to end: ask the client to drop what it has not handed out."""

    deadline_ms: int
    """A duration: what the client does not answer for by then is reported without it."""
    charges: bool = False
    """What it does not answer for is in doubt, as where a client vanished; else nobody is charged,
    because it is the daemon that stops, or an operator who ends the session."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The connection is gone: report every grant as it is, forget all."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What is durable of a grant's progress."""

    grant: int
    progress: Progress


@dataclass(frozen=True, slots=True)
class Suspended:
    """Deliver nothing to the subscription until `Resumed`."""

    subscription: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """Deliver to the subscription again."""

    subscription: int


@dataclass(frozen=True, slots=True)
class Edited:
    """The group of the subscription was edited: what follows counts for its held streams too."""

    subscription: int
    ack_wait_ms: int
    stall_at_damage: bool
    policy: RetryPolicy | None = None


@dataclass(frozen=True, slots=True)
class Paused:
    """The group of the subscription is paused: deliver nothing to it until `Unpaused`."""

    subscription: int


@dataclass(frozen=True, slots=True)
class Unpaused:
    """The group was resumed. What is suspended besides stays so."""

    subscription: int


@dataclass(frozen=True, slots=True)
class Ticked:
    """The time that `DeliveryWindow.wake_at_ms` names came, or later."""


@dataclass(frozen=True, slots=True)
class TakenBack:
    """Answers an `AskBack`."""

    grant: int
    """Of the lane."""
    number: int
    """Of the question. From a client, so untrusted."""
    out: bool
    """The program has the first record still; what follows it was dropped by the client."""


DeliveryInput = (
    Installed
    | Grown
    | StreamSealed
    | ChunkRead
    | ReadFailed
    | Settle
    | Settles
    | RevokeBegun
    | RevokeFinished
    | Dropped
    | Left
    | Draining
    | Closing
    | Saved
    | Suspended
    | Resumed
    | Edited
    | Paused
    | Unpaused
    | Ticked
    | EntriesRead
    | LaneOpened
    | Moved
    | TakenBack
)


class OpenLane(NamedTuple):
    """Be the only one who appends to the queues, then read them: the retry queue from its floor,
    the dead letters from where they were applied, or where those hold up their keys, from their
    floor too. Answer with `EntriesRead`, at last `LaneOpened`.
    """

    grant: int
    stream: StreamId
    grant_epoch: int
    retry: StreamId
    retry_from: int
    dead: StreamId
    dead_from: int


class Move(NamedTuple):
    """Append records to the queues; answer with `Moved`. One at a time per lane."""

    grant: int
    pieces: tuple[MovePiece, ...]


class Read(NamedTuple):
    """Read the stream of the grant; answer with `ChunkRead`. One at a time per grant."""

    grant: int
    stream: StreamId
    offset: int
    bytes_max: int


class Deliver(NamedTuple):
    """Send frames to the client."""

    grant: int
    frames: bytes
    mask: Ranges
    """Offsets in the frames that are not for the user."""
    redelivered: bool
    attempt: int
    base: int
    """The offset of the first record of the frames."""
    end: int
    """The offset after their last record."""


@dataclass(frozen=True, slots=True)
class TellGone:
    """Tell the client that refused records of the grant do not come again: they are lost."""

    grant: int
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Tell the client that these are not its any more: they go to the queues of the lane.

    They are records that it refused, and those of the same keys that it was sent behind them.
    """

    grant: int
    """With the level."""
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class AskBack:
    """Ask the client for what follows a record whose ack wait ran out; answer with `TakenBack`."""

    grant: int
    """With the level."""
    ranges: Ranges
    """The record, and what it was sent of the same key behind it."""
    number: int


@dataclass(frozen=True, slots=True)
class SendRevoke:
    """Tell the client to stop handing out the grant."""

    grant: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Report:
    """Tell the borrower how the grants stand."""

    reports: tuple[tuple[int, StreamReport], ...]
    """By grant number."""
    final: bool = False
    """The streams are no longer read."""


@dataclass(frozen=True, slots=True)
class AnswerSettled:
    """The acks under this token of the client are durable."""

    token: int


@dataclass(frozen=True, slots=True)
class RefuseGrant:
    """A settle named a grant that is not held, or the grant ended before tokens were answered."""

    grant: int
    token: int = 0
    """Not 0: of the settle that was refused as a whole. None of its acks counts."""


@dataclass(frozen=True, slots=True)
class RefuseRange:
    """A settle named offsets that were not delivered under the grant; they were ignored."""

    grant: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Unwanted:
    """The client does not know the subscription of a grant: leave it until it is wanted again."""

    subscription: int


@dataclass(frozen=True, slots=True)
class ShowStalled:
    """Delivery of the grant's stream paused, or goes on again."""

    grant: int
    subscription: int
    stall: Stall
    oldest_unacked: int


DeliveryEffect = (
    Read
    | Deliver
    | TellGone
    | SendRevoke
    | Report
    | AnswerSettled
    | RefuseGrant
    | RefuseRange
    | Unwanted
    | ShowStalled
    | OpenLane
    | Move
    | TakeBack
    | AskBack
)
