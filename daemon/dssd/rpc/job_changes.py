"""Changes of bulk jobs, between the wire and their values.

Invariant: as in `dssd.rpc.changes`, which has the table of all.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dss_api.v1 import jobs_pb2, operations_pb2
from dssd.jobs.model import JobInput, SourceRange
from dssd.operations.changes import CancelJob, CreateJob, PauseJob, RemoveJob, ResumeJob


def source_range(message: jobs_pb2.SourceRange) -> SourceRange:
    """From the wire."""
    return SourceRange(
        message.stream, message.storage_topic_id, message.partition, message.start, message.end
    )


def source_range_message(each: SourceRange) -> jobs_pb2.SourceRange:
    """To the wire."""
    return jobs_pb2.SourceRange(
        stream=each.stream,
        storage_topic_id=each.storage_topic_id,
        partition=each.partition,
        start=each.start,
        end=each.end,
    )


def _create_job(message: operations_pb2.CreateJob) -> CreateJob:
    inputs = tuple(JobInput(each.text, each.records, each.bytes) for each in message.inputs)
    return CreateJob(
        name=message.name,
        kind=message.kind,
        engine=message.engine,
        source=message.source,
        start_us=message.start_us if message.HasField("start_us") else None,
        end_us=message.end_us if message.HasField("end_us") else None,
        filter=message.filter,
        target=message.target,
        rate_bytes_s=message.rate_bytes_s,
        chunk_bytes=message.chunk_bytes,
        hops_max=message.hops_max,
        allow_loop=message.allow_loop,
        params=message.params,
        inputs=inputs,
        ranges=tuple(map(source_range, message.ranges)),
    )


def _create_job_message(change: CreateJob) -> tuple[str, operations_pb2.CreateJob]:
    inputs = [
        operations_pb2.JobInput(text=each.text, records=each.records, bytes=each.bytes)
        for each in change.inputs
    ]
    return "create_job", operations_pb2.CreateJob(
        name=change.name,
        kind=change.kind,
        engine=change.engine,
        source=change.source,
        start_us=change.start_us,
        end_us=change.end_us,
        filter=change.filter,
        target=change.target,
        rate_bytes_s=change.rate_bytes_s,
        chunk_bytes=change.chunk_bytes,
        hops_max=change.hops_max,
        allow_loop=change.allow_loop,
        params=change.params,
        inputs=inputs,
        ranges=map(source_range_message, change.ranges),
    )


JOB_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "create_job": _create_job,
    "pause_job": lambda message: PauseJob(message.job),
    "resume_job": lambda message: ResumeJob(message.job),
    "cancel_job": lambda message: CancelJob(message.job),
    "remove_job": lambda message: RemoveJob(message.job),
}
JOB_ENCODERS: Mapping[type[Any], Callable[[Any], tuple[str, Any]]] = {
    CreateJob: _create_job_message,
    PauseJob: lambda change: ("pause_job", operations_pb2.PauseJob(job=change.job)),
    ResumeJob: lambda change: ("resume_job", operations_pb2.ResumeJob(job=change.job)),
    CancelJob: lambda change: ("cancel_job", operations_pb2.CancelJob(job=change.job)),
    RemoveJob: lambda change: ("remove_job", operations_pb2.RemoveJob(job=change.job)),
}
