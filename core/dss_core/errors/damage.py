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


@registered
class StoreOlderThanLog(DssError):
    """Fields: files, first: how many files the store cannot know; the name of the oldest."""

    code = "DSS4003"
    sentence = (
        "The store is older than the log: it cannot know {files} of its files, from {first} on."
    )
    hint = (
        "Put the newest store back. To go on without the records of {first} and newer files, move "
        "them elsewhere. What is there: dssd check"
    )
    grpc_status = "DATA_LOSS"
    exit_code = ExitCode.IO_ERROR
