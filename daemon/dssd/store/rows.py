"""The kinds of rows that the store keeps, one frozen dataclass each.

An adapter derives its tables from these: the class name is the kind, ``KEY`` names the fields of
its key, in order; field types are int, str, bytes, bool, or one of those or None. Structured
values are encoded by the module that owns the kind. Times end in ``_ms`` (wall clock, since 1970).
"""

from dataclasses import dataclass

from dssd.store.access_rows import PrincipalRow
from dssd.store.job_rows import ChunkRow, JobNameRow, JobProgressRow, JobRow
from dssd.store.row import Row as Row
from dssd.store.schedule_rows import SchedulePositionRow, ScheduleRow, ScheduleRunRow


@dataclass(frozen=True, slots=True)
class IncarnationRow(Row):
    """The incarnation of the data; a restart keeps it. The row with the highest number counts."""

    KEY = ("number",)
    TABLE = "incarnations"
    number: int
    incarnation: bytes
    """Random, 128 bit."""


@dataclass(frozen=True, slots=True)
class TopicRow(Row):
    """A topic: its patterns, its router, and where its produce pointer stands."""

    KEY = ("topic_id",)
    TABLE = "topics"
    topic_id: int
    name: str
    patterns: str
    """One per line."""
    router: str
    """block or range."""
    durability: str
    """sync or os."""
    produce_ordinal: int
    topic_epoch: int
    retention_ms: int | None
    retention_bytes: int | None
    created_at_ms: int
    revision: int = 0
    """Rises with each edit by an operator."""
    level: int = 0
    """Not 0: an internal topic with a group's retry queues (1) or dead letters (2) of another
    topic."""
    group_id: int = 0
    """The group that it belongs to; 0: a topic of its own."""
    main_topic_id: int = 0
    """The topic whose records it holds; 0: a topic of its own."""


@dataclass(frozen=True, slots=True)
class TopicNameRow(Row):
    """Reserves a topic's name: of two creations of one name, a precondition fails the second."""

    KEY = ("name",)
    TABLE = "topic_names"
    name: str
    topic_id: int


@dataclass(frozen=True, slots=True)
class StorageTopicRow(Row):
    """One generation of a topic."""

    KEY = ("topic_id", "ordinal")
    TABLE = "storage_topics"
    topic_id: int
    ordinal: int
    storage_topic_id: int
    partitions: int
    factor: int
    ends: str | None
    """Sealed: the end offset of each partition, comma-separated; else None."""
    starts: str
    """The first kept offset of each partition, comma-separated: the low watermarks."""
    begins_us: int = 0
    """When it began to take records: its records and producers are younger. 0: it is the first, or
    has not."""


@dataclass(frozen=True, slots=True)
class SegmentRow(Row):
    """One segment file. Committed before the file takes its first frame."""

    KEY = ("storage_topic_id", "segment_id")
    TABLE = "segments"
    storage_topic_id: int
    segment_id: int
    state: str
    """active, sealed or ingested."""
    watermark_bytes: int
    """All bytes below it are durable: bad bytes below it are damage, above it a torn tail."""
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class CeilingRow(Row):
    """An upper bound of the assigned offsets of a stream whose frames may be answered before they
    are durable. After a loss of power the stream continues there."""

    KEY = ("storage_topic_id", "partition")
    TABLE = "ceilings"
    storage_topic_id: int
    partition: int
    ceiling: int


@dataclass(frozen=True, slots=True)
class HoldRow(Row):
    """Records that retention keeps until their holder has read them."""

    KEY = ("holder", "storage_topic_id", "partition")
    TABLE = "holds"
    holder: int
    """The id of a job."""
    storage_topic_id: int
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class GroupRow(Row):
    """A group. A private subscription is a group of kind exclusive, owned by its session."""

    KEY = ("group_id",)
    TABLE = "groups"
    group_id: int
    name: str
    filter: str
    kind: str
    """shared, queue or exclusive."""
    start: str
    """As declared: now, earliest, @MICROSECONDS or =OFFSET."""
    session_id: bytes | None
    """Of an exclusive group: the session that owns it."""
    ack_wait_ms: int
    created_at_ms: int
    cursor_generation: int
    """The number of the newest operation that moved cursors of the group; 0: none did."""
    protocol: str = "borrow"
    """borrow or lease: the protocol between its leader and its members."""
    on_damage: str = "pass"
    """pass or stall: how it treats confirmed damaged records."""
    revision: int = 0
    """Rises with each applied operation and each edit."""
    paused: bool = False
    paused_until_ms: int | None = None
    """When a pause ends by itself; None: it does not."""
    max_deliver: int = 0
    """Attempts before a record is dead; 0: the group has no queues."""
    backoff_ms: str = ""
    """The backoff after each failure, comma-separated; the last one repeats."""
    queue_records: int = 0
    queue_bytes: int = 0
    """How much the queues of one stream may hold; 0: the group has none."""
    ordered: bool = False
    """Records of a key come in order, also through retries."""
    shards: int = 0
    """The number of shards; 0: the base of the topic."""
    allocation: str = "sticky"
    """sticky or shard: how streams are allocated to members."""
    on_dead_letter: str = "skip"
    """skip or block: how a key continues after a dead letter."""
    keyless: str = "deliver"
    """deliver or dead: how an ordered group treats records without a key."""
    metadata: str = ""
    """Kept for the creator; the daemon does not read it."""
    unused_ms: int = 0
    """The group is removed after so long without a subscription; 0: never."""

    @property
    def full_name(self) -> str:
        """NAME@FILTER, as people write it."""
        return f"{self.name}@{self.filter}"


