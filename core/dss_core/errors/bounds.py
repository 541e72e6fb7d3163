"""A limit is reached: the caller tries later, or with less (DSS3xxx).

Invariant: leaves only; each states its sentence, its hint, its gRPC status and its exit code.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


@registered
class DiskFull(DssError):
    """Fields: none."""

    code = "DSS3001"
    sentence = "The disk is full; publishing is refused."
    hint = "Free space, or shorten a topic's retention. Reads and acks go on."
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.FAILED


@registered
class SyncOverdue(DssError):
    """A topic was made durable, and what it held before is not yet. Fields: topic, waited_s."""

    code = "DSS3006"
    sentence = (
        "The disk was full for {waited_s} s. What {topic} acknowledged before the edit is durable "
        "a second after there is room; what it acknowledges from now on is durable."
    )
    hint = "Free space, or shorten a topic's retention."
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.FAILED


@registered
class Overloaded(DssError):
    """A bounded queue is full. Fields: what, limit."""

    code = "DSS3002"
    sentence = "{what} is at its limit of {limit}."
    hint = "Try again in a moment."
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.FAILED


@registered
class BufferFull(DssError):
    """Raised by the client. Fields: limit."""

    code = "DSS3003"
    sentence = "The producer's buffer is full: it holds {limit} bytes."
    hint = "Await enqueue() instead of send_nowait(), or flush() first."
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.FAILED


@registered
class TooManyProducers(DssError):
    """Fields: limit."""

    code = "DSS3004"
    sentence = "The daemon knows {limit} producers already, all of them active: this one is new."
    hint = (
        "Use one producer for many records, not one for each; room is made as others fall silent."
    )
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.FAILED


@registered
class TooManySessions(DssError):
    """Fields: whose, limit."""

    code = "DSS3005"
    sentence = "{whose} sessions are at their limit of {limit}, and none of them can give way."
    hint = (
        "See them with dssctl sessions ls, and end one with dssctl sessions close CLIENT_ID; or "
        "let clients come back under the client id that they had."
    )
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.FAILED


@registered
class TooManySchedules(DssError):
    """Fields: limit."""

    code = "DSS3061"
    sentence = "There are {limit} schedules already."
    hint = "Remove one: dssctl schedules rm NAME"
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.FAILED


@registered
class TooManyPrincipals(DssError):
    """Fields: limit."""

    code = "DSS3062"
    sentence = "There are {limit} principals already."
    hint = "Remove those that nobody needs: dssctl tokens ls; dssctl tokens rm NAME"
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.FAILED
