"""Conditions of the program that calls, before the daemon is asked: DSS115x.

Invariant: each is definite, because nothing has left the process.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


@registered
class FileUnwritable(DssError):
    """A file that was to be written cannot be. Fields: path, reason."""

    code = "DSS1151"
    sentence = "{path} cannot be written: {reason}."
    hint = "Make room or a folder there, or name another place."
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.IO_ERROR


@registered
class OpenedBeforeFork(DssError):
    """A client is used in a child of the process that opened it. Fields: process."""

    code = "DSS1152"
    sentence = "A client was opened in process {process} before this one was forked from it."
    hint = "Connect in the child, and in the parent after the fork; or begin the child by spawn."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.USAGE


@registered
class WouldWaitForItself(DssError):
    """A call of the synchronous client in the thread of its loop. No fields."""

    code = "DSS1153"
    sentence = "This call would wait for itself: it was made in the thread that carries it out."
    hint = "In on_grant and on_revoke only note what happened; call in a thread of yours."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.USAGE


@registered
class ProcessEnds(DssError):
    """A call of the synchronous client while Python ends. No fields."""

    code = "DSS1154"
    sentence = "The process ends, and its clients are closed."
    hint = "Close what is still in use, or wait for it, before the program ends."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.USAGE


@registered
class LibraryMissing(DssError):
    """Something needs a library that is not installed. Fields: library, purpose."""

    code = "DSS1155"
    sentence = "{purpose} needs {library}, which is not installed."
    hint = "Install it: pip install {library}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.USAGE


@registered
class ToolFailed(DssError):
    """An error of the tool itself, which nobody expected. Fields: error, reason, path."""

    code = "DSS1156"
    sentence = "dssctl failed where it should not: {error}: {reason}."
    hint = "Its traceback is in {path}; please report it with dssctl version."
    grpc_status = "UNKNOWN"
    exit_code = ExitCode.FAILED