@dataclass(frozen=True, slots=True)
class GroupNameRow(Row):
    """Reserves (name, filter) for a group, or is the tombstone of a removed group."""

    KEY = ("name", "filter")
    TABLE = "group_names"
    name: str
    filter: str
    group_id: int
    destroyed_at_ms: int | None
    """Not None: a tombstone, so that returning members get a clear error."""


@dataclass(frozen=True, slots=True)
class LeaderRow(Row):
    """The leader of a group. The epoch rises with each claim and fences every commit."""

    KEY = ("group_id",)
    TABLE = "leaders"
    group_id: int
    boot_id: bytes
    leader_epoch: int
    beat: int


@dataclass(frozen=True, slots=True)
class GrantRow(Row):
    """The holder of a stream. The row stays when there is no holder, because its epoch only
    grows."""

    KEY = ("group_id", "storage_topic_id", "partition")
    TABLE = "grants"
    group_id: int
    storage_topic_id: int
    partition: int
    grant_epoch: int
    session_id: bytes | None
    borrower_id: bytes | None
    cursor_generation: int
    """As in `ProgressRow`."""
    pinned_session_id: bytes | None = None
    """An operator gave the stream to this session, until it leaves."""


@dataclass(frozen=True, slots=True)
class StreamSetRow(Row):
    """The newest version of a session's stream sets, in a group of the lease protocol.

    The row exists while the session has a member; a later member starts at 1 again.
    """

    KEY = ("group_id", "session_id")
    TABLE = "stream_sets"
    group_id: int
    session_id: bytes
    set_version: int


@dataclass(frozen=True, slots=True)
class ProgressRow(Row):
    """The progress of a group in a stream."""

    KEY = ("group_id", "storage_topic_id", "partition")
    TABLE = "progress"
    group_id: int
    storage_topic_id: int
    partition: int
    floor: int
    ranges: bytes
    """Acked ranges above the floor: pairs of little-endian u64."""
    frontier: int
    """According to the reports, nothing at or above it was handed to a user."""
    attempts: bytes
    """Hand-outs of unacked records, known or in doubt: triples (start, end, attempts) of
    little-endian u64."""
    finished: bool
    cursor_generation: int
    """The number of the newest operation that moved the cursor; 0: none did."""
    failures: bytes = b""
    """Attempts that surely failed, of unacked records: triples as in ``attempts``."""
    doubts: bytes = b""
    """How often a client vanished that had the unacked record: triples as in ``attempts``."""
    rests: bytes = b""
    """Unacked records that rest: triples (start, end, due in wall-clock milliseconds)."""
    damaged: bytes = b""
    """The newest ranges that were passed over as damaged: pairs as in ``ranges``."""
    acked_count: int = 0
    """How many offsets the user acknowledged, since the group began."""
    filtered_count: int = 0
    """How many the filter rejected."""
    lost_count: int = 0
    """How many retention or a gap took."""
    damaged_count: int = 0
    """How many were damaged, and passed over."""
    moved_count: int = 0
    """Records that operators skipped, minus those that they reopened."""
    marked_below: int = 0
    """Unacked records below it were perhaps handed out before an operator moved the cursor."""
    rest_delays: bytes = b""
    """How long each entry of ``rests`` was to rest, in milliseconds: little-endian u64. Empty in
    rows of a format before 10 that were not written since."""
    retried_count: int = 0
    """How many went to a queue after a failure, or back from the dead letters."""
    applied_end: int = 0
    """Of a queue: every entry below it has acknowledged the record that it was made of."""
    redrive: int = 0
    """Of dead letters: the operation that redrives them; 0: none does."""
    redriving: bytes = b""
    """Of dead letters: which of them that operation redrives: pairs as in ``ranges``."""
    redrive_ms: int = 0
    """Of dead letters: the time over which the redrive is spread; 0: none."""
    redrive_whole_keys: bool = False
    """Of dead letters: the redrive has all dead letters of its keys."""
    errand: int = 0
    """Of a retry queue: the operation with an errand for its holder; 0: none."""
    errand_kind: str = ""
    """The errand: ``skip`` or ``dead``."""
    errand_ranges: bytes = b""
    """The entries of the errand, until it is done: pairs as in ``ranges``."""
    hurried: int = 0
    """Of a retry queue: the last operation that made entries due at once."""
    hurried_ranges: bytes = b""
    """Which they are: pairs as in ``ranges``."""


