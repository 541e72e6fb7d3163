"""Every field of every kind of item that ``dssctl`` prints: one source.

Items, filters, orders, columns, templates, `explain`, `-o help` and the JSON schemas are all made
of it. Invariant: an item has the fields that stand here, and no others; a test holds real output
to it.
"""

from functools import cache
from importlib import import_module

from dssctl.fields.model import Field, Fields, Type

__all__ = ["KINDS", "Field", "Fields", "Type", "fields_of"]

_PLACES = {
    "Group": "groups.GROUP",
    "Borrower": "groups.BORROWER",
    "Grant": "groups.GRANT",
    "Leader": "groups.LEADER",
    "LedStream": "groups.LED_STREAM",
    "GroupStanding": "groups.GROUP_STANDING",
    "RecordStanding": "groups.RECORD_STANDING",
    "Stuck": "groups.STUCK",
    "StreamSums": "groups.STREAM_SUMS",
    "GroupOffsets": "groups.GROUP_OFFSETS",
    "StreamOffsets": "groups.STREAM_OFFSETS",
    "QueueEntry": "queues.QUEUE_ENTRY",
    "QueueError": "queues.QUEUE_ERROR",
    "Topic": "topics.TOPIC",
    "Stream": "topics.STREAM",
    "Reader": "topics.READER",
    "Record": "topics.RECORD",
    "StoredRecord": "topics.STORED_RECORD",
    "Header": "topics.HEADER",
    "Published": "topics.PUBLISHED",
    "OperationPlan": "operations.PLAN",
    "StreamPlan": "operations.STREAM_PLAN",
    "StreamMove": "operations.STREAM_MOVE",
    "Operation": "operations.OPERATION",
    "OperatedStream": "operations.OPERATED_STREAM",
    "Removal": "operations.REMOVAL",
    "DaemonStatus": "daemon.STATUS",
    "QuarantinedFile": "daemon.QUARANTINED_FILE",
    "UnreadLoss": "daemon.UNREAD_LOSS",
    "PeerHeld": "daemon.PEER_HELD",
    "Session": "daemon.SESSION",
    "Membership": "daemon.MEMBERSHIP",
    "HeldStream": "daemon.HELD_STREAM",
    "Waited": "daemon.WAITED",
    "Look": "daemon.LOOK",
    "Schedule": "schedules.SCHEDULE",
    "ScheduleRun": "schedules.RUN",
    "DueTime": "schedules.DUE_TIME",
    "Task": "schedules.TASK",
    "TaskArgument": "schedules.TASK_ARGUMENT",
    "Job": "jobs.JOB",
    "JobChunk": "jobs.JOB_CHUNK",
    "JobLogLine": "jobs.JOB_LOG_LINE",
    "JobRange": "jobs.JOB_RANGE",
    "JobOffsets": "jobs.JOB_OFFSETS",
    "Audit": "audits.AUDIT",
    "AuditFinding": "audits.AUDIT_FINDING",
    "AuditStream": "audits.AUDIT_STREAM",
    "AuditKey": "audits.AUDIT_KEY",
    "AuditGroup": "audits.AUDIT_GROUP",
    "Finding": "health.FINDING",
    "Check": "health.CHECK",
    "Measured": "health.MEASURED",
    "Event": "daemon.EVENT",
    "EventLine": "describing.EVENT_LINE",
    "OperationLine": "describing.OPERATION_LINE",
    "Call": "daemon.CALL",
    "Change": "daemon.CHANGE",
    "SupportBundle": "health.SUPPORT_BUNDLE",
    "SupportEntry": "health.SUPPORT_ENTRY",
    "SupportMissing": "health.SUPPORT_MISSING",
    "BenchPart": "health.BENCH_PART",
    "ErrorCode": "tool.ERROR_CODE",
    "Version": "tool.VERSION",
    "Context": "tool.CONTEXT",
    "ValidatedContext": "tool.VALIDATED_CONTEXT",
    "ConfiguredValue": "tool.CONFIGURED_VALUE",
    "Field": "tool.FIELD",
}
"""Where the fields of each kind are. A list loads those of its own kind alone."""
KINDS = tuple(_PLACES)


@cache
def fields_of(kind: str) -> Fields:
    """The fields of a kind, by its name; none of one that is not known."""
    module, _, name = _PLACES.get(kind, "").partition(".")
    fields: Fields = getattr(import_module(f"dssctl.fields.{module}"), name) if name else ()
    return fields
