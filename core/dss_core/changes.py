"""What an operator may change, as a value each: the same for programs, the daemon and the wire.

The wire has the same changes with the same fields; `dss_api.changes` goes by their names. A change
that a plan answers with is *resolved*: it names offsets instead of times, moves and members, and
applying it does exactly that. A group is NAME, NAME@FILTER or ``$share/NAME/FILTER``; a stream is
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
    """Records from the target on come again; none is passed over."""
    SKIP = "skip"
    """Records before the target are passed over; none comes again."""
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
    """Resolved: `streams` and `to` say nothing then."""


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    """Where a group stood in a stream, by names and numbers that another daemon knows as well."""

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
    """Records of a stream that follow one another."""

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
    """Lets single records come once more, though they are acknowledged; no cursor moves."""

    group: str
    stream: str
    offset: int
    count: int = 1
    more: tuple[RecordSpan, ...] = ()
    """In the same operation."""


@dataclass(frozen=True, slots=True)
class PauseGroup:
    """Lets the members of a group hand out nothing new."""

    group: str
    until_ms: int | None = None
    """By the wall clock; until it is resumed where None."""


@dataclass(frozen=True, slots=True)
class ResumeGroup:
    """Ends a pause."""

    group: str


@dataclass(frozen=True, slots=True)
class Undo:
    """Takes an operation back."""

    number: int


@dataclass(frozen=True, slots=True)
class EditGroup:
    """What is None stays as it is."""

    group: str
    ack_wait_ms: int | None = None
    on_damage: str | None = None
    """``pass`` or ``stall``."""
    max_deliver: int | None = None
    """This gives a group queues, or takes them (0); what follows is of a group that has some."""
    backoff_ms: tuple[int, ...] = ()
    """Stays as it is where empty."""
    queue_records: int | None = None
    queue_bytes: int | None = None
    ordered: bool | None = None
    """A group becomes ordered, or is so no more, only with getting or losing its queues."""
    on_dead_letter: str | None = None
    """``block`` or ``skip``; of an ordered group, as what follows."""
    keyless: str | None = None
    """``deliver`` or ``dead``."""


@dataclass(frozen=True, slots=True)
class SetShardCount:
    """Cuts the streams of an ordered group into so many shards, each of which one member has."""

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
    """Lets what is produced go to the next storage topic; the one before is sealed for good."""

    topic: str


@dataclass(frozen=True, slots=True)
class GroupShards:
    """Into how many shards a group is cut, if it is still at that revision."""

    group: str
    shards: int
    revision: int


@dataclass(frozen=True, slots=True)
class GrowTopic:
    """Adds a storage topic of so many partitions and switches to it."""

    topic: str
    partitions: int
    with_shards: bool = False
    """Then cuts its ordered groups into as many shards as fit it."""
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
    """This one only; resolved. Empty: the one that the client has."""


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
    """Only those of this principal; empty: whosever they are."""
    sessions: tuple[NamedSession, ...] = ()
    """Resolved: `clients` and `of` say nothing then."""


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
    """Resolved: `moves_max` says nothing then."""


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
    """How long it may go on with what it has out; as for every revoke where none is given."""
    ban_ms: int | None = None
    """How long its client is kept out; not at all where none is given."""


@dataclass(frozen=True, slots=True)
class RunTask:
    """Runs a task once."""

    task: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int | None = None
    """How long it may take; as long as any may where None."""


@dataclass(frozen=True, slots=True)
class CreateSchedule:
    """Makes a schedule. What is None is as the daemon has it where nothing is said."""

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
    """Arguments that are not given any more."""
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
    """Lets due times pass."""

    schedule: str


@dataclass(frozen=True, slots=True)
class ResumeSchedule:
    """Lets due times count again, from now on."""

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
