"""The requested thing does not exist (of DSS2xxx).

Invariant: leaves only; each states its sentence, its hint, its gRPC status and its exit code.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


@registered
class TopicNotFound(DssError):
    """Fields: topic."""

    code = "DSS2001"
    sentence = "There is no topic {topic}."
    hint = "List them: dssctl topics ls. Create it: dssctl topics create {topic}"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class GroupNotFound(DssError):
    """Fields: group."""

    code = "DSS2004"
    sentence = "There is no group {group}."
    hint = "List them: dssctl groups ls"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class QueueNotDeclared(DssError):
    """Fields: group, filter."""

    code = "DSS2008"
    sentence = "The queue {group} is not declared."
    hint = "Declare it first: dssctl groups create '$queue/{group}/{filter}'"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.NOT_FOUND


@registered
class StreamNotFound(DssError):
    """Fields: stream."""

    code = "DSS2011"
    sentence = "There is no stream {stream}."
    hint = "See the topic's streams: dssctl topics describe TOPIC"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class OperationNotFound(DssError):
    """Fields: number."""

    code = "DSS2021"
    sentence = "There is no operation {number}."
    hint = "List them: dssctl ops ls"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class StreamNotRead(DssError):
    """Fields: group, stream."""

    code = "DSS2025"
    sentence = "The group {group} does not read a stream {stream}."
    hint = "List what it reads: dssctl groups describe {group}"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class BorrowerNotFound(DssError):
    """Fields: group, borrower."""

    code = "DSS2026"
    sentence = "The group {group} has no member {borrower}."
    hint = "List its members: dssctl groups describe {group}"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class OffsetNotWritten(DssError):
    """Fields: stream, end, offset, command."""

    code = "DSS2041"
    sentence = "There is no record {offset} of stream {stream} yet: it ends at {end}."
    hint = "Ask for one that is there: {command}"
    grpc_status = "OUT_OF_RANGE"
    exit_code = ExitCode.NOT_FOUND


@registered
class KeyNotFound(DssError):
    """Fields: group, key."""

    code = "DSS2042"
    sentence = "No record with the key {key} is kept in what the group {group} reads."
    hint = "See which streams it reads: dssctl groups describe {group}"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class NothingOfKeyLeft(DssError):
    """Raised by the tool. Fields: group, key."""

    code = "DSS2043"
    sentence = "The group {group} has no record with the key {key} left to acknowledge."
    hint = (
        "See where its records are: dssctl groups why {group} --key {key}. Those in the retry "
        "queue: dssctl rq ls {group} --key {key}; give them up with dssctl rq skip"
    )
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class RecordLeftOut(DssError):
    """Raised by the tool: the stream goes on behind the offset. Fields: stream, offset, next."""

    code = "DSS2071"
    sentence = "No record has the offset {offset} of stream {stream}."
    hint = (
        "Offsets behind a kill of the daemon may be left out. The next record: dssctl records get "
        "{stream} {next}"
    )
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class ScheduleNotFound(DssError):
    """Fields: schedule."""

    code = "DSS2062"
    sentence = "There is no schedule {schedule}."
    hint = "List them: dssctl schedules ls"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class PrincipalNotFound(DssError):
    """Fields: name."""

    code = "DSS2066"
    sentence = "Nobody is known as {name}."
    hint = "List who is: dssctl principals ls"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class TaskNotFound(DssError):
    """Fields: task, tasks."""

    code = "DSS2063"
    sentence = "There is no task {task}; there are {tasks}."
    hint = "See what they do: dssctl tasks ls"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND
