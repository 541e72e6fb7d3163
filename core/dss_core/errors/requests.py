"""The request is wrong: the caller corrects it and calls again (DSS1xxx).

Invariant: leaves only; each states its sentence, its hint, its gRPC status and its exit code.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


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
    hint = "Lines before it were published, none after it. Correct the line and go on from there."
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
    hint = (
        "Use -15m, +15m, 2026-11-20, 2026-11-20T08:00:00Z, @1795000000, now or earliest; for a "
        "place in a stream latest or =OFFSET too."
    )
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
class MessageUnreadable(DssError):
    """Bytes on the wire are not the message that the method takes. Fields: message, reason."""

    code = "DSS1015"
    sentence = "The request cannot be read as {message}: {reason}."
    hint = "Use the stubs of this version of DSS."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.FAILED


@registered
class IllegalSpan(DssError):
    """Fields: text."""

    code = "DSS1016"
    sentence = "The span {text} is not understood."
    hint = "Use 500ms, 30s, 15m, 1h30m, 7d or 2w."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


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
class NoSuchErrorCode(DssError):
    """Neither the code nor the name of a condition. Fields: code."""

    code = "DSS1105"
    sentence = "There is no such code: {code}."
    hint = "List them: dssctl errors ls"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.USAGE


@registered
class GroupMisspelt(DssError):
    """A group to be created is written without its filter. Fields: group."""

    code = "DSS1106"
    sentence = "{group} does not name a group and its filter."
    hint = (
        "Write NAME@FILTER, or '$share/NAME/FILTER' in single quotes: without them the shell "
        "takes $share for a variable."
    )
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class GroupNamedTwice(DssError):
    """A filter that names a group, where the group is given apart. Fields: filter, group, rest."""

    code = "DSS1107"
    sentence = "The filter {filter} names a group itself, beside --group."
    hint = "Use the filter alone: dssctl consume '{rest}' --group {group}"
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class DocumentUnreadable(DssError):
    """A file that the tool itself should have written. Fields: path, what, reason, command."""

    code = "DSS1108"
    sentence = "{path} is not {what}: {reason}."
    hint = "Nothing was changed. Write one: {command}"
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class OperationGoesOn(DssError):
    """The tool waits no longer; the daemon goes on. Fields: number, kind, seconds."""

    code = "DSS1109"
    sentence = "Operation {number}, {kind}, has not ended within {seconds} s. It goes on."
    hint = "Wait on: dssctl ops wait {number}. Stop the rest: dssctl ops cancel {number}"
    grpc_status = "DEADLINE_EXCEEDED"
    exit_code = ExitCode.TIMEOUT
    definite = False


@registered
class OperationNotDone(DssError):
    """It was waited for, and ended otherwise. Fields: number, kind, state, why."""

    code = "DSS1110"
    sentence = "Operation {number}, {kind}, is {state}: {why}."
    hint = "See what it did before that: dssctl ops show {number}"
    grpc_status = "ABORTED"
    exit_code = ExitCode.FAILED
    definite = False


@registered
class OutputUnwritable(DssError):
    """Standard output takes no more. Fields: reason."""

    code = "DSS1111"
    sentence = "The output cannot be written: {reason}."
    hint = "Make room, or write somewhere else. What was not written is not acknowledged either."
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.IO_ERROR
    definite = False


@registered
class ContextReadOnly(DssError):
    """A command that changes something, in a context for looking. Fields: command, where."""

    code = "DSS1121"
    sentence = "{command} changes something, and {where} is read-only."
    hint = "Pass --write to change something there all the same."
    grpc_status = "PERMISSION_DENIED"
    exit_code = ExitCode.DENIED


@registered
class ReasonNeeded(DssError):
    """A protected context keeps why something was changed. Fields: command, context."""

    code = "DSS1122"
    sentence = "{command} needs a reason: the context {context} is protected."
    hint = "Pass --reason TEXT; it is kept with the operation."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.USAGE


@registered
class NameNotConfirmed(DssError):
    """The name that was typed is not that of the changed object. Fields: action, typed, name."""

    code = "DSS1123"
    sentence = "{action}: you typed '{typed}' instead of '{name}'; nothing changed."
    hint = "Look at what would be changed; then type its name, or pass --confirm {name}."
    grpc_status = "CANCELLED"
    exit_code = ExitCode.DECLINED


@registered
class ContextNotFound(DssError):
    """Fields: context, path, near (a sentence and a blank, or nothing)."""

    code = "DSS1124"
    sentence = "There is no context {context} in {path}."
    hint = (
        "{near}List them: dssctl contexts ls. Add it: dssctl contexts add {context} "
        "--endpoint ADDRESS"
    )
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class ContextExists(DssError):
    """Fields: context, path."""

    code = "DSS1125"
    sentence = "There is a context {context} in {path}."
    hint = "Change it: dssctl contexts edit {context}"
    grpc_status = "ALREADY_EXISTS"
    exit_code = ExitCode.CONFLICT


@registered
class NothingToExplain(DssError):
    """Neither a type nor a field. Fields: what, near (a sentence and a blank, or nothing)."""

    code = "DSS1126"
    sentence = "There is no type and no field {what}."
    hint = "{near}List them: dssctl explain"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.USAGE


@registered
class ProducerTooOld(DssError):
    """A producer does not follow its topic to other streams. Fields: topic, version."""

    code = "DSS1130"
    sentence = (
        "The topic {topic} grew: its records go to other streams now, and this producer is of a "
        "version that does not follow them. It needs {version} or later."
    )
    hint = "Nothing was stored now. Upgrade the client to {version}, and send again what failed."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class FilterUnreadable(DssError):
    """A filter of a list. Fields: filter, problem, fields (those that there are)."""

    code = "DSS1141"
    sentence = "The filter '{filter}' cannot be read: {problem}."
    hint = (
        "Join conditions by commas, alternatives by ' or ': --filter 'lag>1000,state=stalled'. "
        "Fields: {fields}."
    )
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class OrderUnreadable(DssError):
    """An order of a list. Fields: order, problem, fields (what it can be sorted by)."""

    code = "DSS1142"
    sentence = "This list cannot be sorted by '{order}': {problem}."
    hint = "Sort by one of: {fields}; a minus before it reverses the order."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class PatternTooSlow(DssError):
    """Raised by the tool. Fields: pattern, seconds."""

    code = "DSS1171"
    sentence = "The pattern {pattern} takes more than {seconds} s on a few records."
    hint = "It backtracks: avoid repeats inside of repeats, as in (a+)+."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class IllegalCron(DssError):
    """Fields: cron, why."""

    code = "DSS1061"
    sentence = "'{cron}' is no cron expression: {why}."
    hint = (
        "Write minute, hour, day, month and day of the week: '0 3 * * *' is every night at three. "
        "See what it means: dssctl schedules preview --cron '0 3 * * *'"
    )
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class StillWaiting(DssError):
    """Raised by `dssctl wait`. Fields: subject, seconds, wanted, now."""

    code = "DSS1172"
    sentence = "{subject} did not reach {wanted} within {seconds} s: {now}."
    hint = "Nothing was changed. Wait longer with --timeout, or see why: dssctl doctor"
    grpc_status = "DEADLINE_EXCEEDED"
    exit_code = ExitCode.TIMEOUT


@registered
class IllegalTimeZone(DssError):
    """Fields: time_zone."""

    code = "DSS1062"
    sentence = "There is no time zone {time_zone}."
    hint = "Write UTC, or a name of the tz database, Europe/Berlin for one."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class TaskLocked(DssError):
    """Another process holds the lock under which a task was to be run. Fields: task, path."""

    code = "DSS1112"
    sentence = "The task {task} is not run: another process holds {path}."
    hint = "It runs already. Where that is usual, give the schedule more time."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class NotInProtectedContext(DssError):
    """Raised by the tool: a load without any other purpose. Fields: command, context."""

    code = "DSS1173"
    sentence = "{command} only measures, at full load, and context {context} is protected."
    hint = "Name a daemon for trials: --context NAME, or --no-context --endpoint ADDRESS"
    grpc_status = "PERMISSION_DENIED"
    exit_code = ExitCode.DENIED


@registered
class CallUnknown(DssError):
    """Something answers, and has no such call: it is no DSS daemon, or an older one.

    Fields: endpoint.
    """

    code = "DSS1190"
    sentence = (
        "What answers at {endpoint} does not know this call: it is no DSS daemon, or one that is "
        "older than this tool."
    )
    hint = "Say where the daemon is, or ask what is there: dssctl daemon status"
    grpc_status = "UNIMPLEMENTED"
    exit_code = ExitCode.UNREACHABLE
