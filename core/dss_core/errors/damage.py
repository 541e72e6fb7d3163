"""Stored data is damaged (DSS4xxx).

Invariant: leaves only; each states its sentence, its hint, its gRPC status and its exit code.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


@registered
class StreamDamaged(DssError):
    """Fields: stream, offset, last: the first offset of the range, and its last one."""

    code = "DSS4001"
    sentence = "Stream {stream} is damaged: offsets {offset} to {last} cannot be read."
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
