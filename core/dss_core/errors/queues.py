"""What operators cannot do with retry queues and dead letters (of DSS2xxx).

Invariant: leaves only; each states its sentence, its hint, its gRPC status and its exit code.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


@registered
class NothingChosen(DssError):
    """A change that cannot be undone names no records. Fields: verb, group, noun, command."""

    code = "DSS2170"
    sentence = "The command does not say which {noun} of {group} to {verb}; nothing was changed."
    hint = "Name them, or say that all are meant: {command}"
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class CanaryTooSmall(DssError):
    """A canary of no records, or a share that cannot be exceeded. Fields: what, group."""

    code = "DSS2171"
    sentence = "{what} tells nothing about the others; nothing was changed."
    hint = (
        "A canary sends some first, and the others only if none of these fails: "
        "dssctl dlq redrive {group} --canary 10"
    )
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class CanaryFailed(DssError):
    """Too many of those that a redrive brought back first failed again.

    Fields: failed, canary, error, left, group.
    """

    code = "DSS2172"
    sentence = (
        "{failed} of the {canary} that came back first failed again: {error}. So {left} others "
        "stay dead."
    )
    hint = "What failed, and how often: dssctl dlq errors {group}; dssctl rq errors {group}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class DaemonKnowsNoSteering(DssError):
    """An older daemon would ignore some options of queues. Fields: version."""

    code = "DSS2173"
    sentence = (
        "The daemon, of version {version}, cannot choose queue entries so; nothing was changed."
    )
    hint = (
        "Install the version of this client for the daemon, and start it again: what it holds "
        "stays. Or choose by error, key or record only, without a canary."
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class NoneIsDead(DssError):
    """Dead letters of a group without queues were to be read. Fields: group, command."""

    code = "DSS2230"
    sentence = "The group {group} has no queues, so it has no dead letters to read."
    hint = "Give it queues, and records that keep failing become dead letters: {command}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class NothingDead(DssError):
    """A job was to read dead letters, and there are none. Fields: group, topic, when, command."""

    code = "DSS2231"
    sentence = "No record of {topic} is among the dead letters of {group}{when}; nothing was made."
    hint = "What is there: {command}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class TopicNotInGroup(DssError):
    """Dead letters of a topic that the group does not read. Fields: group, topic, topics."""

    code = "DSS2232"
    sentence = "The group {group} does not read {topic}, so it has no dead letters of it."
    hint = "It reads: {topics}. Name one of these as the topic."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class DeadLettersScattered(DssError):
    """They lie in too many pieces for one job. Fields: group, topic, pieces, limit, command."""

    code = "DSS2233"
    sentence = (
        "The dead letters of {group} from {topic} lie in {pieces} pieces between others that are "
        "done with; one reading takes at most {limit}."
    )
    hint = (
        "Read one span of time after another (start and end are times of death), or keep a copy as "
        "JSON lines: {command}"
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class DaemonReadsNoDeadLetters(DssError):
    """An older daemon would read the topic instead. Fields: version."""

    code = "DSS2234"
    sentence = (
        "The daemon, of version {version}, does not give dead letters to readers; nothing was read."
    )
    hint = (
        "Install the version of this client for the daemon, and start it again: what it holds "
        "stays. Until then: dssctl dlq export GROUP FILE"
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT
