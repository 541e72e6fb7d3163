"""What the JetStream facade of the client refuses (DSS12xx: the call; DSS22xx: the state).

Invariant: leaves only; each states its sentence, its hint, its gRPC status and its exit code. None
of them comes from the daemon.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


@registered
class JetStreamMisuse(DssError):
    """The arguments of a call contradict each other, or the rules of JetStream. Fields: rule."""

    code = "DSS1201"
    sentence = "This JetStream call cannot be made: {rule}."
    hint = "Nothing was asked and nothing was made. docs/jetstream.md has the rules."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class NotOffered(DssError):
    """JetStream has it, and DSS cannot do it truly. Fields: what, why."""

    code = "DSS1202"
    sentence = "{what} is not offered: {why}."
    hint = (
        "docs/jetstream.md lists what JetStream promises and DSS does not, and what to use instead."
    )
    grpc_status = "UNIMPLEMENTED"
    exit_code = ExitCode.USAGE


@registered
class NotAJetStreamMessage(DssError):
    """A reply subject is none that JetStream forms. Fields: reply, rule."""

    code = "DSS1203"
    sentence = "{reply} is no acknowledgement subject of JetStream: {rule}."
    hint = "It has 9 tokens, or 11 and more, and begins with $JS.ACK."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class NoMatchingStream(DssError):
    """Fields: subject, found."""

    code = "DSS2201"
    sentence = "No one stream matches the subject {subject}: {found}."
    hint = "Name the stream, or a subject that one topic alone owns; dssctl topics ls shows them."
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class ConsumerNotFound(DssError):
    """Fields: consumer, stream."""

    code = "DSS2202"
    sentence = "There is no consumer {consumer} of the stream {stream}."
    hint = "dssctl groups ls shows the groups; a consumer is the group of its name."
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class SubjectMismatch(DssError):
    """Fields: consumer, filter, subject."""

    code = "DSS2203"
    sentence = "The consumer {consumer} is of the subject {filter}, not of {subject}."
    hint = "Subscribe with its own subject, or with none; or take another name."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class ConsumerIsPush(DssError):
    """Fields: consumer."""

    code = "DSS2204"
    sentence = "The consumer {consumer} is push based: it cannot be pulled from."
    hint = "Use subscribe, or another consumer."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class ConsumerIsPull(DssError):
    """Fields: consumer."""

    code = "DSS2205"
    sentence = "The consumer {consumer} is pull based: it cannot be subscribed to."
    hint = "Use pull_subscribe, or another consumer."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class ConsumerWithoutQueue(DssError):
    """Fields: consumer, queue."""

    code = "DSS2206"
    sentence = "The consumer {consumer} has no deliver group, so no queue {queue} can share it."
    hint = "Subscribe without a queue, or share another consumer."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class ConsumerIsBound(DssError):
    """Fields: consumer."""

    code = "DSS2207"
    sentence = "The consumer {consumer} is already bound to a subscription."
    hint = (
        "dssctl groups describe {consumer} shows its holder. For several subscribers, use a queue."
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class ConsumerHasQueue(DssError):
    """Fields: consumer, deliver_group."""

    code = "DSS2208"
    sentence = "The consumer {consumer} has the deliver group {deliver_group}: join that."
    hint = "Subscribe with queue={deliver_group}."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class ConsumerHasOtherQueue(DssError):
    """Fields: consumer, deliver_group, queue."""

    code = "DSS2209"
    sentence = "The consumer {consumer} has the deliver group {deliver_group}, not {queue}."
    hint = "Subscribe with queue={deliver_group}, or take another consumer."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class FlowControlOverQueue(DssError):
    """Fields: consumer."""

    code = "DSS2210"
    sentence = "The consumer {consumer} has flow control, which no queue supports."
    hint = "Share a consumer without it."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class HeartbeatOverQueue(DssError):
    """Fields: consumer."""

    code = "DSS2211"
    sentence = "The consumer {consumer} has heartbeats, which no queue supports."
    hint = "Share a consumer without them."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class ConfigDiffers(DssError):
    """Fields: consumer, differences."""

    code = "DSS2212"
    sentence = "The consumer {consumer} exists with other settings: {differences}."
    hint = "Nothing was changed. Leave these fields out to use it as it is, or delete it first."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class SubscriptionOver(DssError):
    """Fields: consumer."""

    code = "DSS2213"
    sentence = "The subscription to {consumer} is over."
    hint = "Subscribe anew."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class MessageSettled(DssError):
    """With strict_acks only. Fields: subject."""

    code = "DSS2214"
    sentence = "A message of {subject} was already acknowledged, refused or terminated."
    hint = "Only the first such call for a message counts."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class ConsumerNotActive(DssError):
    """Told to the error callback, never raised. Fields: consumer, silent_s, stream_seq."""

    code = "DSS2215"
    sentence = (
        "Nothing was heard of the consumer {consumer} for {silent_s} s; the last message was "
        "{stream_seq}."
    )
    hint = "The client goes on trying; dssctl doctor says how the daemon is."
    definite = False
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT
