"""The daemon, its disk, or the connection to it failed (DSS5xxx).

Invariant: leaves only; each states its sentence, its hint, its gRPC status and its exit code.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


@registered
class Unreachable(DssError):
    """Raised by the client. Fields: endpoint."""

    code = "DSS5001"
    sentence = "No daemon answers at {endpoint}."
    hint = (
        "Start one: dssd serve; with --data-dir DIR it listens at DIR/dssd.sock. Say where one is: "
        "--endpoint unix:PATH or HOST:PORT, or dss://HOST:PORT if it serves with TLS."
    )
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
    sentence = "The connection was lost, or the loan of the stream ended, before the answer came."
    hint = (
        "It may have been carried out: look before you repeat it. A producer may send again, and a "
        "change with an operation id may be asked for again: each happens once. "
        "A record whose ack did not count comes again, marked."
    )
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
class DaemonStopped(TimedOut):
    """Raised by the client and the tool. Fields: what, seconds, process."""

    code = "DSS5050"
    sentence = (
        "{what} did not finish within {seconds} s: the daemon's process {process} is stopped."
    )
    hint = "Let it go on: kill -CONT {process}. Whether it carries out the request then is unknown."


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
        "The daemon stops, because it can no longer keep records safe. Check the disk, then "
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
    """Fields: principal, action, role, how."""

    code = "DSS5009"
    sentence = "{principal} may not {action}."
    hint = "It takes the role {role}. {how}."
    grpc_status = "PERMISSION_DENIED"
    exit_code = ExitCode.DENIED


@registered
class OwnerRefused(DssError):
    """It acts for a principal without the role. Fields: what, principal, why, how."""

    code = "DSS2237"
    sentence = "{what} acts for {principal}, {why}."
    hint = "A principal with the role can take it over: {how}."
    grpc_status = "PERMISSION_DENIED"
    exit_code = ExitCode.DENIED


@registered
class LoginRefused(DssError):
    """Who calls is not known, or no longer. Fields: reason."""

    code = "DSS5013"
    sentence = "The daemon does not know who calls: {reason}."
    hint = "An administrator sees with `dssctl tokens ls` who is known."
    grpc_status = "UNAUTHENTICATED"
    exit_code = ExitCode.DENIED


@registered
class OnlyBesideDaemon(DssError):
    """The call names files of the daemon's machine. Fields: action."""

    code = "DSS5014"
    sentence = "{action} is for processes on the daemon's machine, which can open its files."
    hint = "Run it on the daemon's machine, over its unix socket."
    grpc_status = "PERMISSION_DENIED"
    exit_code = ExitCode.DENIED


@registered
class DaemonNotTrusted(DssError):
    """The way to the daemon could not be made private. Fields: endpoint, reason."""

    code = "DSS5015"
    sentence = "The daemon at {endpoint} is not trusted: {reason}."
    hint = (
        "Name the authority of its certificate, --tls-ca FILE.pem, and use a host name in that one."
    )
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.UNREACHABLE


@registered
class LoginEnded(DssError):
    """Of a call that runs. Fields: principal."""

    code = "DSS5016"
    sentence = "The call of {principal} was ended: it was removed or changed, or its login expired."
    hint = "The client reconnects by itself, and learns whether it is still allowed."
    grpc_status = "UNAUTHENTICATED"
    exit_code = ExitCode.DENIED
    definite = False


@registered
class NoRoomToStart(DssError):
    """Raised by the daemon's command. Fields: path."""

    code = "DSS5011"
    sentence = "The disk that holds {path} is full; the daemon cannot start."
    hint = "Free some space there, then start it again: nothing that was acknowledged is lost."
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.IO_ERROR


@registered
class LogUnreadable(DssError):
    """A read of the log failed, and may be tried again. Fields: path, reason."""

    code = "DSS5012"
    sentence = "{path} cannot be read now: {reason}."
    hint = "Nothing is skipped; the daemon tries again. Check the disk: dssctl events."
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.IO_ERROR


@registered
class DataDirectoryReplaced(DssError):
    """Fields: path."""

    code = "DSS5020"
    sentence = "{path} was moved, removed or replaced while the daemon had it open."
    hint = (
        "The daemon stops, and writes nothing to what is there now. What it acknowledged is in the "
        "files that it had open: put those back, all of them, then start it again."
    )
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.IO_ERROR


@registered
class StoreUnguarded(DssError):
    """Another program could change the store beside the daemon. Fields: path, what."""

    code = "DSS5021"
    sentence = "Another program may write to {path}: {what}."
    hint = (
        "The daemon stops before that does harm. Find what opens or removes files in the data "
        "directory, run dssd check, then start the daemon again."
    )
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.IO_ERROR


@registered
class InternalError(DssError):
    """A mistake in the daemon, beside its core. Fields: part, error."""

    code = "DSS5030"
    sentence = "An unforeseen error of the daemon in {part} ended this: {error}."
    hint = "The daemon goes on, and its log has the traceback: please report it."
    definite = False
