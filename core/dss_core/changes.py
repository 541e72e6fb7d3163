"""The changes of operators as values, shared by programs, the daemon and the wire.

The messages on the wire have the same field names; `dss_api.changes` converts by name. The change
in a plan is *resolved*: it names exact offsets, moves and members instead of times and rules, and
Apply does exactly that. A group is NAME, NAME@FILTER or ``$share/NAME/FILTER``; a stream is
``orders/0/3``. Invariant: values only; what a change means is in its kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from dss_core.job_changes import CancelJob as CancelJob
from dss_core.job_changes import CreateJob as CreateJob
from dss_core.job_changes import JobInput as JobInput
from dss_core.job_changes import PauseJob as PauseJob
from dss_core.job_changes import RemoveJob as RemoveJob
from dss_core.job_changes import ResumeJob as ResumeJob
from dss_core.job_changes import SourceRange as SourceRange
from dss_core.progress import Progress
from dss_core.queue_changes import BuryRetries as BuryRetries
from dss_core.queue_changes import ChosenEntries as ChosenEntries
from dss_core.queue_changes import DiscardDeadLetters as DiscardDeadLetters
from dss_core.queue_changes import LaneRanges as LaneRanges
from dss_core.queue_changes import RedriveDeadLetters as RedriveDeadLetters
from dss_core.queue_changes import RetryNow as RetryNow
from dss_core.queue_changes import SkipRetries as SkipRetries


class Direction(StrEnum):
    """Which way a cursor may go."""

    REWIND = "rewind"
    """Deliver records from the target on again; skip none."""
    SKIP = "skip"
    """Skip records before the target; deliver none again."""
    SEEK = "seek"
    """Both."""


@dataclass(frozen=True, slots=True)
class ToEarliest:
    """The first kept record."""


@dataclass(frozen=True, slots=True)
class ToLatest:
    """Behind the last record."""


@dataclass(frozen=True, slots=True)
class ToTime:
    """The first record that was appended then or later."""

    time_us: int


@dataclass(frozen=True, slots=True)
class ToOffset:
    """An offset of the only stream."""

    offset: int


@dataclass(frozen=True, slots=True)
class ByRecords:
    """From the floor, so many offsets forward, or back where it is negative."""

    records: int


@dataclass(frozen=True, slots=True)
class BySpan:
    """From the append time of a topic's newest record at a floor, forward, or back where it is
    negative: to one time for all its streams."""

    span_ms: int


Target: TypeAlias = ToEarliest | ToLatest | ToTime | ToOffset | ByRecords | BySpan


@dataclass(frozen=True, slots=True)
class StreamTarget:
    """A resolved target."""

    stream: str
    storage_topic_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class MoveCursors:
    """Moves the cursors of a group."""

    group: str
    direction: Direction
    streams: tuple[str, ...] = ()
    """All that the group reads where empty."""
    to: Target | None = None
    targets: tuple[StreamTarget, ...] = ()
    """Resolved: `streams` and `to` are ignored."""


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    """Progress of a group in a stream, named so that another daemon can import it."""

    topic: str
    ordinal: int
    """Of the storage topic."""
    partition: int
    partitions: int
    """Of the storage topic."""
    progress: Progress
    end: int
    """Of the stream, when it was exported."""


@dataclass(frozen=True, slots=True)
class ImportOffsets:
    """Gives a group the progress that was exported."""

    group: str
    streams: tuple[StreamOffsets, ...]


@dataclass(frozen=True, slots=True)
class RecordSpan:
    """Consecutive records of a stream."""

    stream: str
    offset: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class SkipRecords:
    """Acknowledges records for a group by hand."""

    group: str
    stream: str
    offset: int
    count: int = 1
    more: tuple[RecordSpan, ...] = ()
    """In the same operation."""


@dataclass(frozen=True, slots=True)
class RedeliverRecords:
    """Delivers single records once more, although they are acknowledged. No cursor moves."""

    group: str
    stream: str
    offset: int
    count: int = 1
    more: tuple[RecordSpan, ...] = ()
    """In the same operation."""


@dataclass(frozen=True, slots=True)
class PauseGroup:
    """Pauses a group: its members hand out nothing new."""

    group: str
    until_ms: int | None = None
    """By the wall clock; None: until it is resumed."""


@dataclass(frozen=True, slots=True)
class ResumeGroup:
    """Ends a pause."""

    group: str


@dataclass(frozen=True, slots=True)
class Undo:
    """Undoes an operation."""

    number: int


@dataclass(frozen=True, slots=True)
class EditGroup:
    """What is None stays as it is."""

    group: str
    ack_wait_ms: int | None = None
    on_damage: str | None = None
    """``pass`` or ``stall``."""
    max_deliver: int | None = None
    """Gives the group queues; 0: removes them. The next fields need a group with queues."""
    backoff_ms: tuple[int, ...] = ()
    """Stays as it is where empty."""
    queue_records: int | None = None
    queue_bytes: int | None = None
    ordered: bool | None = None
    """A group can become ordered or unordered only when it gets or loses its queues."""
    on_dead_letter: str | None = None
    """``block`` or ``skip``; of an ordered group, as what follows."""
    keyless: str | None = None
    """``deliver`` or ``dead``."""


@dataclass(frozen=True, slots=True)
class SetShardCount:
    """Changes the number of shards of an ordered group; one member holds each shard."""

    group: str
    shards: int


@dataclass(frozen=True, slots=True)
class RemoveGroup:
    """Removes a group with its progress."""

    group: str


@dataclass(frozen=True, slots=True)
class EditTopic:
    """What is None stays as it is."""

    topic: str
    retention_ms: int | None = None
    retention_bytes: int | None = None
    no_retention_ms: bool = False
    """Keep records of any age."""
    no_retention_bytes: bool = False
    """Keep any number of bytes."""
    durability: str | None = None
    """``sync`` or ``os``."""


@dataclass(frozen=True, slots=True)
class AddStorageTopic:
    """Gives a topic another storage topic; nothing is written there before a switch."""

    topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class SwitchTopic:
    """Moves the produce pointer to the next storage topic, and seals the present one for good."""

    topic: str


@dataclass(frozen=True, slots=True)
class GroupShards:
    """A new shard count of a group, valid while the group has that revision."""

    group: str
    shards: int
    revision: int


@dataclass(frozen=True, slots=True)
class GrowTopic:
    """Adds a storage topic of so many partitions and switches to it."""

    topic: str
    partitions: int
    with_shards: bool = False
    """Also changes the shard counts of its ordered groups to fit."""
    shard_counts: tuple[GroupShards, ...] = ()
    """Resolved: these groups, and no others."""


@dataclass(frozen=True, slots=True)
class RemoveTopic:
    """Removes a topic with its records."""

    topic: str
    force: bool = False
    """Although groups read it."""


@dataclass(frozen=True, slots=True)
class CloseSession:
    """Ends the session of a client for good."""

    client_id: str
    session_id: bytes = b""
    """Resolved: only this session. Empty: the client's present one."""


@dataclass(frozen=True, slots=True)
class NamedSession:
    """One session of a client; it may open another one later."""

    client_id: str
    session_id: bytes


@dataclass(frozen=True, slots=True)
class AdoptSessions:
    """Gives sessions without a connection to another principal, with all that they own."""

    to: str
    """The principal that they belong to from then on."""
    clients: tuple[str, ...] = ()
    """Client ids, in which ``*`` stands for any characters; all of them where empty."""
    of: str = ""
    """Only sessions of this principal; empty: of any."""
    sessions: tuple[NamedSession, ...] = ()
    """Resolved: `clients` and `of` are ignored."""


@dataclass(frozen=True, slots=True)
class StreamMove:
    """A stream that changes its holder."""

    stream: str
    from_client_id: str
    """Empty where it is free."""
    to_client_id: str
    from_borrower_id: str = ""
    to_borrower_id: str = ""


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Spreads the streams of a group evenly over its members."""

    group: str
    moves_max: int | None = None
    moves: tuple[StreamMove, ...] = ()
    """Resolved: `moves_max` is ignored."""


@dataclass(frozen=True, slots=True)
class TransferGrant:
    """Gives one stream to a certain member."""

    group: str
    stream: str
    to: str
    """A borrower's id, or a client id."""


@dataclass(frozen=True, slots=True)
class RevokeGrant:
    """Takes one stream from its member, for another."""

    group: str
    stream: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Ends a member's subscription."""

    group: str
    borrower: str
    """A borrower's id, or a client id."""
    grace_ms: int | None = None
    """Time to finish its records in flight; None: that of every revoke."""
    ban_ms: int | None = None
    """How long its client is banned; None: no ban."""


@dataclass(frozen=True, slots=True)
class RunTask:
    """Runs a task once."""

    task: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int | None = None
    """Its timeout; None: the longest allowed."""


@dataclass(frozen=True, slots=True)
class CreateSchedule:
    """Creates a schedule. None means the daemon's default."""

    schedule: str
    task: str
    cron: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    time_zone: str | None = None
    jitter_ms: int | None = None
    overlap: str | None = None
    """``skip``, ``queue`` or ``allow``."""
    catch_up_ms: int | None = None
    timeout_ms: int | None = None
    retries: int | None = None
    backoff_ms: int | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class EditSchedule:
    """What is None stays as it is, and so does each argument of the task that is not named."""

    schedule: str
    cron: str | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    no_arguments: tuple[str, ...] = ()
    """Arguments to remove."""
    time_zone: str | None = None
    jitter_ms: int | None = None
    overlap: str | None = None
    catch_up_ms: int | None = None
    timeout_ms: int | None = None
    retries: int | None = None
    backoff_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RemoveSchedule:
    """Removes a schedule with its history."""

    schedule: str


@dataclass(frozen=True, slots=True)
class PauseSchedule:
    """Pauses a schedule: due times pass without a run."""

    schedule: str


@dataclass(frozen=True, slots=True)
class ResumeSchedule:
    """Resumes a schedule: due times count again, from now on."""

    schedule: str


Change: TypeAlias = (
    MoveCursors
    | ImportOffsets
    | SkipRecords
    | RedeliverRecords
    | Undo
    | RedriveDeadLetters
    | DiscardDeadLetters
    | RetryNow
    | SkipRetries
    | BuryRetries
    | EditGroup
    | SetShardCount
    | RemoveGroup
    | EditTopic
    | AddStorageTopic
    | SwitchTopic
    | GrowTopic
    | RemoveTopic
    | CloseSession
    | AdoptSessions
    | Rebalance
    | TransferGrant
    | RevokeGrant
    | Evict
    | PauseGroup
    | ResumeGroup
    | RunTask
    | CreateSchedule
    | EditSchedule
    | RemoveSchedule
    | PauseSchedule
    | ResumeSchedule
    | CreateJob
    | PauseJob
    | ResumeJob
    | CancelJob
    | RemoveJob
)
