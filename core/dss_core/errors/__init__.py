"""Every condition that a caller can meet, with its stable code.

One registry serves the daemon (which maps a condition to a gRPC status), the client (which
raises the same class again from what came over the wire) and the command line (exit code, hint)::

    DssError
    ├── DSS1xxx  the request is wrong            (usage: fix the call)
    ├── DSS2xxx  the state does not allow it     (conflict, not found, exists)
    ├── DSS3xxx  a limit is reached              (later or smaller)
    ├── DSS4xxx  the data is damaged             (corrupt, quarantined)
    ├── DSS5xxx  the daemon or the way to it     (unreachable, stopping, disk)
    └── DSS6xxx  sessions and grants             (taken over, not held, not subscribed)

Each leaf is a class named by its condition. It carries facts as fields and builds its own
message; nothing parses a message. `definite` says whether the caller may be sure that nothing
was done. Invariant: a code, once released, keeps its meaning and is never given again.
"""

from dss_core.errors.bounds import (
    BufferFull,
    DiskFull,
    Overloaded,
)
from dss_core.errors.condition import (
    REGISTRY,
    DssError,
    ExitCode,
    UnknownCondition,
    from_wire,
    registered,
)
from dss_core.errors.conflicts import (
    GroupAmbiguous,
    GroupDestroyed,
    GroupExists,
    GroupOfAnotherKind,
    OffsetOutOfRange,
    StartConflict,
    TopicExists,
    TopicInUse,
    TopicsOverlap,
    VersionMoved,
)
from dss_core.errors.damage import (
    StoreDamaged,
    StreamDamaged,
)
from dss_core.errors.not_found import (
    GroupNotFound,
    QueueNotDeclared,
    StreamNotFound,
    TopicNotFound,
)
from dss_core.errors.publishing import (
    PublishedInPart,
    SequenceGap,
    SequenceTooOld,
    StaleTopicEpoch,
    StorageTopicSealed,
)
from dss_core.errors.requests import (
    BrokenInputLine,
    ConfirmationNeeded,
    Declined,
    FrameCorrupt,
    FrameMisrouted,
    FrameTooLarge,
    GroupMisspelt,
    GroupNamedTwice,
    IllegalArgument,
    IllegalConfig,
    IllegalFilter,
    IllegalName,
    IllegalSubject,
    IllegalTime,
    InputUnreadable,
    MessageUnreadable,
    NoSuchErrorCode,
    QueueWithoutGroup,
    RecordTooLarge,
    SocketPathTooLong,
    SubjectOutsideTopic,
    WrongUsage,
)
from dss_core.errors.service import (
    AddressInUse,
    DataDirectoryLocked,
    DataDirectoryNewer,
    DiskFailed,
    LogUnreadable,
    NoRoomToStart,
    OutcomeUnknown,
    PermissionDenied,
    Stopping,
    TimedOut,
    Unreachable,
)
from dss_core.errors.sessions import (
    AckOutOfRange,
    GrantNotHeld,
    NotOpened,
    NotSubscribed,
    SessionNotFound,
    SessionTakenOver,
)

__all__ = [
    "REGISTRY",
    "AckOutOfRange",
    "AddressInUse",
    "BrokenInputLine",
    "BufferFull",
    "ConfirmationNeeded",
    "DataDirectoryLocked",
    "DataDirectoryNewer",
    "Declined",
    "DiskFailed",
    "DiskFull",
    "DssError",
    "ExitCode",
    "FrameCorrupt",
    "FrameMisrouted",
    "FrameTooLarge",
    "GrantNotHeld",
    "GroupAmbiguous",
    "GroupDestroyed",
    "GroupExists",
    "GroupMisspelt",
    "GroupNamedTwice",
    "GroupNotFound",
    "GroupOfAnotherKind",
    "IllegalArgument",
    "IllegalConfig",
    "IllegalFilter",
    "IllegalName",
    "IllegalSubject",
    "IllegalTime",
    "InputUnreadable",
    "LogUnreadable",
    "MessageUnreadable",
    "NoRoomToStart",
    "NoSuchErrorCode",
    "NotOpened",
    "NotSubscribed",
    "OffsetOutOfRange",
    "OutcomeUnknown",
    "Overloaded",
    "PermissionDenied",
    "PublishedInPart",
    "QueueNotDeclared",
    "QueueWithoutGroup",
    "RecordTooLarge",
    "SequenceGap",
    "SequenceTooOld",
    "SessionNotFound",
    "SessionTakenOver",
    "SocketPathTooLong",
    "StaleTopicEpoch",
    "StartConflict",
    "Stopping",
    "StorageTopicSealed",
    "StoreDamaged",
    "StreamDamaged",
    "StreamNotFound",
    "SubjectOutsideTopic",
    "TimedOut",
    "TopicExists",
    "TopicInUse",
    "TopicNotFound",
    "TopicsOverlap",
    "UnknownCondition",
    "Unreachable",
    "VersionMoved",
    "WrongUsage",
    "from_wire",
    "registered",
]
