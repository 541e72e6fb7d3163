"""Every condition that a caller can meet, with its stable code.

One registry serves the daemon (which maps a condition to a gRPC status), the client (which
raises the same class again from what came over the wire) and the command line (exit code, hint)::

    DssError
    ├── DSS1xxx  the request is wrong            (usage: fix the call)
    ├── DSS2xxx  the state does not allow it     (conflict, not found, exists)
    ├── DSS3xxx  a limit is reached              (later or smaller)
    ├── DSS4xxx  the data is damaged             (corrupt, quarantined)
    ├── DSS5xxx  the daemon or the way to it     (unreachable, stopping, disk)
    └── DSS6xxx  sessions, groups and grants     (fenced, taken over, destroyed)

Each leaf is a class named by its condition. It carries facts as fields and builds its own
message; nothing parses a message. `definite` says whether the caller may be sure that nothing
was done. Invariant: a code, once released, keeps its meaning and is never given again.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What a process tells its caller."""

    OK = 0
    FAILED = 1
    """The operation, or any item of it, failed."""
    USAGE = 2
    UNREACHABLE = 3
    TIMEOUT = 4
    NOT_FOUND = 5
    CONFLICT = 6
    DENIED = 7
    DECLINED = 8
    CHANGES_PENDING = 10
    IO_ERROR = 74
    LOCKED = 75
    CONFIG = 78
    INTERRUPTED = 130
    PIPE_CLOSED = 141


class DssError(Exception):
    """A condition with a stable code. Fields are facts, as strings on the wire."""

    code: ClassVar[str] = ""
    sentence: ClassVar[str] = ""
    """Template of the message over the fields."""
    hint: ClassVar[str] = ""
    """Template of what to do next, over the fields; may be empty."""
    grpc_status: ClassVar[str] = "UNKNOWN"
    """Name of the gRPC status that carries it."""
    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    definite: ClassVar[bool] = True
    """Whether it is certain that the request has done nothing."""

    def __init__(self, /, **fields: object) -> None:
        self.fields: dict[str, str] = {name: str(value) for name, value in fields.items()}
        super().__init__(self.sentence.format_map(_Fields(self.fields)))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickling and copying keep class and fields."""
        return from_wire, (self.code, self.fields, str(self))

    @property
    def message(self) -> str:
        """One sentence: what happened."""
        return str(self)

    @property
    def hint_text(self) -> str:
        """What to do next; may be empty."""
        return self.hint.format_map(_Fields(self.fields))


class _Fields(dict[str, str]):
    """Fields for a template: one that an older peer did not send shows as ``?``."""

    def __missing__(self, key: str) -> str:
        """What stands in for a field that is not there."""
        return "?"


REGISTRY: dict[str, type[DssError]] = {}


def registered(leaf: type[DssError]) -> type[DssError]:
    """Enter a leaf under its code. Programmer error: the code is taken."""
    assert leaf.code not in REGISTRY, leaf.code
    REGISTRY[leaf.code] = leaf
    return leaf


def from_wire(code: str, fields: Mapping[str, str], message: str) -> DssError:
    """The error that a peer sent: its own class where we know the code."""
    leaf = REGISTRY.get(code)
    if leaf is None:
        return UnknownCondition(code=code, text=message)
    return leaf(**fields)


@registered
class IllegalName(DssError):
    """A topic, group, stream or client name breaks its rule. Fields: name, rule."""

    code = "DSS1001"
    sentence = "The name {name} is not allowed: {rule}."
    hint = "Use letters, digits, '.', '_' and '-', at most 255 bytes."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class IllegalFilter(DssError):
    """A topic filter breaks a rule. Fields: filter, rule."""

    code = "DSS1002"
    sentence = "The filter {filter} is not allowed: {rule}."
    hint = (
        "A filter is levels joined by '/'; '+' stands for one level, '#' for all that "
        "remain, at the end only."
    )
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class QueueWithoutGroup(DssError):
    """``$queue/F``, which is EMQX's groupless form. Fields: filter."""

    code = "DSS1003"
    sentence = "{filter} names a queue without a group."
    hint = "Write $queue/GROUP/FILTER, for example $queue/workers/orders/#."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class SubjectOutsideTopic(DssError):
    """Fields: subject, topic, patterns."""

    code = "DSS1004"
    sentence = "The subject {subject} is outside the patterns of topic {topic}: {patterns}."
    hint = "Publish to the topic that owns the subject, or use a subject below one of its patterns."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class IllegalSubject(DssError):
    """Fields: subject, rule."""

    code = "DSS1005"
    sentence = "The subject {subject} is not allowed: {rule}."
    hint = (
        "A subject is UTF-8 without wildcards and control characters, at most 1,024 "
        "bytes and 64 levels."
    )
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class RecordTooLarge(DssError):
    """Fields: size_bytes, limit_bytes."""

    code = "DSS1006"
    sentence = "A record of {size_bytes} bytes is over the limit of {limit_bytes}."
    hint = "Store the payload elsewhere and publish a reference to it."
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.USAGE


