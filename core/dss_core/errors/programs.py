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
