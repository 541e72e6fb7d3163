"""Inputs and effects of a session's delivery window (`window`).

The session feeds inputs, each with its monotonic clock, and carries out effects in order. A grant
is named by its number in the session, a multiple of `LEVELS_MAX`. An input or effect about one
level (`Read` and its answer, `Deliver`, `Settle`, `TellGone`, `RefuseRange`) adds the level to that
number. Offsets in a `Settle` come from a client and are untrusted.
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
    """With ``source_offset``: the record that the entry was made of, and acknowledges."""
    source_offset: int
    size: int
    """The record's size in bytes, roughly."""
    origin: int = 0
    """The record's offset in the stream of the lane; records of a key are sent in this order. It is
    below 0 where the record was in an earlier storage topic."""
    key: int = 0
    """Of an ordered lane: the hash of its key; 0: it has none."""
    is_suspect: bool = False
    """Of an ordered lane: the record is a suspect, which is sent alone."""
    is_rehomed: bool = False
    """It was made from an entry of another lane, so it has no source in this one."""
    operation: int = 0
    """The operation that made the entry; 0: none did."""


@dataclass(frozen=True, slots=True)
class EntriesRead:
    """Entries of a queue of a lane that is being opened, in order. Answers `OpenLane` piecewise."""

    grant: int
    level: int
    entries: tuple[Entry, ...]
    end: int
    """Everything below it was read."""


@dataclass(frozen=True, slots=True)
class LaneOpened:
    """Both queues were read to their ends, and nobody else appends to them any more."""

    grant: int
    dead_size: int = 0
    """The average size of a dead letter, in bytes."""


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
    """The operation that asks for the move; 0: none does."""
    is_copied: bool = False
    """The entries are copied unchanged: only their offsets change."""

    def left(self, done: Sequence[Ranges]) -> "Iterator[MovePiece]":
        """The part of it that is not done; `done` is by level."""
        for start, end in without(((self.start, self.end),), done[self.level]):
            yield self._replace(start=start, end=end)


@dataclass(frozen=True, slots=True)
class Moved:
    """Answers a `Move`: what is durable in the queues now, what is lost, and what failed."""

    grant: int
    entries: tuple[tuple[int, Entry], ...] = ()
    """Level and entry, in the order of their offsets: every entry that the move appended."""
    lost: tuple[tuple[int, int, int], ...] = ()
    """Level, start and end of records that the log no longer has."""
    failed: tuple[MovePiece, ...] = ()
    """Pieces that could not be moved."""


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
    """Stop at records that are confirmed damaged, rather than pass over them."""
    policy: RetryPolicy | None = None
    """How the lane treats failures; None: the group has no queues."""


@dataclass(frozen=True, slots=True)
class Grown:
    """The stream of the grant has new records."""

    grant: int


@dataclass(frozen=True, slots=True)
class StreamSealed:
    """The stream of an ordered lane ends there; the streams after it wait until it is read."""

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
    """The user refused these records; send them again."""

    start: int
    end: int
    delay_ms: int | None = None
    error: str = ""
    error_type: str = ""
    reject: bool = False
    """Do not send them again."""


class Settle(NamedTuple):
    """What the client says of one grant."""

    grant: int
    acked: Ranges = ()
    naks: tuple[Nak, ...] = ()
    frontier: int = 0
    """Every offset below it was handed to the user or is masked."""
    token: int = 0
    """If not 0, answer once the acks are durable."""
    in_progress: Ranges = ()
    """The ack wait of these begins anew."""
    handed_out: Ranges = ()
    """Handed to the user out of turn: above the frontier, or below it once more. Before the client
    says so of a record that was sent again, a nak of it is about the earlier sending."""


def ranges_in(settle: Settle) -> int:
    """How many ranges the settle names."""
    return len(settle.acked) + len(settle.naks) + len(settle.in_progress) + len(settle.handed_out)


def work_of(settle: Settle) -> int:
    """How much work the settle is, in acked ranges."""
    return ranges_in(settle) + (NAK_RANGES - 1) * len(settle.naks)


def pieces_of(settle: Settle, ranges_max: int) -> Iterator[Settle]:
    """Cut the settle into several of at most so much work, in the order in which they are applied.

    The last one carries the token, which stands for all of them.
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
    """Settles that came together. The credit that they give back is used after the last one."""

    settles: tuple[Settle, ...]


@dataclass(frozen=True, slots=True)
class RevokeBegun:
    """The leader wants the stream back: stop, and report finally within the deadline."""

    grant: int
    deadline_ms: int
    """A duration."""


@dataclass(frozen=True, slots=True)
class RevokeFinished:
    """The client has dropped what it had not handed out. Without a revoke, it refuses the grant."""

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
    """After this duration, records that the client has not settled are reported without it."""
    charges: bool = False
    """Records that it does not settle count as in doubt, as if the client had vanished. False where
    the daemon stops, or an operator ends the session: then no attempt is counted."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The connection is gone: report every grant as it is, forget all."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The durable progress of a grant."""

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
    """The group of the subscription was edited: these values apply to its held streams too."""

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
    """The group was resumed. A suspended subscription stays suspended."""

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
    """The number of the `AskBack`. It comes from a client and is untrusted."""
    out: bool
    """The program still has the first record; the client dropped the others."""


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
    """Fence all other writers of the queues, then read both: the retry queue from its floor, the
    dead letters from their ``applied_end``. Where dead letters hold up their keys, these too are
    read from their floor. Answer with `EntriesRead`, and finally `LaneOpened`.
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
    """Take records back from the client: they go to the queues of the lane.

    These are records that it refused, and later records of their keys that it was sent.
    """

    grant: int
    """The number of the grant plus the level."""
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class AskBack:
    """Ask the client to drop the later records of a key, as the ack wait of the first ran out.

    Answer with `TakenBack`.
    """

    grant: int
    """The number of the grant plus the level."""
    ranges: Ranges
    """The record, and later records of its key that the client was sent."""
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
    """If not 0, the token of the settle that was refused as a whole: none of its acks counts."""


@dataclass(frozen=True, slots=True)
class RefuseRange:
    """A settle named offsets that were not delivered under the grant; they were ignored."""

    grant: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Unwanted:
    """The client does not know the subscription of a grant: leave it until a client subscribes."""

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