@dataclass(frozen=True, slots=True)
class PendingMoveRow(Row):
    """A move of a cursor that an applied operation waits to make. The commit that makes the move
    deletes the row."""

    KEY = ("group_id", "storage_topic_id", "partition")
    TABLE = "pending_moves"
    group_id: int
    storage_topic_id: int
    partition: int
    number: int
    """Of the operation."""
    dropped: bytes
    """Offsets that are no longer acknowledged: pairs of little-endian u64."""
    added: bytes
    """Offsets that count as acknowledged, after that: pairs as in ``dropped``."""
    redriven: bytes = b""
    """Dead letters of the stream to redrive, pairs as in ``dropped``."""
    discarded: bytes = b""
    """Dead letters of the stream to discard, pairs as in ``dropped``."""
    redrive_ms: int = 0
    """The time over which those of ``redriven`` are spread."""
    redrive_whole_keys: bool = False
    """``redriven`` has all dead letters of its keys."""
    errand_kind: str = ""
    """The errand for entries of the retry queue: ``now``, ``later``, ``skip`` or ``dead``."""
    errand_ranges: bytes = b""
    """Which they are: pairs as in ``dropped``."""


@dataclass(frozen=True, slots=True)
class MadeMoveRow(Row):
    """A move of a cursor that an operation made, in one commit with the progress that it gave."""

    KEY = ("number", "storage_topic_id", "partition")
    TABLE = "made_moves"
    number: int
    """The operation that made it."""
    storage_topic_id: int
    partition: int
    floor_before: int
    ranges_before: bytes
    """Pairs as in `ProgressRow`."""
    floor_after: int
    ranges_after: bytes


@dataclass(frozen=True, slots=True)
class OperationRow(Row):
    """A change that an operator applied."""

    KEY = ("number",)
    TABLE = "operations"
    number: int
    operation_id: str
    """The operator's own id; a repeated call with it gets this operation."""
    kind: str
    """offsets.rewind for one."""
    subject: str
    """A group NAME@FILTER, a topic, a client."""
    group_id: int
    """0 where it is about no group."""
    state: str
    """running, done, cancelled or failed."""
    asked: str
    """What was asked for: JSON."""
    change: str
    """What was applied, resolved: JSON."""
    summary: str
    """What was applied, as a sentence."""
    reason: str
    principal: str
    origin: str
    """Where the call came from."""
    applied_at_ms: int
    ended_at_ms: int | None
    revision: int
    """The revision of its subject after it was applied."""
    before: str
    """The values before the change: JSON."""
    after: str
    failure: str
    """Why it failed, or who cancelled it and why; empty where it is done."""
    undoes: int
    """The operation that this one undoes; 0: none."""
    undone_by: int
    """0: none."""
    not_undoable_because: str
    """Empty: it can be undone."""


@dataclass(frozen=True, slots=True)
class OperationIdRow(Row):
    """Which operation an operator's own id names."""

    KEY = ("operation_id",)
    TABLE = "operation_ids"
    operation_id: str
    number: int


@dataclass(frozen=True, slots=True)
class BanRow(Row):
    """A client that may not be a member of a group for a while."""

    KEY = ("group_id", "client_id")
    TABLE = "bans"
    group_id: int
    client_id: str
    until_ms: int
    number: int
    """Of the operation."""
    lasts_ms: int | None = None
    """Its intended duration; unknown in rows of a format before 10."""


@dataclass(frozen=True, slots=True)
class SessionRow(Row):
    """A consumer's state that outlives its connection."""

    KEY = ("client_id",)
    TABLE = "sessions"
    client_id: str
    session_id: bytes
    session_epoch: int
    expiry_ms: int
    disconnected_at_ms: int | None
    """None while it is connected."""
    principal: str


@dataclass(frozen=True, slots=True)
class SubscriptionRow(Row):
    """One subscription of a session."""

    KEY = ("session_id", "subscription")
    TABLE = "subscriptions"
    session_id: bytes
    subscription: int
    filter: str
    group_id: int


@dataclass(frozen=True, slots=True)
class EventRow(Row):
    """An event, as operators see it."""

    KEY = ("number",)
    TABLE = "events"
    number: int
    """Rises and is never reused: the newest row is never removed. Below 0: a draft, committed with
    the change that it reports; it soon gets a number of its own."""
    at_ms: int
    code: str
    severity: str
    """info, warning or error."""
    subject: str
    """A stream, a group, a client, a file."""
    sentence: str
    fields: str
    """A JSON object of strings."""
    times: int
    """How often it occurred, the first time included."""
    last_at_ms: int


KINDS: tuple[type[Row], ...] = (
    IncarnationRow,
    TopicRow,
    TopicNameRow,
    StorageTopicRow,
    SegmentRow,
    CeilingRow,
    HoldRow,
    JobRow,
    JobProgressRow,
    JobNameRow,
    ChunkRow,
    GroupRow,
    GroupNameRow,
    LeaderRow,
    GrantRow,
    StreamSetRow,
    ProgressRow,
    SessionRow,
    SubscriptionRow,
    EventRow,
    PendingMoveRow,
    MadeMoveRow,
    OperationRow,
    OperationIdRow,
    BanRow,
    ScheduleRow,
    SchedulePositionRow,
    ScheduleRunRow,
    PrincipalRow,
)
