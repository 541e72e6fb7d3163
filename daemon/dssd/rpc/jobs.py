"""The servicer of `Jobs`: decodes, asks the jobs, encodes."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import grpc.aio

from dss_api.v1 import jobs_pb2, jobs_pb2_grpc
from dss_api.values import message_of
from dss_core.errors import IllegalArgument, IllegalJob
from dss_core.lane import DEAD_LETTERS
from dss_core.limits import CHUNK_FILES_MAX
from dss_core.staged import STAGE_PIECE_BYTES, StagedFile
from dssd.jobs.held_job import Granting, JobChunk, JobView
from dssd.jobs.jobs import Jobs
from dssd.jobs.model import ChunkInput, ChunkResult, Spec
from dssd.jobs.uploads import Uploads
from dssd.rpc.origin import is_local
from dssd.store.job_rows import ChunkRow, JobRow
from dssd.topics.model import StorageTopic, Topic

CHUNKS_REPLY_BYTES = 1 << 20
"""Bytes of chunks in one answer, roughly: a quarter of a message."""


CHUNKS_LISTED_MAX = 1_000
"""Chunks in one answer."""


Context = grpc.aio.ServicerContext[Any, Any]


class JobsServicer(jobs_pb2_grpc.JobsServicer):
    """Serves drivers of bulk jobs, and whoever looks at them."""

    def __init__(self, jobs: Jobs, check: Callable[[JobRow], None]) -> None:
        self._jobs = jobs
        self._check = check
        """Raises if the owner of a job lacks a permission that the job needs."""
        self._uploads = Uploads(jobs)

    async def List(
        self, request: jobs_pb2.ListJobsRequest, context: Context
    ) -> jobs_pb2.ListJobsReply:
        """All jobs, the oldest first, without the parameters of their drivers."""
        return jobs_pb2.ListJobsReply(jobs=map(listed_job_message, self._jobs.all()))

    async def Get(self, request: jobs_pb2.GetJobRequest, context: Context) -> jobs_pb2.Job:
        """One job."""
        return job_message(self._jobs.get(request.job))

    async def ListChunks(
        self, request: jobs_pb2.ListChunksRequest, context: Context
    ) -> jobs_pb2.ListChunksReply:
        """Chunks of a job, as many as one message holds."""
        limit = min(request.limit or CHUNKS_LISTED_MAX, CHUNKS_LISTED_MAX)
        after = request.after if request.HasField("after") else -1
        reply = jobs_pb2.ListChunksReply()
        size = 0
        for row in await self._jobs.chunks(request.job, after, limit):
            size += len(row.input) + len(row.result)
            if size > CHUNKS_REPLY_BYTES and reply.chunks:
                break
            reply.chunks.append(_chunk_message(row))
        return reply

    async def Acquire(
        self, request: jobs_pb2.AcquireJobRequest, context: Context
    ) -> jobs_pb2.JobLease:
        """Give a job to a driver.

        Raises:
            IllegalJob: it reads dead letters, and the driver would read the topic instead.
        """
        if self._jobs.dead_letters_of(request.job) and DEAD_LETTERS not in request.features:
            rule = "it reads dead letters, which a driver of a version before does not know"
            raise IllegalJob(job=request.job, rule=rule)
        self._check(self._jobs.get(request.job).row)
        granted = await self._jobs.acquire(request.job, request.driver, request.token)
        if not is_local(context):
            granted = granted._replace(staging="")  # a remote driver cannot use a path of this host
        return _lease_message(granted, self._jobs.get(granted.row.name))

    async def Stage(
        self, request_iterator: AsyncIterator[jobs_pb2.StageUp], context: Context
    ) -> AsyncIterator[jobs_pb2.StageDown]:
        """Take a staged file in."""
        first = await anext(request_iterator, None)
        if first is None or first.WhichOneof("item") != "begin":
            raise IllegalArgument(argument="the first item", rule="it says which file comes")
        begin = first.begin
        upload = await self._uploads.begin(first.job, begin.epoch, begin.name, begin.bytes)
        try:
            yield jobs_pb2.StageDown(bytes=upload.have)
            while not upload.is_whole:
                up = await anext(request_iterator, None)
                if up is None:
                    return
                if len(up.piece.data) > STAGE_PIECE_BYTES:
                    rule = f"at most {STAGE_PIECE_BYTES:,} bytes in a piece"
                    raise IllegalArgument(argument="the piece", rule=rule)
                await upload.take(up.piece.offset, up.piece.data, up.piece.checksum)
            yield jobs_pb2.StageDown(bytes=upload.have)
        finally:
            self._uploads.end(upload)

    async def Renew(self, request: jobs_pb2.RenewJobRequest, context: Context) -> jobs_pb2.Job:
        """Keep a driver's lease."""
        return job_message(self._jobs.renew(request.job, request.epoch, request.said))

    async def Commit(
        self, request: jobs_pb2.CommitIngestRequest, context: Context
    ) -> jobs_pb2.ChunkResult:
        """Publish a chunk."""
        self._check(self._jobs.get(request.job).row)
        if len(request.files) > CHUNK_FILES_MAX:
            rule = f"a chunk has at most {CHUNK_FILES_MAX:,}"
            raise IllegalArgument(argument=f"{len(request.files):,} files", rule=rule)
        files = tuple(StagedFile(each.name, each.bytes, each.records) for each in request.files)
        chunk = JobChunk(request.chunk, request.epoch, files, request.output, request.records)
        return _result_message(await self._jobs.commit(request.job, chunk))

    async def GiveUp(self, request: jobs_pb2.GiveUpJobRequest, context: Context) -> jobs_pb2.Job:
        """End a job as failed."""
        return job_message(await self._jobs.give_up(request.job, request.epoch, request.reason))


def listed_job_message(view: JobView) -> jobs_pb2.Job:
    """A job in a list."""
    spec = Spec.from_json(view.row.spec)
    return message_of(jobs_pb2.Job, view, view.progress, view.row, replace(spec, params=""))


def job_message(view: JobView) -> jobs_pb2.Job:
    """A job with all that is known of it."""
    message = listed_job_message(view)
    message.params = Spec.from_json(view.row.spec).params
    return message


def _chunk_message(row: ChunkRow) -> jobs_pb2.Chunk:
    read = ChunkInput.from_json(row.input)
    result = _result_message(ChunkResult.from_json(row.result)) if row.result else None
    return message_of(jobs_pb2.Chunk, row, read, number=row.chunk, input=read.text, result=result)


def _result_message(result: ChunkResult) -> jobs_pb2.ChunkResult:
    ranges = [
        jobs_pb2.TargetRange(partition=partition, start=start, end=end)
        for partition, (start, end) in sorted(result.ranges.items())
    ]
    return message_of(jobs_pb2.ChunkResult, result, ranges=ranges)


def _lease_message(granted: Granting, view: JobView) -> jobs_pb2.JobLease:
    target = None if granted.target is None else _target_message(*granted.target)
    return jobs_pb2.JobLease(
        job=job_message(view), lease_ms=granted.lease_ms, staging=granted.staging, target=target
    )


def _target_message(topic: Topic, part: StorageTopic) -> jobs_pb2.JobTarget:
    patterns = [str(pattern) for pattern in topic.patterns]
    return message_of(jobs_pb2.JobTarget, part, topic, topic=topic.name, patterns=patterns)
