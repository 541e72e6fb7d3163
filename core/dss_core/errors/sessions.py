"""Sessions and grants: taken over, not found, not held (DSS6xxx).

Invariant: leaves only; each states its sentence, its hint, its gRPC status and its exit code.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


@registered
class GrantNotHeld(DssError):
    """An ack came for a grant that ended or never was, so it does not count. Fields: grant.

    The daemon adds the token of the acks that it refused; 0 says nothing of acks that wait.
    """

    code = "DSS6001"
    sentence = "Grant {grant} is not held by this session."
    hint = "Its stream was taken back; the next holder gets the unacknowledged records again."
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
    hint = "It expired, or was closed: connect anew. Operators: dssctl sessions ls"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class SessionReplaced(DssError):
    """A change names a session that its client no longer has. Fields: client_id."""

    code = "DSS6010"
    sentence = "{client_id} has another session since the plan was made."
    hint = "Plan again: dssctl sessions close {client_id} --dry-run"
    grpc_status = "ABORTED"
    exit_code = ExitCode.CONFLICT


@registered
class SessionConnected(DssError):
    """The request is only for sessions without a connection. Fields: client_id."""

    code = "DSS2235"
    sentence = "The client {client_id} is connected, so its session cannot be adopted."
    hint = "Stop the client, then adopt: its session is kept for a while; dssctl sessions ls"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class SessionOfAnother(DssError):
    """Fields: principal, client_id."""

    code = "DSS2236"
    sentence = "The session of {client_id} belongs to another principal than {principal}."
    hint = "An operator may give it: dssctl sessions adopt {client_id} --to {principal}"
    grpc_status = "PERMISSION_DENIED"
    exit_code = ExitCode.DENIED


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
    sentence = "Offsets {start} to {end} were not delivered under grant {grant}."
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


@registered
class BorrowerEvicted(DssError):
    """An operator ended a subscription. Fields: group, reason."""

    code = "DSS6007"
    sentence = "An operator ended this subscription of group {group}: {reason}."
    hint = "Ask why, then subscribe again."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class SessionClosed(DssError):
    """An operator ended a session for good. Fields: client_id."""

    code = "DSS6009"
    sentence = "An operator closed the session of client {client_id}."
    hint = "Ask why, then connect anew."
    grpc_status = "ABORTED"
    exit_code = ExitCode.CONFLICT


@registered
class ClientTooOld(DssError):
    """A client would not understand what a group sends. Fields: group, feature."""

    code = "DSS6090"
    sentence = "Group {group} has {feature}, and this client is too old to know them."
    hint = "Upgrade the client's package dss-client, and connect again."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class ClientBanned(DssError):
    """An operator keeps the client out of a group for a while. Fields: client_id, group, until."""

    code = "DSS6008"
    sentence = "Client {client_id} is kept out of group {group} until {until}."
    hint = "An operator can end the ban by undoing the eviction: dssctl ops undo NUMBER"
    grpc_status = "PERMISSION_DENIED"
    exit_code = ExitCode.DENIED
