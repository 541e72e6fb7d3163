"""Frames that cannot be stored as they come: sealed, of an old epoch, out of sequence (of DSS2xxx).

Invariant: leaves only; each states its sentence, its hint, its gRPC status and its exit code.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


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
class ProducerForgotten(DssError):
    """Fields: stream."""

    code = "DSS2031"
    sentence = (
        "The daemon has forgotten this producer in stream {stream}; whether the records were "
        "stored before is unknown."
    )
    hint = "Nothing was stored now. Look in the stream, then send what is missing as new records."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.FAILED
    definite = False


@registered
class HeaderReserved(DssError):
    """Fields: header."""

    code = "DSS2121"
    sentence = "No producer may set the header {header}: it is the daemon's own."
    hint = "Give it another name, best one that does not begin with dss-."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class PublishedInPart(DssError):
    """Fields: stored, streams, reason."""

    code = "DSS2101"
    sentence = "Only {stored} of {streams} streams stored their records: {reason}"
    hint = "Publish the rest again; without idempotence some records may then be stored twice."
    grpc_status = "ABORTED"
    exit_code = ExitCode.FAILED
    definite = False
