"""Every kind of event that this daemon tells.

Invariant: a code is here once, and keeps its meaning. `docs/operations.md` has a table of them.
"""

from dssd.events.model import EventKind, Repeats, Severity

STREAM_DAMAGED = EventKind(
    "stream.damaged",
    Severity.ERROR,
    "Bytes of a stream are damaged: the records in them cannot be read.",
)
STREAM_SHORT = EventKind(
    "stream.short",
    Severity.ERROR,
    "A start found that records are gone which groups had read; the stream goes on behind them.",
)
STREAM_UNREADABLE = EventKind(
    "stream.unreadable",
    Severity.ERROR,
    "A read of a stream failed, and is tried again.",
)
STREAM_READABLE = EventKind(
    "stream.readable",
    Severity.INFO,
    "A stream that could not be read can be read again.",
)
RECORDS_PASSED = EventKind(
    "records.passed",
    Severity.ERROR,
    "A group goes on behind records that cannot be read; it does not get them.",
    Repeats.ONCE,
)
RETENTION_NEAR = EventKind(
    "retention.near",
    Severity.WARNING,
    "Retention will soon take records that a group has not acknowledged.",
    Repeats.KEPT,
)
RETENTION_LOST = EventKind(
    "retention.lost",
    Severity.ERROR,
    "Retention takes records that a group has not acknowledged.",
    Repeats.KEPT,
)
CONSUMER_SLOW = EventKind(
    "consumer.slow",
    Severity.WARNING,
    "A peer stopped reading from its socket, and its connection was cut.",
)
PEER_REFUSED = EventKind(
    "peer.refused",
    Severity.WARNING,
    "A peer held more connections, calls or memory than its part, and lost some or got no more.",
)
MEMBER_LOST = EventKind(
    "member.lost",
    Severity.WARNING,
    "A member of a group went without leaving, and others took its streams.",
)
STREAM_STALLED = EventKind(
    "stream.stalled",
    Severity.WARNING,
    "A group gets nothing new of a stream until an old record of it is acknowledged.",
)
RECORD_FAILING = EventKind(
    "record.failing",
    Severity.WARNING,
    "A record of a group failed the third time; it comes again.",
)
RECORD_DEAD = EventKind(
    "record.dead",
    Severity.WARNING,
    "A record of a group failed for good: it is among the dead letters.",
)
FILE_QUARANTINED = EventKind(
    "file.quarantined",
    Severity.WARNING,
    "A start found a file of the log damaged, missing or unknown, and went on without it.",
)
DISK_FULL = EventKind(
    "disk.full",
    Severity.ERROR,
    "The disk is too full for what is published; reads and acknowledgements go on.",
    Repeats.KEPT,
)
DISK_ROOM = EventKind(
    "disk.room",
    Severity.INFO,
    "The disk has room again, and publishing goes on.",
    Repeats.KEPT,
)
LOCK_REMOVED = EventKind(
    "lock.removed",
    Severity.WARNING,
    "The file LOCK of the data directory was removed or replaced; the daemon made it anew.",
)
OPERATION_APPLIED = EventKind(
    "operation.applied",
    Severity.INFO,
    "An operator changed something.",
    Repeats.KEPT,
)
OPERATION_ENDED = EventKind(
    "operation.ended",
    Severity.INFO,
    "What an operator changed is done, or failed, or was cancelled.",
    Repeats.KEPT,
)
LAG_HIGH = EventKind(
    "lag.high",
    Severity.WARNING,
    "A lag check found a group farther behind than it is to be.",
)
SCHEDULE_FAILED = EventKind(
    "schedule.failed",
    Severity.ERROR,
    "A run of a schedule failed, took too long, or was interrupted; told once an hour at most.",
    Repeats.KEPT,
)
SCHEDULE_RECOVERED = EventKind(
    "schedule.recovered",
    Severity.INFO,
    "A schedule that failed is done again.",
    Repeats.KEPT,
)
SCHEDULE_MISSED = EventKind(
    "schedule.missed",
    Severity.WARNING,
    "Due times of a schedule passed without a run: the daemon was down, or the clock was set.",
    Repeats.KEPT,
)
DAEMON_STARTED = EventKind(
    "daemon.started",
    Severity.INFO,
    "The daemon serves.",
    Repeats.KEPT,
)
DAEMON_STOPPED = EventKind(
    "daemon.stopped",
    Severity.INFO,
    "The daemon ended as it was told to.",
    Repeats.KEPT,
)
DAEMON_KILLED = EventKind(
    "daemon.killed",
    Severity.WARNING,
    "The daemon before this one was killed, or the power went.",
    Repeats.KEPT,
)
DAEMON_CRASHED = EventKind(
    "daemon.crashed",
    Severity.ERROR,
    "The daemon before this one ended itself: a disk failed, or a fault of its own came up.",
    Repeats.KEPT,
)
CALL_DONE = EventKind(
    "call.done",
    Severity.INFO,
    "An operator's call changed something.",
    Repeats.KEPT,
)
CALL_REFUSED = EventKind(
    "call.refused",
    Severity.WARNING,
    "An operator's call that would change something was refused.",
    Repeats.KEPT,
)
EVENTS_DROPPED = EventKind(
    "events.dropped",
    Severity.WARNING,
    "More events came than could be written; the oldest of them are not kept.",
    Repeats.KEPT,
)

JOB_TAKEN = EventKind(
    "job.taken",
    Severity.INFO,
    "A driver took a bulk job, and goes on with it.",
)
JOB_SILENT = EventKind(
    "job.silent",
    Severity.WARNING,
    "The driver of a bulk job was not heard for longer than its lease.",
)
JOB_ENDED = EventKind(
    "job.ended",
    Severity.INFO,
    "A bulk job published all of its chunks.",
    Repeats.ONCE,
)
JOB_FAILED = EventKind(
    "job.failed",
    Severity.ERROR,
    "The driver of a bulk job gave it up.",
    Repeats.ONCE,
)
INTERNAL_ERROR = EventKind(
    "internal.error",
    Severity.ERROR,
    "A mistake in the daemon itself ended a run, a call or a service beside the core; it goes on.",
)

KINDS = (
    STREAM_DAMAGED,
    STREAM_SHORT,
    STREAM_UNREADABLE,
    STREAM_READABLE,
    RECORDS_PASSED,
    RETENTION_NEAR,
    RETENTION_LOST,
    CONSUMER_SLOW,
    PEER_REFUSED,
    MEMBER_LOST,
    STREAM_STALLED,
    RECORD_FAILING,
    RECORD_DEAD,
    FILE_QUARANTINED,
    DISK_FULL,
    DISK_ROOM,
    LOCK_REMOVED,
    OPERATION_APPLIED,
    OPERATION_ENDED,
    LAG_HIGH,
    SCHEDULE_FAILED,
    SCHEDULE_RECOVERED,
    SCHEDULE_MISSED,
    DAEMON_STARTED,
    DAEMON_STOPPED,
    DAEMON_KILLED,
    DAEMON_CRASHED,
    CALL_DONE,
    CALL_REFUSED,
    EVENTS_DROPPED,
    JOB_TAKEN,
    JOB_SILENT,
    JOB_ENDED,
    JOB_FAILED,
    INTERNAL_ERROR,
)
