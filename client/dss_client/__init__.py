"""The Python client of DSS: publish, share, acknowledge, administer.

`connect` is the way in; everything else is reached from the `Client` that it yields. Invariant:
importing this package costs no gRPC and no pyarrow, and no wire message is part of its API.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dss_client._client import Client, connect
from dss_client._endpoint import operators_endpoint
from dss_client._running import run
from dss_core.errors import DssError

if TYPE_CHECKING:
    from dss_client import changes
    from dss_client._failure import Reject
    from dss_client._subscription_options import GrantNotice
    from dss_client.answers import (
        GroupDescription,
        Looked,
        Reason,
        RecordStanding,
        ScanFound,
        StreamSums,
        Stuck,
        Verdict,
        WhyAnswer,
    )
    from dss_client.events import Event, EventPage
    from dss_client.group_values import Borrower, Grant, Group, Rates, ShardedGroup
    from dss_client.job_values import Job, JobChunk
    from dss_client.offsets import GroupOffsets, StreamOffsets
    from dss_client.operation_values import Operation, OperationPlan
    from dss_client.producer import Ack, Delivery, Producer, RecordFields
    from dss_client.queues import (
        ErrorCounts,
        KeyCounts,
        NewestEntries,
        QueueEntry,
    )
    from dss_client.reader import Reader
    from dss_client.record import Batch, DeliveredBatch, DeliveredRecord, Record
    from dss_client.schedules import (
        DueTime,
        Schedule,
        ScheduleDescription,
        ScheduleRun,
        Task,
        TaskArgument,
    )
    from dss_client.sessions import SessionSummary
    from dss_client.subscription import Subscription
    from dss_client.topics import LocatedRange, StorageTopic, StreamBounds, Topic, TopicSummary
    from dss_client.watch import (
        WatchedGrant,
        WatchedLag,
        WatchedMember,
        WatchedValue,
        WatchKey,
        WatchUpdate,
    )
    from dss_core.answers import (
        DaemonStatus,
        ErrorCount,
        Held,
        KeyCount,
        PeerHeld,
        Quarantined,
        UnreadLoss,
    )
    from dss_core.shards import Shard

__all__ = [
    "Ack",
    "Batch",
    "Borrower",
    "Client",
    "DaemonStatus",
    "DeliveredBatch",
    "DeliveredRecord",
    "Delivery",
    "DssError",
    "DueTime",
    "ErrorCount",
    "ErrorCounts",
    "Event",
    "EventPage",
    "Grant",
    "GrantNotice",
    "Group",
    "GroupDescription",
    "GroupOffsets",
    "Held",
    "Job",
    "JobChunk",
    "KeyCount",
    "KeyCounts",
    "LocatedRange",
    "Looked",
    "NewestEntries",
    "Operation",
    "OperationPlan",
    "PeerHeld",
    "Producer",
    "Quarantined",
    "QueueEntry",
    "Rates",
    "Reader",
    "Reason",
    "Record",
    "RecordFields",
    "RecordStanding",
    "Reject",
    "ScanFound",
    "Schedule",
    "ScheduleDescription",
    "ScheduleRun",
    "SessionSummary",
    "Shard",
    "ShardedGroup",
    "StorageTopic",
    "StreamBounds",
    "StreamOffsets",
    "StreamSums",
    "Stuck",
    "Subscription",
    "Task",
    "TaskArgument",
    "Topic",
    "TopicSummary",
    "UnreadLoss",
    "Verdict",
    "WatchKey",
    "WatchUpdate",
    "WatchedGrant",
    "WatchedLag",
    "WatchedMember",
    "WatchedValue",
    "WhyAnswer",
    "changes",
    "connect",
    "operators_endpoint",
    "run",
]

_PLACES = {
    "Looked": "answers",
    "Rates": "group_values",
    "Reason": "answers",
    "RecordStanding": "answers",
    "ScanFound": "answers",
    "StreamSums": "answers",
    "Stuck": "answers",
    "WhyAnswer": "answers",
    "DaemonStatus": "answers",
    "Held": "answers",
    "PeerHeld": "answers",
    "Quarantined": "answers",
    "UnreadLoss": "answers",
    "Event": "events",
    "EventPage": "events",
    "Borrower": "group_values",
    "Grant": "group_values",
    "Group": "group_values",
    "ShardedGroup": "group_values",
    "GroupDescription": "answers",
    "Verdict": "answers",
    "GroupOffsets": "offsets",
    "StreamOffsets": "offsets",
    "Job": "job_values",
    "JobChunk": "job_values",
    "Operation": "operation_values",
    "OperationPlan": "operation_values",
    "Ack": "producer",
    "Delivery": "producer",
    "Producer": "producer",
    "RecordFields": "producer",
    "ErrorCount": "answers",
    "ErrorCounts": "queues",
    "KeyCount": "answers",
    "KeyCounts": "queues",
    "NewestEntries": "queues",
    "QueueEntry": "queues",
    "Reader": "reader",
    "Batch": "record",
    "DeliveredBatch": "record",
    "DeliveredRecord": "record",
    "Record": "record",
    "Reject": "_failure",
    "DueTime": "schedules",
    "Schedule": "schedules",
    "ScheduleDescription": "schedules",
    "ScheduleRun": "schedules",
    "Task": "schedules",
    "TaskArgument": "schedules",
    "SessionSummary": "sessions",
    "GrantNotice": "_subscription_options",
    "Shard": "_subscription_options",
    "Subscription": "subscription",
    "StorageTopic": "topics",
    "LocatedRange": "topics",
    "StreamBounds": "topics",
    "Topic": "topics",
    "TopicSummary": "topics",
    "WatchedGrant": "watch",
    "WatchedLag": "watch",
    "WatchedMember": "watch",
    "WatchedValue": "watch",
    "WatchKey": "watch",
    "WatchUpdate": "watch",
}
"""The module of each value, loaded when the value is first used. All together load as slowly as
gRPC, so a program that only lists groups does not load them."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A value of the API, or a module of it."""
        if name == "changes":
            return import_module("dss_client.changes")
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"dss_client.{_PLACES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Every name of the API."""
    return sorted({*globals(), *__all__})
