"""What there is does not allow it: not found, exists already, moved on (DSS2xxx).

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
class GroupNotFound(DssError):
    """Fields: group."""

    code = "DSS2004"
    sentence = "There is no group {group}."
    hint = "List them: dssctl groups ls"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class GroupExists(DssError):
    """Fields: group."""

    code = "DSS2005"
    sentence = "The group {group} exists already."
    hint = "Pass --if-not-exists to accept it as it is."
    grpc_status = "ALREADY_EXISTS"
    exit_code = ExitCode.CONFLICT


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
class QueueNotDeclared(DssError):
    """Fields: group, filter."""

    code = "DSS2008"
    sentence = "The queue {group} is not declared."
    hint = "Declare it first: dssctl groups create '$queue/{group}/{filter}'"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.NOT_FOUND


@registered
class StaleTopicEpoch(DssError):
    """Fields: topic, current, given."""

    code = "DSS2009"
    sentence = "Topic {topic} is at epoch {current}; the request has {given}."
    hint = "Describe the topic again and re-route."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class StorageTopicSealed(DssError):
    """Fields: topic, ordinal."""

    code = "DSS2010"
    sentence = "Storage topic {ordinal} of {topic} is sealed."
    hint = "Describe the topic again: new records go to its last storage topic."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class StreamNotFound(DssError):
    """Fields: stream."""

    code = "DSS2011"
    sentence = "There is no stream {stream}."
    hint = "See the topic's streams: dssctl topics describe TOPIC"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


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
    sentence = "The name {group} is that of several groups: {candidates}."
    hint = "Write NAME@FILTER."
    grpc_status = "INVALID_ARGUMENT"
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
class OffsetOutOfRange(DssError):
    """Fields: offset, start, end, stream."""

    code = "DSS2015"
    sentence = "Offset {offset} is outside {start}..{end} of stream {stream}."
    hint = "Start at earliest, at a time, or inside the range."
    grpc_status = "OUT_OF_RANGE"
    exit_code = ExitCode.USAGE


@registered
class SequenceGap(DssError):
    """Fields: given, expected_after, stream."""

    code = "DSS2016"
    sentence = "Producer sequence {given} does not follow {expected_after} in stream {stream}."
    hint = "Frames before it were lost on the way: send them first."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.FAILED


@registered
class SequenceTooOld(DssError):
    """Fields: given, stream."""

    code = "DSS2017"
    sentence = (
        "Producer sequence {given} is older than what the daemon remembers of stream {stream}."
    )
    hint = "It was stored or refused long ago; nothing was stored now."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.FAILED
    definite = False


@registered
class PublishedInPart(DssError):
    """Fields: stored, streams, reason."""

    code = "DSS2101"
    sentence = "Only {stored} of {streams} streams stored their records: {reason}"
    hint = "Publish the rest again; without idempotence some records may then be stored twice."
    grpc_status = "ABORTED"
    exit_code = ExitCode.FAILED
    definite = False
