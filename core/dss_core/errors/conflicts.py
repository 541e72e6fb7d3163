"""The current state conflicts with the request: exists, in use, changed (of DSS2xxx).

Invariant: leaves only; each states its sentence, its hint, its gRPC status and its exit code.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


@registered
class ExistsOtherwise(DssError):
    """Reported by a creation that accepts an existing thing. Fields: what, differences."""

    code = "DSS2110"
    sentence = "{what} was there before and stays as it is: {differences}."
    hint = "Use it as it is, or take another name."
    grpc_status = "ALREADY_EXISTS"
    exit_code = ExitCode.CONFLICT


@registered
class TopicExists(DssError):
    """Fields: topic."""

    code = "DSS2002"
    sentence = "The topic {topic} exists already."
    hint = "Pass --if-not-exists to accept it as it is."
    grpc_status = "ALREADY_EXISTS"
    exit_code = ExitCode.CONFLICT


@registered
class TopicsOverlap(DssError):
    """Fields: pattern, other, other_pattern."""

    code = "DSS2003"
    sentence = "The pattern {pattern} overlaps {other_pattern} of topic {other}."
    hint = "Two topics may not own one subject: choose another pattern."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class GroupExists(DssError):
    """Fields: group."""

    code = "DSS2005"
    sentence = "The group {group} exists already."
    hint = "Pass --if-not-exists to accept it as it is."
    grpc_status = "ALREADY_EXISTS"
    exit_code = ExitCode.CONFLICT


@registered
class GroupExistsOtherwise(GroupExists):
    """It is not what was asked for. Fields: group, differences, advice."""

    code = "DSS2111"
    sentence = "The group {group} exists already, with other settings: {differences}."
    hint = "{advice}"


@registered
class GroupDestroyed(DssError):
    """A member of a removed group came back. Fields: group."""

    code = "DSS2006"
    sentence = "The group {group} was removed."
    hint = "Create it again first: dssctl groups create {group}@FILTER"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class StartConflict(DssError):
    """Fields: group, declared, asked."""

    code = "DSS2007"
    sentence = "The group {group} exists with start {declared}; {asked} was asked for."
    hint = "Leave start out to join it where it is."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class GroupOfAnotherKind(DssError):
    """It is a queue and was named as a shared group, or the other way round.

    Fields: group, declared, asked, written.
    """

    code = "DSS2018"
    sentence = "The group {group} is declared as {declared}; {asked} was asked for."
    hint = "Write '{written}' to use it as it is, or remove it first."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class QueuesNotEmpty(DssError):
    """A group is to lose its queues, and records wait in them. Fields: group, retrying, dead."""

    code = "DSS2130"
    sentence = (
        "The group {group} keeps its queues: {retrying} records wait to be tried again, and {dead} "
        "are dead letters."
    )
    hint = (
        "The retry queue, dssctl rq ls {group}, empties as members acknowledge its records or they "
        "become dead letters. Dead letters: dssctl dlq ls {group}; bring them back: dssctl dlq "
        "redrive {group}, or give them up: dssctl dlq discard {group}. Then edit the group again."
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class GrowthOfNoUse(DssError):
    """A storage topic would route as the last one does. Fields: topic, partitions."""

    code = "DSS2131"
    sentence = "The topic {topic} would route its keys as it does now: it has {partitions}."
    hint = "Name another number of partitions: dssctl topics describe {topic}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class TopicFullyGrown(DssError):
    """Fields: topic, limit."""

    code = "DSS2132"
    sentence = "The topic {topic} has {limit} storage topics, and can have no more."
    hint = (
        "A sealed one is removed a day after its switch at the earliest, once it has no records "
        "and its queues are empty: dssctl topics describe {topic} -o wide. Only retention, which "
        "is for the whole topic, removes its records: dssctl topics edit {topic} --retention SPAN "
        "--dry-run"
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class NothingToSwitchTo(DssError):
    """Fields: topic, ordinal."""

    code = "DSS2133"
    sentence = "The topic {topic} writes to its last storage topic, {topic}/{ordinal}."
    hint = "Add one and switch to it: dssctl topics grow {topic} --partitions N"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class StorageTopicWaits(DssError):
    """One was added already, and not switched to. Fields: topic, ordinal, partitions."""

    code = "DSS2134"
    sentence = (
        "The topic {topic} has a storage topic of {partitions} partitions that waits to take over: "
        "{topic}/{ordinal}."
    )
    hint = (
        "Switch to it first: dssctl topics switch {topic}; or undo the operation that added it: "
        "dssctl ops ls --topic {topic}"
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class TopicWrittenByJobs(DssError):
    """Fields: topic, jobs."""

    code = "DSS2135"
    sentence = "The topic {topic} cannot be switched while jobs write to it: {jobs}."
    hint = "Wait until they have ended, or cancel them: dssctl jobs ls"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class GrowthOverdue(DssError):
    """The disk stayed full. Fields: topic, waited_s."""

    code = "DSS2136"
    sentence = "The topic {topic} did not grow: the disk was full for {waited_s} s."
    hint = (
        "Producers still write to the same storage topic. Free space, then see how far it came: "
        "dssctl topics describe {topic}"
    )
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.FAILED


@registered
class VersionMoved(DssError):
    """An optimistic precondition failed. Fields: kind, key."""

    code = "DSS2012"
    sentence = "{kind} {key} changed meanwhile."
    hint = "Look at it again and repeat."
    grpc_status = "ABORTED"
    exit_code = ExitCode.CONFLICT


@registered
class GroupAmbiguous(DssError):
    """Fields: group, candidates."""

    code = "DSS2013"
    sentence = "Several groups have the name {group}: {candidates}."
    hint = "Write NAME@FILTER."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class DaemonKnowsNoQueues(DssError):
    """An older daemon would take a group with queues for a plain one. Fields: version."""

    code = "DSS2140"
    sentence = "The daemon, of version {version}, knows no queues; nothing was made or changed."
    hint = (
        "Install the version of this client for the daemon, and start it again: what it holds "
        "stays. Or leave out max-deliver, backoff and the limits of queues."
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class InternalTopic(DssError):
    """Fields: topic."""

    code = "DSS2120"
    sentence = "{topic} is internal: it holds records that failed in a group."
    hint = "See what waits there, and what is dead: dssctl dlq ls GROUP"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.USAGE


@registered
class TopicInUse(DssError):
    """Fields: topic, groups."""

    code = "DSS2014"
    sentence = "Topic {topic} is read by groups: {groups}."
    hint = "Remove the groups first, or pass --force."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class GroupInUse(DssError):
    """It was to be removed only if nobody uses it. Fields: group."""

    code = "DSS2162"
    sentence = "A client has subscribed to the group {group}; it was not removed."
    hint = "dssctl groups describe {group} shows its members."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class OffsetOutOfRange(DssError):
    """Fields: offset, start, end, stream."""

    code = "DSS2015"
    sentence = (
        "Offset {offset} is outside of stream {stream}, whose records begin at {start} and end "
        "before {end}."
    )
    hint = "Start at earliest, at a time, or at an offset from {start} to {end}."
    grpc_status = "OUT_OF_RANGE"
    exit_code = ExitCode.USAGE


@registered
class RevisionMoved(DssError):
    """A plan was made before something else changed its subject.

    Fields: subject, planned, found, last.
    """

    code = "DSS2019"
    sentence = (
        "{subject} was changed since the plan: {last}. It is revision {found}, not {planned}."
    )
    hint = "Look at what changed with dssctl ops ls, and plan again with --dry-run."
    grpc_status = "ABORTED"
    exit_code = ExitCode.CONFLICT


@registered
class OperationInProgress(DssError):
    """One operation at a time moves the cursors of a group. Fields: subject, number, kind."""

    code = "DSS2020"
    sentence = "Operation {number}, {kind}, is still running on {subject}."
    hint = (
        "Look at it: dssctl ops show {number}. Wait for it: dssctl ops wait {number}. "
        "Or stop it: dssctl ops cancel {number}"
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class NotUndoable(DssError):
    """Fields: number, kind, why."""

    code = "DSS2022"
    sentence = "Operation {number}, {kind}, cannot be undone: {why}."
    hint = "Look at it: dssctl ops show {number}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class OperationEnded(DssError):
    """There is nothing left to cancel. Fields: number, kind, state."""

    code = "DSS2023"
    sentence = "Operation {number}, {kind}, is {state} already."
    hint = "Take it back: dssctl ops undo {number}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class NotCancellable(DssError):
    """Fields: number, kind."""

    code = "DSS2030"
    sentence = "Operation {number}, {kind}, cannot be stopped."
    hint = "Wait for it: dssctl ops wait {number}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class OperationIdReused(DssError):
    """The id names an operation that changed something else. Fields: operation_id, number, kind."""

    code = "DSS2024"
    sentence = "The operation id {operation_id} names operation {number}, {kind}, already."
    hint = "Choose another id for another change."
    grpc_status = "ALREADY_EXISTS"
    exit_code = ExitCode.CONFLICT


@registered
class OffsetsDoNotFit(DssError):
    """Exported offsets are of other topics, or of other records. Fields: stream, why."""

    code = "DSS2027"
    sentence = "The offsets of stream {stream} do not fit: {why}."
    hint = "Nothing was changed. Compare with dssctl topics describe."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class NotForPrivateGroups(DssError):
    """A private subscription has one member for its whole life. Fields: group, operation."""

    code = "DSS2028"
    sentence = "{operation} is not for {group}, a private subscription."
    hint = "End its session instead: dssctl sessions close CLIENT"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class NobodyToLendTo(DssError):
    """A stream was to be taken from its only possible holder. Fields: group, stream."""

    code = "DSS2029"
    sentence = "Nobody else in group {group} could take {stream}."
    hint = "Start another member first, or pause the group: dssctl groups pause {group}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class WatchTooOld(DssError):
    """The daemon no longer knows what it reported to a watcher last."""

    code = "DSS2051"
    sentence = "This watch cannot be resumed: it ended too long ago, or the daemon restarted."
    hint = "Start a new watch, without a token; dss_client does so by itself."
    grpc_status = "OUT_OF_RANGE"
    exit_code = ExitCode.CONFLICT


@registered
class ScheduleExists(DssError):
    """Fields: schedule."""

    code = "DSS2061"
    sentence = "The schedule {schedule} exists already."
    hint = "Change it: dssctl schedules edit {schedule}"
    grpc_status = "ALREADY_EXISTS"
    exit_code = ExitCode.CONFLICT


@registered
class PrincipalExists(DssError):
    """Fields: name."""

    code = "DSS2067"
    sentence = "There is somebody called {name} already."
    hint = "See what they may do: dssctl principals ls"
    grpc_status = "ALREADY_EXISTS"
    exit_code = ExitCode.CONFLICT


@registered
class ClientClosed(DssError):
    """A client is closed where another part of the program still uses it. No fields."""

    code = "DSS2270"
    sentence = "The client was closed by another part of this program."
    hint = "Close it once nothing uses it any more, or connect anew."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class ScheduleBusy(DssError):
    """It is to have one run at a time. Fields: schedule, run."""

    code = "DSS2064"
    sentence = "Run {run} of the schedule {schedule} has not ended."
    hint = "Look at it: dssctl schedules runs {schedule}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class TaskFailed(DssError):
    """Fields: task, why."""

    code = "DSS2065"
    sentence = "The task {task} failed: {why}"
    hint = ""
    grpc_status = "ABORTED"
    exit_code = ExitCode.FAILED
    definite = False
