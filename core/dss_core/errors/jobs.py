"""Bulk jobs: what a plan, a driver or an operator did wrong, or met (DSS7xxx).

Invariant: leaves only; each states its sentence, its hint, its gRPC status and its exit code.
"""

from dss_core.errors.condition import DssError, ExitCode, registered


@registered
class IllegalJob(DssError):
    """A job cannot be planned as it was asked for. Fields: job, rule."""

    code = "DSS7001"
    sentence = "The job {job} cannot be made: {rule}."
    hint = "Change what was asked for; --dry-run shows what would be made."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class JobExists(DssError):
    """Fields: job."""

    code = "DSS7002"
    sentence = "A job {job} exists already."
    hint = "Choose another name, or remove it first: dssctl jobs rm {job}"
    grpc_status = "ALREADY_EXISTS"
    exit_code = ExitCode.CONFLICT


@registered
class JobNotFound(DssError):
    """Fields: job."""

    code = "DSS7003"
    sentence = "There is no job {job}."
    hint = "List them: dssctl jobs ls"
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class JobNotInState(DssError):
    """The state of the job does not allow the request. Fields: job, state, asked."""

    code = "DSS7004"
    sentence = "The job {job} is {state}: it cannot {asked}."
    hint = "See how it stands: dssctl jobs describe {job}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class JobFenced(DssError):
    """A driver continues although another one took its job. Fields: job, epoch, newest."""

    code = "DSS7005"
    sentence = "This driver of job {job} has epoch {epoch}, and epoch {newest} counts now."
    hint = "Stop it: another driver goes on with the job, or has ended it."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class JobRestored(JobFenced):
    """A driver that took its job before the data was restored from a backup. Fields: job, epoch,
    newest."""

    code = "DSS2240"
    sentence = (
        "This driver took job {job} before the data was restored from a backup; what it published"
        " behind that backup is gone."
    )
    hint = "Stop it. Another one goes on where the backup has the job: dssctl jobs drive {job}"


@registered
class JobLeased(DssError):
    """Fields: job, driver, left (a span for people), left_ms."""

    code = "DSS7006"
    sentence = "The driver {driver} works on job {job}."
    hint = "Wait for its end, or {left} after it fell silent."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class StagedFileRefused(DssError):
    """Fields: job, file, reason."""

    code = "DSS7007"
    sentence = "The staged file {file} of job {job} is not taken: {reason}."
    hint = "Stage the chunk again; nothing of it was published."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.FAILED


@registered
class HopLimit(DssError):
    """Fields: record, hops, limit."""

    code = "DSS7008"
    sentence = "The record {record} was copied {hops} times; the limit is {limit}."
    hint = "Look for two jobs that feed each other, or raise --hops-max."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class CopyLoop(DssError):
    """Fields: job, topic."""

    code = "DSS7009"
    sentence = "The job {job} would write to {topic}, which it reads."
    hint = "Choose another target; if the copies belong there, pass --allow-loop."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class SourceGone(DssError):
    """Fields: job, stream, start, end."""

    code = "DSS7010"
    sentence = "The job {job} was to read {stream} from {start} to {end}, which is not kept."
    hint = "Plan it over what is kept: dssctl topics describe shows where each stream starts."
    grpc_status = "OUT_OF_RANGE"
    exit_code = ExitCode.CONFLICT


@registered
class TooManyJobs(DssError):
    """Fields: limit."""

    code = "DSS7011"
    sentence = "There are {limit} jobs already."
    hint = "Remove some that have ended: dssctl jobs rm JOB"
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = ExitCode.CONFLICT


@registered
class ChunkNotFound(DssError):
    """Fields: job, chunk, chunks."""

    code = "DSS7012"
    sentence = "The job {job} has no chunk {chunk}: it has {chunks}, from 0."
    hint = "A driver commits the chunks of the manifest that it was given."
    grpc_status = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


@registered
class JobNotDone(DssError):
    """A job that was waited for ended otherwise. Fields: job, state, reason."""

    code = "DSS7013"
    sentence = "The job {job} is {state}: {reason}."
    hint = "See what it did: dssctl jobs describe {job}"
    grpc_status = "ABORTED"
    exit_code = ExitCode.FAILED


@registered
class ExportBroken(DssError):
    """Raised by a driver. Fields: folder, reason."""

    code = "DSS7014"
    sentence = "{folder} cannot be exported to: {reason}."
    hint = "Export to a folder of its own, one for each topic."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class NotExported(DssError):
    """Told of by an export that goes on. Fields: stream, start, end, folder."""

    code = "DSS7017"
    sentence = "{stream} from offset {start} to {end} was deleted before {folder} had it."
    hint = "Export more often than records expire, or keep them longer: dssctl topics edit --help"
    grpc_status = "OUT_OF_RANGE"
    exit_code = ExitCode.CONFLICT


