"""Groups, their members and their streams, as lists and watches tell of them.

Invariant: frozen values, whose fields are those of the messages in `groups.proto`. They are apart
from the answers to what operators ask, because every list needs them and nothing of those.
"""

from dataclasses import dataclass

from dss_core.progress import Progress, Ranges


@dataclass(frozen=True, slots=True)
class Rates:
    """Records a second."""

    minute: float
    """Averaged over a minute."""
    five_minutes: float


@dataclass(frozen=True, slots=True)
class Fates:
    """How many records a group is done with, by what became of them."""

    acked: int
    filtered: int
    """The filter rejects them."""
    lost: int
    """To retention, or to a loss of power."""
    damaged: int
    """Confirmed unreadable, and skipped."""
    moved: int
    """Records that operators skipped, less those that they reopened; may be negative."""
    retried: int = 0
    """Failed records, moved to a retry queue or the dead letters, which count them again."""


@dataclass(frozen=True, slots=True)
class Group:
    """A shared subscription and how it stands."""

    group_id: int
    name: str
    filter: str
    kind: str
    """``shared``, ``queue`` or ``exclusive``."""
    start: str
    """As declared: now, earliest, a time, an offset."""
    created_at_ms: int
    state: str
    """``idle``, ``active``, ``rebalancing`` or ``stalled``."""
    state_reason: str
    borrowers: int
    standby: int
    """Members without a stream."""
    streams: int
    lag: int
    """Records not acknowledged; an upper bound unless `lag_exact`."""
    lag_exact: bool
    oldest_unacked_us: int | None
    """Append time of the oldest unacknowledged record."""
    leader_epoch: int
    """0 where no leader ever ran."""
    ack_wait_ms: int
    protocol: str
    """``borrow`` or ``lease``: how its leader and its members talk."""
    on_damage: str
    """``pass`` or ``stall``: what becomes of records that are confirmed damaged."""
    fates: Fates
    revision: int
    """Rises with each operation that was applied to it, and each edit."""
    paused: bool
    """An operator paused it: nothing is handed out."""
    paused_until_ms: int | None
    """When the pause ends by itself."""
    arrivals: Rates
    """Rates of the topics that it reads."""
    acks: Rates
    """Rates of the records that it finished."""
    drain_ms: int | None
    """Until it has all, as the last minute went; None: it does not catch up."""
    leader_since_ms: int | None
    """Since when it has the leader that it has; None: nobody leads it."""
    health: str
    """``healthy``, ``attention`` or ``problem``, by all that a list knows of it."""
    max_deliver: int = 0
    """Attempts before a record is among the dead letters; 0: no queues, it comes for ever."""
    backoff_ms: tuple[int, ...] = ()
    """How long a record rests after each failure; the last one repeats."""
    queue_records: int = 0
    """How many records its queues may hold of one stream."""
    queue_bytes: int = 0
    """And how many bytes."""
    retrying: int = 0
    """Records that wait in its retry queues."""
    dead: int = 0
    """Records among its dead letters."""
    ordered: bool = False
    """Records of a key come one at a time and in order, also through retries."""
    on_dead_letter: str | None = None
    """``block``: a dead letter holds up its key; or ``skip``. None in a group without order."""
    keyless: str | None = None
    """``deliver`` or ``dead``: what becomes of records without a key there."""
    allocation: str | None = None
    """``shard``: one member has all streams of a shard; ``sticky``: each is shared out alone."""
    shards: int = 0
    """As declared; 0: as many as the topic has for a base."""
    metadata: str = ""
    """What its creator keeps with it."""
    unused_ms: int = 0
    """It is removed once no client has subscribed for so long; 0: it stays."""


@dataclass(frozen=True, slots=True)
class ShardedStorage:
    """A storage topic that a group still reads."""

    name: str
    """TOPIC/ORDINAL."""
    partitions: int
    factor: int


@dataclass(frozen=True, slots=True)
class ShardStanding:
    """One shard of a group, and how it stands."""

    number: int
    streams: tuple[str, ...]
    """As TOPIC/ORDINAL/PARTITION, of the storage topics that the group still reads."""
    holders: tuple[str, ...]
    """Client ids; more than one only while it changes hands."""
    lag: int
    lag_exact: bool
    retrying: int
    dead: int
    oldest_unacked_us: int | None
    """Append time of the oldest unacknowledged record."""


@dataclass(frozen=True, slots=True)
class ShardedGroup:
    """The shards of a group, and how well they fit the topic that it reads."""

    group: str
    filter: str
    shards: int
    even: bool
    """Each has as many streams as any other, of each storage topic."""
    aligned: bool
    """All records of a key are in one shard."""
    better: tuple[int, ...]
    """The nearest counts that are both; empty where this one is."""
    storage_topics: tuple[ShardedStorage, ...]
    """Those that it still reads, the oldest first."""
    each: tuple[ShardStanding, ...]
    without: tuple[str, ...]
    """Client ids of members that have none."""


@dataclass(frozen=True, slots=True)
class Borrower:
    """A member of a group."""

    borrower_id: str
    client_id: str
    streams: int
    standby: bool
    connected_at_ms: int
    lag: int
    """Of the streams that it holds."""
    acks: Rates
    """Of those streams."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One stream of a group: who holds it and how far it was consumed."""

    group: str
    filter: str
    stream: str
    state: str
    """``free``, ``granting``, ``granted``, ``revoking``, ``revoked`` or ``finished``."""
    client_id: str
    """Empty where free."""
    grant_epoch: int
    progress: Progress
    end: int
    """The stream's next offset."""
    lag: int
    """Records not acknowledged; an upper bound unless `lag_exact`."""
    lag_exact: bool
    oldest_unacked_us: int | None
    """Append time of the oldest unacknowledged record."""
    state_age_ms: int
    stall: str
    """Why nothing is delivered, as a sentence; empty where it is."""
    fates: Fates
    damaged: Ranges
    """The newest damaged ranges that were skipped."""
    pinned_to: str
    """The client that an operator gave it to; empty where nobody did."""
    arrivals: Rates
    acks: Rates
    """Rates of the records that the group finished in it."""
