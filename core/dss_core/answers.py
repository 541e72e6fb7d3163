"""Answers of the daemon as values that client and daemon share.

The messages on the wire have the same field names; `dss_api.values` converts by name. Invariant:
values only, times by the daemon's wall clock.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a record is not delivered, or a stream makes no progress."""

    code: str
    """A stable word."""
    sentence: str
    command: str = ""
    """The command to run next; empty: none."""
    client_id: str = ""
    """The client that holds it; empty: none."""
    since_ms: int | None = None
    """By the daemon's wall clock."""
    until_ms: int | None = None
    attempt: int = 0
    """How often it was handed out, the present time included; 0: never, or not known."""
    blocked_by: int | None = None
    """The offset that must be finished first."""


@dataclass(frozen=True, slots=True)
class WatchedGrant:
    """A stream of a group, and its holder."""

    group: str
    """NAME@FILTER."""
    stream: str
    state: str
    """``free``, ``granting``, ``granted``, ``revoking``, ``revoked`` or ``finished``."""
    client_id: str
    """Empty where free."""
    grant_epoch: int
    since_ms: int | None
    """When this state began; None: the group has no leader."""
    stall: str
    """Why delivery is stalled, as a sentence; empty: it is not."""
    pinned_to: str
    """The client that an operator pinned it to; empty: none."""


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What a change would do to one stream."""

    stream: str
    floor: int
    """As it stands now."""
    target: int
    again: int
    """Records to be delivered again."""
    passed: int
    """Records to be skipped."""
    exact: bool
    """False: both counts are upper bounds."""
    clamped: bool
    """The target was raised, because retention took records before it."""
    client_id: str
    """Of the holder; empty where it is free."""


@dataclass(frozen=True, slots=True)
class Held:
    """The use of shared limits by all clients, and the limits."""

    connections: int
    connections_max: int
    calls: int
    calls_max: int
    delivery_bytes: int
    """Read for clients, not yet sent to them."""
    delivery_bytes_max: int


@dataclass(frozen=True, slots=True)
class UnreadLoss:
    """Records of a topic that retention took although a group had not acknowledged them."""

    topic: str
    group: str
    filter: str
    records: int
    """Since the daemon's start."""
    exact: bool
    """False: an upper bound of the records for the group."""
    last_at_ms: int


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A file that was set aside because it is damaged or unknown."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class PeerHeld:
    """The resources of a peer of the daemon: a process of its machine, or an address."""

    peer: str
    connections: int
    calls: int
    sessions: int
    delivery_bytes: int


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """How a daemon stands."""

    version: str
    pid: int
    started_at_ms: int
    data_dir: str
    listening: tuple[str, ...]
    state: str
    """``serving``, ``read-only`` or ``stopping``."""
    state_reason: str
    topics: int
    streams: int
    groups: int
    sessions: int
    """Connected."""
    sessions_waiting: int
    """Kept for clients that are away."""
    log_bytes: int
    disk_free_bytes: int
    sqlite_version: str
    boot_id: str
    quarantined: tuple[Quarantined, ...]
    unread_records_gone: int
    """Records that retention took before a group had acknowledged them, since its start."""
    unread_losses: tuple[UnreadLoss, ...]
    """Which, the latest last."""
    errors_in_a_day: int
    """Events of severity error, told in the last 24 hours."""
    operators_socket: str
    """The operators' socket; empty if there is none."""
    held: Held
    peers: tuple[PeerHeld, ...]
    """A few, those that hold most."""
    now_us: int
    """By the daemon's wall clock."""
    disk_size_bytes: int
    """Of the file system of the data directory."""
    open_files: int
    """Descriptors of the process."""
    open_files_max: int
    """What the system allows it; 0: any number."""
    sessions_max: int
    """Connected and kept ones together."""
    producers: int
    """That it remembers, one a partition."""
    producers_max: int
    """From how many on most new ones are refused."""
    incarnation: str = ""
    """Of its data: a restart keeps it."""
    restores: int = 0
    """How often its data was restored from a backup."""
    backup_at_ms: int | None = None
    """When the last backup that it knows of was taken."""
    principals_suspended: int = 0
    """By a restore from a backup, until they are confirmed."""
    before: str = "unknown"
    """How the daemon before ended: ``stopped``, ``killed``, ``power-lost``, ``crashed``."""
    before_ended_at_ms: int | None = None
    """Where it could say so."""
    before_reason: str = ""
    """Of a crash."""
    certificate: str = ""
    """The file of what it serves TLS with; empty where it has no TLS."""
    certificate_ends_ms: int | None = None
    """When that ends."""
    certificate_problem: str = ""
    """Why what lies in the file now is not served."""
    features: tuple[str, ...] = ()
    """What it knows beyond the first version."""


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """How many entries are of one error."""

    fingerprint: str
    """Empty: they have no error, only a cause."""
    cause: str
    error_type: str
    error: str
    """The text of the newest."""
    count: int
    newest_us: int
    """When the newest came."""
    oldest_us: int
    stream: str
    """The record of the newest; an older daemon tells none."""
    offset: int

    def with_more(self, other: "ErrorCount") -> "ErrorCount":
        """Together with others of the same."""
        newest = self if self.newest_us > other.newest_us else other
        oldest_us = min(self.oldest_us, other.oldest_us)
        return replace(newest, count=self.count + other.count, oldest_us=oldest_us)


@dataclass(frozen=True, slots=True)
class KeyCount:
    """How many entries are of one key."""

    key: bytes | None
    count: int
    newest_us: int
    oldest_us: int
    stream: str
    """The record of the oldest, and why that failed:"""
    offset: int
    cause: str
    error_type: str
    error: str
    fingerprint: str

    def with_more(self, other: "KeyCount") -> "KeyCount":
        """Together with others of the same."""
        oldest = self if self.oldest_us <= other.oldest_us else other
        newest_us = max(self.newest_us, other.newest_us)
        return replace(oldest, count=self.count + other.count, newest_us=newest_us)
