"""Every field of every kind of item that ``dssctl`` prints: one source.

Items, filters, orders, columns, templates, `explain`, `-o help` and the JSON schemas are all made
from it. Invariant: an item has exactly the fields listed here; a test compares them with real
output.
"""

from functools import cache
from importlib import import_module

from dssctl.fields.model import Field, Fields, Type

__all__ = ["KINDS", "Field", "Fields", "Type", "fields_of"]

_PLACES = {
    "Group": "nouns.groups.GROUP",
    "Borrower": "nouns.groups.BORROWER",
    "Grant": "nouns.grants.GRANT",
    "Leader": "nouns.groups.LEADER",
    "LedStream": "nouns.grants.LED_STREAM",
    "Shard": "nouns.shards.SHARD",
    "GroupStanding": "nouns.answers.GROUP_STANDING",
    "RecordStanding": "nouns.answers.RECORD_STANDING",
    "Stuck": "nouns.answers.STUCK",
    "StreamSums": "nouns.answers.STREAM_SUMS",
    "GroupOffsets": "nouns.answers.GROUP_OFFSETS",
    "StreamOffsets": "nouns.answers.STREAM_OFFSETS",
    "QueueEntry": "nouns.queues.QUEUE_ENTRY",
    "QueueError": "nouns.queues.QUEUE_ERROR",
    "QueueKey": "nouns.queues.QUEUE_KEY",
    "Queue": "nouns.queues.QUEUE_PAGE",
    "Topic": "nouns.topics.TOPIC",
    "Stream": "nouns.topics.STREAM",
    "Reader": "nouns.topics.READER",
    "StorageTopic": "nouns.topics.STORAGE_TOPIC",
    "Record": "nouns.topics.RECORD",
    "StoredRecord": "nouns.topics.STORED_RECORD",
    "Header": "nouns.topics.HEADER",
    "Published": "nouns.topics.PUBLISHED",
    "OperationPlan": "nouns.operations.PLAN",
    "StreamPlan": "nouns.operations.STREAM_PLAN",
    "StreamMove": "nouns.operations.STREAM_MOVE",
    "Operation": "nouns.operations.OPERATION",
    "OperatedStream": "nouns.operations.OPERATED_STREAM",
    "SkippedRecords": "nouns.operations.SKIPPED_RECORDS",
    "Removal": "nouns.operations.REMOVAL",
    "DaemonStatus": "fields.daemon.STATUS",
    "QuarantinedFile": "fields.daemon.QUARANTINED_FILE",
    "UnreadLoss": "fields.daemon.UNREAD_LOSS",
    "PeerHeld": "fields.daemon.PEER_HELD",
    "Session": "nouns.sessions.SESSION",
    "Membership": "nouns.sessions.MEMBERSHIP",
    "HeldStream": "nouns.sessions.HELD_STREAM",
    "Waited": "fields.daemon.WAITED",
    "Look": "fields.daemon.LOOK",
    "Principal": "nouns.principals.PRINCIPAL",
    "NewToken": "nouns.principals.NEW_TOKEN",
    "Backup": "nouns.backups.BACKUP",
    "MadeBackup": "nouns.backups.MADE_BACKUP",
    "Schedule": "nouns.schedules.SCHEDULE",
    "ScheduleRun": "nouns.schedules.RUN",
    "DueTime": "nouns.schedules.DUE_TIME",
    "Task": "nouns.schedules.TASK",
    "TaskArgument": "nouns.schedules.TASK_ARGUMENT",
    "Job": "nouns.jobs.JOB",
    "JobChunk": "nouns.jobs.JOB_CHUNK",
    "JobLogLine": "nouns.jobs.JOB_LOG_LINE",
    "JobRange": "nouns.jobs.JOB_RANGE",
    "JobOffsets": "nouns.jobs.JOB_OFFSETS",
    "Audit": "fields.audits.AUDIT",
    "AuditFinding": "fields.audits.AUDIT_FINDING",
    "AuditStream": "fields.audits.AUDIT_STREAM",
    "AuditKey": "fields.audits.AUDIT_KEY",
    "AuditGroup": "fields.audits.AUDIT_GROUP",
    "Finding": "fields.health.FINDING",
    "Check": "fields.health.CHECK",
    "Measured": "fields.health.MEASURED",
    "Event": "nouns.events.EVENT",
    "EventLine": "fields.describing.EVENT_LINE",
    "OperationLine": "fields.describing.OPERATION_LINE",
    "Call": "nouns.events.CALL",
    "Change": "fields.daemon.CHANGE",
    "SupportBundle": "fields.health.SUPPORT_BUNDLE",
    "SupportEntry": "fields.health.SUPPORT_ENTRY",
    "SupportMissing": "fields.health.SUPPORT_MISSING",
    "BenchPart": "fields.health.BENCH_PART",
    "ErrorCode": "fields.tool.ERROR_CODE",
    "Version": "fields.tool.VERSION",
    "Context": "fields.tool.CONTEXT",
    "ValidatedContext": "fields.tool.VALIDATED_CONTEXT",
    "ConfiguredValue": "fields.tool.CONFIGURED_VALUE",
    "Field": "fields.tool.FIELD",
}
"""The modules with the fields of each kind. A list loads only that of its own kind."""
KINDS = tuple(_PLACES)


@cache
def fields_of(kind: str) -> Fields:
    """The fields of a kind, by its name; none if the kind is unknown."""
    module, _, name = _PLACES.get(kind, "").rpartition(".")
    fields: Fields = getattr(import_module(f"dssctl.{module}"), name) if name else ()
    return fields
