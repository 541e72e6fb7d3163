"""Backups and restores (of DSS1xxx, DSS2xxx, DSS3xxx, DSS4xxx and DSS5xxx).

Invariant: leaves only; each states its sentence, its hint, its gRPC status and its exit code.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


@registered
class BackupTargetUnfit(DssError):
    """Fields: path, reason, advice: the command that would work."""

    code = "DSS1181"
    sentence = "{path} cannot take a backup: {reason}."
    hint = "Nothing was written. {advice}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.USAGE


@registered
class RestoreTargetUnfit(DssError):
    """Fields: path, reason."""

    code = "DSS1182"
    sentence = "Nothing is restored into {path}: {reason}."
    hint = (
        "Nothing was changed there. Stop its daemon and move it away, mv -T OLD OLD-lost, or name "
        "a directory that is not there yet: --into NEW"
    )
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.USAGE


@registered
class BackupNotFound(DssError):
    """Fields: path, number, listed."""

    code = "DSS2068"
    sentence = "{path} has no backup {number}; it has {listed}."
    hint = "See what is there: dssctl backup ls {path}"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class BackupUnderWay(DssError):
    """Fields: what."""

    code = "DSS2164"
    sentence = "{what} is under way already."
    hint = "One is made at a time: wait for it, then try again."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class NoRoomForBackup(DssError):
    """Fields: path, needed, free."""

    code = "DSS3071"
    sentence = "{path} has {free} free, and {needed} are needed."
    hint = "Nothing was begun. Make room there: dssctl backup rm removes older backups."
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.FAILED


@registered
class BackupDamaged(DssError):
    """Fields: path, reason."""

    code = "DSS4011"
    sentence = "The backup is damaged: {path}: {reason}."
    hint = "Take another one, or another copy of this file. What else is wrong: dssd verify DIR"
    grpc_status = "DATA_LOSS"
    exit_code = ExitCode.FAILED


@registered
class BackupNewer(DssError):
    """Fields: path, found, known."""

    code = "DSS1183"
    sentence = "{path} was written by a newer version (format {found}, this one knows {known})."
    hint = "Use that version or a newer one."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFIG


@registered
class BackupFailed(DssError):
    """Fields: reason."""

    code = "DSS5061"
    sentence = "The backup failed: {reason}."
    hint = "The daemon goes on, and older backups are as they were. Mend it, then try again."
    grpc_status = "ABORTED"
    exit_code = ExitCode.FAILED
