"""Every kind of event that this daemon tells.

Invariant: a code is here once, and keeps the meaning that it has in the table of
`docs/operations.md`.
"""

from dssd.events.model import EventKind, Repeats, Severity

STREAM_DAMAGED = EventKind("stream.damaged", Severity.ERROR)
STREAM_SHORT = EventKind("stream.short", Severity.ERROR)
STREAM_UNREADABLE = EventKind("stream.unreadable", Severity.ERROR)
STREAM_READABLE = EventKind("stream.readable", Severity.INFO)
RECORDS_PASSED = EventKind("records.passed", Severity.ERROR, Repeats.ONCE)
RETENTION_NEAR = EventKind("retention.near", Severity.WARNING, Repeats.KEPT)
RETENTION_LOST = EventKind("retention.lost", Severity.ERROR, Repeats.KEPT)
CONSUMER_SLOW = EventKind("consumer.slow", Severity.WARNING)
PEER_REFUSED = EventKind("peer.refused", Severity.WARNING)
MEMBER_LOST = EventKind("member.lost", Severity.WARNING)
STREAM_STALLED = EventKind("stream.stalled", Severity.WARNING)
RECORD_FAILING = EventKind("record.failing", Severity.WARNING)
RECORD_DEAD = EventKind("record.dead", Severity.WARNING)
REDRIVE_STOPPED = EventKind("redrive.stopped", Severity.WARNING, Repeats.KEPT)
FILE_QUARANTINED = EventKind("file.quarantined", Severity.WARNING)
DISK_FULL = EventKind("disk.full", Severity.ERROR, Repeats.KEPT)
DISK_ROOM = EventKind("disk.room", Severity.INFO, Repeats.KEPT)
LOCK_REMOVED = EventKind("lock.removed", Severity.WARNING)
OPERATION_APPLIED = EventKind("operation.applied", Severity.INFO, Repeats.KEPT)
OPERATION_ENDED = EventKind("operation.ended", Severity.INFO, Repeats.KEPT)
LAG_HIGH = EventKind("lag.high", Severity.WARNING)
SCHEDULE_FAILED = EventKind("schedule.failed", Severity.ERROR, Repeats.KEPT)
SCHEDULE_RECOVERED = EventKind("schedule.recovered", Severity.INFO, Repeats.KEPT)
SCHEDULE_MISSED = EventKind("schedule.missed", Severity.WARNING, Repeats.KEPT)
DAEMON_STARTED = EventKind("daemon.started", Severity.INFO, Repeats.KEPT)
DAEMON_STOPPED = EventKind("daemon.stopped", Severity.INFO, Repeats.KEPT)
DAEMON_KILLED = EventKind("daemon.killed", Severity.WARNING, Repeats.KEPT)
DAEMON_CRASHED = EventKind("daemon.crashed", Severity.ERROR, Repeats.KEPT)
CALL_DONE = EventKind("call.done", Severity.INFO, Repeats.KEPT)
CALL_REFUSED = EventKind("call.refused", Severity.WARNING, Repeats.KEPT)
LOGIN_REFUSED = EventKind("login.refused", Severity.WARNING)
CERTIFICATE_CHANGED = EventKind("certificate.changed", Severity.INFO, Repeats.KEPT)
CERTIFICATE_REFUSED = EventKind("certificate.refused", Severity.ERROR, Repeats.KEPT)
EVENTS_DROPPED = EventKind("events.dropped", Severity.WARNING, Repeats.KEPT)
JOB_TAKEN = EventKind("job.taken", Severity.INFO)
JOB_SILENT = EventKind("job.silent", Severity.WARNING)
JOB_ENDED = EventKind("job.ended", Severity.INFO, Repeats.ONCE)
JOB_FAILED = EventKind("job.failed", Severity.ERROR, Repeats.ONCE)
INTERNAL_ERROR = EventKind("internal.error", Severity.ERROR)

KINDS = tuple(each for each in globals().values() if isinstance(each, EventKind))