@registered
class FrameTooLarge(DssError):
    """Fields: size_bytes, records."""

    code = "DSS1007"
    sentence = "A frame of {size_bytes} bytes or {records} records is over the limits."
    hint = "Split the batch: at most 4 MiB and 65,535 records a frame."
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.USAGE


@registered
class FrameCorrupt(DssError):
    """Fields: reason."""

    code = "DSS1008"
    sentence = "The frame is damaged: {reason}."
    hint = (
        "Nothing was stored. Send it again; if it keeps failing, look at the client's "
        "memory or library version."
    )
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.FAILED


@registered
class FrameMisrouted(DssError):
    """Fields: row, partition, expected."""

    code = "DSS1009"
    sentence = (
        "A record at row {row} of a frame for partition {partition} belongs to partition "
        "{expected}."
    )
    hint = (
        "The producer's router, partition count or factor is out of date: describe the topic again."
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.FAILED


@registered
class IllegalArgument(DssError):
    """Any other value out of its bounds. Fields: argument, rule."""

    code = "DSS1010"
    sentence = "{argument} is not allowed: {rule}."
    hint = ""
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class BrokenInputLine(DssError):
    """Fields: line, reason."""

    code = "DSS1011"
    sentence = "Line {line} of the input is broken: {reason}."
    hint = "Lines before it were published, none after it. Mend the line and go on from there."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.FAILED


@registered
class SocketPathTooLong(DssError):
    """Fields: path, length, limit."""

    code = "DSS1012"
    sentence = "The socket path {path} has {length} bytes; a unix socket allows {limit}."
    hint = "Choose a shorter data directory, or --listen unix:/short/path.sock."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.CONFIG


@registered
class IllegalTime(DssError):
    """Fields: text."""

    code = "DSS1013"
    sentence = "The time {text} is not understood."
    hint = "Use -15m, 2026-11-20, 2026-11-20T08:00:00Z, @1795000000, now or earliest."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class IllegalConfig(DssError):
    """Fields: source, reason."""

    code = "DSS1014"
    sentence = "The configuration {source} is wrong: {reason}."
    hint = ""
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.CONFIG


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
    hint = "Create it again first: dssctl groups create {group}"
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
class DiskFull(DssError):
    """Fields: none."""

    code = "DSS3001"
    sentence = "The disk is full; publishing is refused."
    hint = "Free space, or shorten a topic's retention. Reads and acks go on."
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
    sentence = "The producer's buffer of {limit} records is full."
    hint = "Await enqueue() instead of send_nowait(), or flush() first."
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.FAILED


@registered
class StreamDamaged(DssError):
    """Fields: stream, offset."""

    code = "DSS4001"
    sentence = "Stream {stream} is damaged at offset {offset}."
    hint = "Later records are readable; the damaged file is kept. See dssd's log."
    grpc_status = "DATA_LOSS"
    exit_code = ExitCode.FAILED


@registered
class StoreDamaged(DssError):
    """Fields: path, reason."""

    code = "DSS4002"
    sentence = "The store {path} is damaged: {reason}."
    hint = "Restore the store from a backup; the log is untouched."
    grpc_status = "DATA_LOSS"
    exit_code = ExitCode.IO_ERROR


@registered
class Unreachable(DssError):
    """Raised by the client. Fields: endpoint."""

    code = "DSS5001"
    sentence = "No daemon answers at {endpoint}."
    hint = "Start one: dssd serve --data-dir DIR, or pass --endpoint."
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.UNREACHABLE


@registered
class Stopping(DssError):
    """Fields: none."""

    code = "DSS5002"
    sentence = "The daemon is stopping."
    hint = "The client reconnects by itself when it is back."
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.UNREACHABLE


@registered
class OutcomeUnknown(DssError):
    """Raised by the client. Fields: none."""

    code = "DSS5003"
    sentence = "The connection was lost before the answer came."
    hint = "Send again with the same producer: it is stored once."
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.TIMEOUT
    definite = False


@registered
class TimedOut(DssError):
    """Fields: what, seconds."""

    code = "DSS5004"
    sentence = "{what} did not finish within {seconds} s."
    hint = ""
    grpc_status = "DEADLINE_EXCEEDED"
    exit_code = ExitCode.TIMEOUT
    definite = False


@registered
class DataDirectoryLocked(DssError):
    """Fields: path."""

    code = "DSS5005"
    sentence = "Another daemon holds {path}."
    hint = "Stop it first, or choose another --data-dir."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.LOCKED


@registered
class DataDirectoryNewer(DssError):
    """Fields: path, found, known."""

    code = "DSS5006"
    sentence = "{path} was written by a newer version (format {found}, this one knows {known})."
    hint = "Run that version or a newer one."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFIG


@registered
class DiskFailed(DssError):
    """Fields: reason."""

    code = "DSS5007"
    sentence = "The disk failed: {reason}."
    hint = (
        "The daemon stops rather than promise what it cannot keep. Check the disk, then "
        "start it again."
    )
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.IO_ERROR
    definite = False


@registered
class AddressInUse(DssError):
    """Fields: address, reason."""

    code = "DSS5008"
    sentence = "Cannot listen on {address}: {reason}."
    hint = "Another process listens there, or it is not allowed."
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.CONFIG


@registered
class PermissionDenied(DssError):
    """Fields: principal, action, role."""

    code = "DSS5009"
    sentence = "{principal} may not {action}."
    hint = "Ask an administrator for the role {role}."
    grpc_status = "PERMISSION_DENIED"
    exit_code = ExitCode.DENIED


@registered
class UnknownCondition(DssError):
    """A code this version does not know. Fields: code, text."""

    code = "DSS5010"
    sentence = "The daemon reported {code}: {text}"
    hint = "It is newer than this tool: update the tool."
    grpc_status = "UNKNOWN"
    exit_code = ExitCode.FAILED
    definite = False


@registered
class GrantNotHeld(DssError):
    """An ack came for a grant that ended or never was. Fields: grant."""

    code = "DSS6001"
    sentence = "Grant {grant} is not held by this session."
    hint = "Its records were given to another member and will be delivered there."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class SessionTakenOver(DssError):
    """Fields: client_id."""

    code = "DSS6002"
    sentence = "Client id {client_id} connected elsewhere; the newest connection wins."
    hint = "Give each client its own client id."
    grpc_status = "ABORTED"
    exit_code = ExitCode.CONFLICT


@registered
class SessionNotFound(DssError):
    """Fields: client_id."""

    code = "DSS6003"
    sentence = "There is no session {client_id}."
    hint = "It expired or was discarded; connect anew."
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class NotSubscribed(DssError):
    """Fields: subscription."""

    code = "DSS6004"
    sentence = "There is no subscription {subscription} in this session."
    hint = ""
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class AckOutOfRange(DssError):
    """Fields: start, end, grant."""

    code = "DSS6005"
    sentence = "Offsets {start}..{end} were not delivered under grant {grant}."
    hint = "Ack only what was delivered."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.FAILED


@registered
class NotOpened(DssError):
    """Fields: none."""

    code = "DSS6006"
    sentence = "The first message of a session must be open."
    hint = ""
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.FAILED


# Raised by the command line alone.


@registered
class WrongUsage(DssError):
    """Arguments that do not fit the command. Fields: reason, command."""

    code = "DSS1101"
    sentence = "The command line is wrong: {reason}"
    hint = "See: {command} --help"
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class ConfirmationNeeded(DssError):
    """Nobody can be asked. Fields: action, flag."""

    code = "DSS1102"
    sentence = "{action} needs to be confirmed, and there is no terminal to ask at."
    hint = "Pass {flag} to go ahead."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.USAGE


@registered
class Declined(DssError):
    """Fields: action."""

    code = "DSS1103"
    sentence = "{action} was declined; nothing changed."
    hint = ""
    grpc_status = "CANCELLED"
    exit_code = ExitCode.DECLINED


@registered
class InputUnreadable(DssError):
    """Fields: path, reason."""

    code = "DSS1104"
    sentence = "The input {path} cannot be read: {reason}."
    hint = "Name a file, or '-' for standard input."
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


@registered
class MessageUnreadable(DssError):
    """Bytes on the wire are not the message that the method takes. Fields: message, reason."""

    code = "DSS1015"
    sentence = 'The request cannot be read as {message}: {reason}.'
    hint = 'Use the stubs of this version of DSS.'
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.FAILED
