"""The Python client of DSS: publish, share, acknowledge, administer.

`connect` is the way in; everything else is reached from the `Client` that it yields. Invariant:
importing this package costs no gRPC and no pyarrow, and no wire message is part of its API.
"""

from dss_client import changes
from dss_client._client import Client, connect
from dss_client._endpoint import operators_endpoint
from dss_client._running import run
from dss_client.answers import (
    Looked,
    Rates,
    Reason,
    RecordStanding,
    ScanFound,
    StreamSums,
    Stuck,
    WhyAnswer,
)
from dss_client.daemon import DaemonStatus, Held, PeerHeld, Quarantined, UnreadLoss
from dss_client.events import Event, EventPage
from dss_client.groups import Borrower, Grant, Group, GroupDescription
from dss_client.offsets import GroupOffsets, StreamOffsets
from dss_client.operation_values import Operation, OperationPlan
from dss_client.producer import Ack, Delivery, Producer, RecordFields
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
from dss_client.subscription import GrantNotice, Subscription
from dss_client.topics import StorageTopic, StreamBounds, Topic, TopicSummary
from dss_client.watch import (
    WatchedGrant,
    WatchedLag,
    WatchedMember,
    WatchedValue,
    WatchKey,
    WatchUpdate,
)
from dss_core.errors import DssError

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
    "Event",
    "EventPage",
    "Grant",
    "GrantNotice",
    "Group",
    "GroupDescription",
    "GroupOffsets",
    "Held",
    "Looked",
    "Operation",
    "OperationPlan",
    "PeerHeld",
    "Producer",
    "Quarantined",
    "Rates",
    "Reader",
    "Reason",
    "Record",
    "RecordFields",
    "RecordStanding",
    "ScanFound",
    "Schedule",
    "ScheduleDescription",
    "ScheduleRun",
    "SessionSummary",
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