@registered
class StorageTopicNotExported(DssError):
    """Told of by an export that goes on. Fields: storage_topic, folder."""

    code = "DSS7018"
    sentence = "{storage_topic} was removed before {folder} certainly had all of it."
    hint = "Export more often than records expire, or keep them longer: dssctl topics edit --help"
    grpc_status = "OUT_OF_RANGE"
    exit_code = ExitCode.CONFLICT


@registered
class CheckpointOfOtherData(DssError):
    """Raised by a query of Spark. Fields: topic."""

    code = "DSS7060"
    sentence = "The checkpoint is of other data of {topic} than the daemon has now."
    hint = "The daemon was restored from a backup, or is another one. Begin with a new checkpoint."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.CONFLICT


@registered
class InputRefused(DssError):
    """A file of a backfill is not what it should be. Fields: file, reason."""

    code = "DSS7015"
    sentence = "The file {file} cannot be backfilled: {reason}."
    hint = "Nothing was published. Name other columns or files: dssctl backfills create --help"
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class AuditFound(DssError):
    """An audit found what it was to fail on. Fields: audit, what."""

    code = "DSS7030"
    sentence = "The audit {audit} found: {what}."
    hint = "See where, and what helps: dssctl audits show {audit}"
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.FAILED


@registered
class RowsRefused(DssError):
    """Rows of a backfill make no records. Fields: rows, file, row, reason."""

    code = "DSS7016"
    sentence = "Rows that make no records: {rows}; the first is row {row} of {file}: {reason}."
    hint = "Mend the input, or let such rows go to a folder: --rejects FOLDER"
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.FAILED


@registered
class EngineMissing(DssError):
    """What an engine runs on is not installed. Fields: engine, what, package."""

    code = "DSS7040"
    sentence = "The engine {engine} needs {what}, which is not here."
    hint = "Install {package}, or take --engine local. Nothing was made."
    grpc_status = "FAILED_PRECONDITION"
    exit_code = ExitCode.FAILED


@registered
class MasterUnreachable(DssError):
    """Fields: master, reason."""

    code = "DSS7041"
    sentence = "The master {master} cannot be used: {reason}."
    hint = "Write local[2], spark://HOST:PORT, yarn or k8s://https://HOST:PORT. Nothing was made."
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.UNREACHABLE


@registered
class WorkFailed(DssError):
    """An engine could not do the work of a job. Fields: job, reason."""

    code = "DSS7042"
    sentence = "The work of job {job} failed: {reason}."
    hint = "The log of the driver tells more: dssctl jobs describe {job} says where it ran."
    grpc_status = "ABORTED"
    exit_code = ExitCode.FAILED


@registered
class EngineLost(DssError):
    """An engine ended under its driver; the job is as it was. Fields: job, reason."""

    code = "DSS7043"
    sentence = "The engine of job {job} has ended: {reason}."
    hint = "Nothing is lost: another driver goes on, with dssctl jobs drive {job}"
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.FAILED


@registered
class FunctionRefused(DssError):
    """A user's own function cannot be used. Fields: function, reason."""

    code = "DSS7044"
    sentence = "The function {function} cannot be used: {reason}."
    hint = "It takes a DataFrame of records, and returns one with their columns."
    grpc_status = "INVALID_ARGUMENT"
    exit_code = ExitCode.USAGE


@registered
class ExecutorIncomplete(DssError):
    """The Python of an executor lacks what tasks need. Fields: job, reason."""

    code = "DSS7045"
    sentence = "The executors of Spark cannot work on job {job}: {reason}."
    hint = (
        "Install the package dss of this version for the Python of every executor "
        "(PYSPARK_PYTHON), then: dssctl jobs drive {job}"
    )
    grpc_status = "UNAVAILABLE"
    exit_code = ExitCode.FAILED


@registered
class DriverCrashed(DssError):
    """A driver met an error that nobody expected, each time. Fields: job, attempts, reason."""

    code = "DSS7050"
    sentence = "The driver of job {job} crashed {attempts} times, the last time by {reason}."
    hint = "Its log has the trace: dssctl jobs logs {job}; please report it with dssctl version."
    grpc_status = "UNKNOWN"
    exit_code = ExitCode.FAILED


@registered
class DriverEnded(DssError):
    """The driver of a job that is waited for ended before the job did. Fields: job, how."""

    code = "DSS7051"
    sentence = "The job {job} is not done, and its driver {how}."
    hint = "See why: dssctl jobs logs {job}; another driver goes on: dssctl jobs drive {job}"
    grpc_status = "ABORTED"
    exit_code = ExitCode.FAILED
