"""What operators can change: one frozen value a change, for `Operations.plan` and `.apply`.

A group is named as everywhere: NAME, NAME@FILTER or ``$share/NAME/FILTER``; a stream is
``orders/0/3``. A change that a plan answers with is resolved: it names offsets, moves and members,
and applying it does exactly that. Invariant: values alone; no wire message, no connection.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from dss_client.job_values import JobInput, SourceRange
from dss_client.offsets import StreamOffsets

Target: TypeAlias = str | int | datetime
"""``earliest``, ``latest``, a time of the shared grammar, ``=OFFSET``; a number is an offset."""


@dataclass(frozen=True, slots=True)
class StreamTarget:
    """Where the cursor of one stream is put."""

    stream: str
    storage_topic_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class MoveCursors:
    """Moves the cursors of a group, `to` a target or `by` a distance from the present floors."""

    group: str
    direction: str
    """``rewind`` (nothing is passed over), ``skip`` (nothing comes again) or ``seek`` (both)."""
    to: Target | None = None
    by: int | timedelta | None = None
    """Records, or time as it was appended; negative is back."""
    streams: tuple[str, ...] = ()
    """All that the group reads where empty."""
    targets: tuple[StreamTarget, ...] = ()
    """Resolved by a plan: then the rest, the direction aside, is ignored."""


@dataclass(frozen=True, slots=True)
class ImportOffsets:
    """Gives a group the progress that was exported, of this daemon or of another."""

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
    """Acknowledges records for a group, by hand."""

    group: str
    stream: str
    offset: int
    count: int = 1
    more: tuple[RecordSpan, ...] = ()
    """In the same operation."""


@dataclass(frozen=True, slots=True)
class Undo:
    """Takes an operation back."""

    number: int


@dataclass(frozen=True, slots=True)
class PauseGroup:
    """Hands out nothing to any member of a group."""

    group: str
    until_ms: int | None = None
    """By the wall clock; until it is resumed where none is given."""


@dataclass(frozen=True, slots=True)
class ResumeGroup:
    """Ends a pause."""

    group: str


@dataclass(frozen=True, slots=True)
class StreamMove:
    """One stream goes from one member to another."""

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
    """Resolved by a plan."""


@dataclass(frozen=True, slots=True)
class Evict:
    """Ends a member's subscription."""

    group: str
    borrower: str
    """A borrower's id, or a client id."""
    grace_ms: int | None = None
    """How long it may go on with what it has out."""
    ban_ms: int | None = None
    """How long it is kept out of the group; not at all where none is given."""


@dataclass(frozen=True, slots=True)
class TransferGrant:
    """Gives one stream to a certain member."""

    group: str
    stream: str
    to: str
    """A borrower's id, or a client id."""


@dataclass(frozen=True, slots=True)
class RevokeGrant:
    """Takes one stream from its holder and gives it to anybody else."""

    group: str
    stream: str


@dataclass(frozen=True, slots=True)
class EditGroup:
    """What is None stays as it is."""

    group: str
    ack_wait_ms: int | None = None
    on_damage: str | None = None
    """``pass`` or ``stall``."""


@dataclass(frozen=True, slots=True)
class RemoveGroup:
    """Removes a group and its progress."""

    group: str


@dataclass(frozen=True, slots=True)
class EditTopic:
    """What is None stays as it is."""

    topic: str
    retention_ms: int | None = None
    retention_bytes: int | None = None
    no_retention_ms: bool = False
    """Records of any age are kept."""
    no_retention_bytes: bool = False
    """Any number of bytes is kept."""
    durability: str | None = None
    """``sync`` or ``os``."""


@dataclass(frozen=True, slots=True)
class RemoveTopic:
    """Removes a topic and every record in it."""

    topic: str
    force: bool = False
    """Although groups read it."""


@dataclass(frozen=True, slots=True)
class CloseSession:
    """Ends the session of a client."""

    client_id: str
    session_id: bytes = b""
    """This one only, as a plan names it; the one that the client has where it is empty."""


@dataclass(frozen=True, slots=True)
class RunTask:
    """Runs a task of the daemon once."""

    task: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int | None = None
    """How long it may take; as long as any may where none is given."""


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


@dataclass(frozen=True, slots=True)
class CreateJob:
    """Makes a bulk job: its manifest, and what it holds."""

    name: str
    kind: str
    """``replay``, ``export``, ``backfill``, ``audit`` or ``transform``."""
    engine: str = "local"
    source: str = ""
    """A topic; empty where it reads none."""
    start_us: int | None = None
    """Append times; all that is kept where they are absent."""
    end_us: int | None = None
    filter: str = ""
    target: str = ""
    rate_bytes_s: int = 0
    """0: as much as comes."""
    chunk_bytes: int = 0
    """The usual size where 0."""
    hops_max: int = 0
    """The usual number where 0."""
    allow_loop: bool = False
    """Although it writes to the topic that it reads."""
    params: str = ""
    """What its driver is told besides: JSON."""
    inputs: tuple[JobInput, ...] = ()
    """The chunks of a job that reads no topic."""
    ranges: tuple[SourceRange, ...] = ()
    """Resolved by a plan: then the times are ignored."""


@dataclass(frozen=True, slots=True)
class PauseJob:
    """Lets a job publish nothing more until it is resumed."""

    job: str


@dataclass(frozen=True, slots=True)
class ResumeJob:
    """Ends a pause."""

    job: str


@dataclass(frozen=True, slots=True)
class CancelJob:
    """Ends a job; what it published stays."""

    job: str


@dataclass(frozen=True, slots=True)
class RemoveJob:
    """Forgets a job that has ended, with its manifest."""

    job: str


Change: TypeAlias = (
    MoveCursors
    | ImportOffsets
    | SkipRecords
    | Undo
    | PauseGroup
    | ResumeGroup
    | Rebalance
    | Evict
    | TransferGrant
    | RevokeGrant
    | EditGroup
    | RemoveGroup
    | EditTopic
    | RemoveTopic
    | CloseSession
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
