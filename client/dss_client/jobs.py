"""Bulk jobs: looked at, waited for, and driven; they are made and changed as operations.

    async with client.jobs.drive("replay-7", driver="local engine") as lease:
        async for chunk in lease.open_chunks():
            ...                                   # stage files in lease.granted.staging
            await lease.commit(chunk.number, files)

Invariant: values in, frozen values out; no wire message leaves this module. A commit whose answer
was lost is repeated; the daemon publishes the chunk once.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from dss_api.values import decoded
from dss_client._patience import Patience
from dss_client.job_values import ChunkResult, Granted, Job, JobChunk
from dss_client.limits import CALL_TIMEOUT_S
from dss_core.errors import PASSING, JobNotDone, JobNotInState, OutcomeUnknown
from dss_core.lane import DEAD_LETTERS
from dss_core.staged import StagedFile

if TYPE_CHECKING:
    from dss_api.v1 import jobs_pb2
    from dss_client._connection import Connection

GIVE_UP_REASON_BYTES_MAX = 4 << 10
"""What the daemon takes as the reason of a job that failed."""

JOB_LOOK_S = 0.5
"""How often it is looked whether a job has ended, or is paused no more."""

JOB_RENEWALS_A_LEASE = 4
"""Two that are lost leave time for a third."""

AWAY_REST_S = 0.5
"""Between two tries: a daemon that is there again is asked soon, and one that starts not often."""


TOKEN_BYTES = 16
PAUSED = "paused"

T = TypeVar("T")


class Jobs:
    """Reached as ``client.jobs``."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    async def list(self) -> list[Job]:
        """All jobs, the oldest first.

        Raises:
            Unreachable: the daemon does not answer.
        """
        from dss_api.v1 import jobs_pb2

        reply = await self._connection.ask(self._connection.jobs.List, jobs_pb2.ListJobsRequest())
        return [decoded(each, Job) for each in reply.jobs]

    async def get(self, job: str) -> Job:
        """One job, by its name or number.

        Raises:
            JobNotFound: there is none.
        """
        from dss_api.v1 import jobs_pb2

        reply = await self._connection.ask(
            self._connection.jobs.Get, jobs_pb2.GetJobRequest(job=job)
        )
        return decoded(reply, Job)

    async def chunks(self, job: str, *, after: int | None = None) -> AsyncGenerator[JobChunk, None]:
        """The manifest of a job, in order; with ``after``, what comes behind that number.

        Raises:
            JobNotFound: there is none.
        """
        while page := await _page(self._connection, job, after):
            for chunk in page:
                yield chunk
            after = page[-1].number

    async def ended(self, job: str) -> Job:
        """Wait until a job has ended; returns it as done.

        Raises:
            JobNotFound: there is none.
            JobNotDone: it failed, or was cancelled.
        """
        while True:
            found = await self.get(job)
            if found.state == "done":
                return found
            if found.has_ended:
                reason = found.failure or "no reason was given"
                raise JobNotDone(job=found.name, state=found.state, reason=reason)
            await asyncio.sleep(JOB_LOOK_S)

    @asynccontextmanager
    async def drive(self, job: str, *, driver: str) -> "AsyncGenerator[Lease, None]":
        """Take a job, and keep its lease while the block runs.

        Args:
            job: its name or number.
            driver: who drives it, for people: engine, host, process.

        Raises:
            JobNotFound, JobNotInState: it cannot be driven.
            JobLeased: another driver works on it.
        """
        granted = await self._acquire(job, driver)
        with TemporaryDirectory(prefix="dss-staged-") as own:
            if granted.is_remote:
                granted = replace(granted, staging=Path(own))
            async with self._driven(granted) as lease:
                yield lease

    @asynccontextmanager
    async def _driven(self, granted: Granted) -> "AsyncGenerator[Lease, None]":
        lease, job = Lease(self._connection, granted), granted.job.name
        renewing = asyncio.create_task(lease.renew_again_and_again(), name=f"lease of job {job}")
        try:
            yield lease
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing

    async def _acquire(self, job: str, driver: str) -> Granted:
        from dss_api.v1 import jobs_pb2

        token = secrets.token_bytes(TOKEN_BYTES)
        request = jobs_pb2.AcquireJobRequest(
            job=job, driver=driver, token=token, features=[DEAD_LETTERS]
        )
        try:
            call = self._connection.jobs.Acquire(request, timeout=CALL_TIMEOUT_S)
            return _granted(await self._connection.answer(call))
        except OutcomeUnknown:
            # With the same token it is answered as the first call was.
            call = self._connection.jobs.Acquire(
                request, timeout=CALL_TIMEOUT_S, wait_for_ready=True
            )
            return _granted(await self._connection.answer(call))


class Lease:
    """A job that this process drives; made by `Jobs.drive`."""

    def __init__(self, connection: "Connection", granted: Granted) -> None:
        self._connection = connection
        self.granted = granted
        self.job = granted.job
        """As it stood when the daemon was heard last."""
        self.said = ""
        """The report to operators with the next renewal; set by the driver."""
        self.lost: Exception | None = None
        """Why the driver has to stop, once it has."""
        self._is_lost = asyncio.Event()
        self._heard_s = asyncio.get_running_loop().time()
        """When the daemon was heard last."""

    async def wait_until_lost(self) -> None:
        """Wait until the driver has to stop; `lost` says why."""
        await self._is_lost.wait()

    @property
    def epoch(self) -> int:
        """The number of this driver."""
        return self.granted.job.epoch

    async def open_chunks(self) -> AsyncGenerator[JobChunk, None]:
        """The chunks that are not published, in order; over restarts of the daemon.

        Raises:
            JobNotFound: the job was removed.
            OutcomeUnknown, Unreachable: the daemon was away for too long.
        """
        job = str(self.job.job_id)
        after = self.job.published - 1 if self.job.published else None
        while page := await self._asked_again(partial(_page, self._connection, job, after)):
            for chunk in page:
                yield chunk
            after = page[-1].number

    async def over_restarts(self, act: Callable[[], Awaitable[T]]) -> T:
        """The result of an action that is repeated whenever the connection is lost.

        Raises:
            OutcomeUnknown, Unreachable: the daemon was away for too long, or lost too often.
            DssError: what else the act raises; or the lease is lost, which is why then.
        """

        async def while_held() -> T:
            try:
                return await act()
            except PASSING as gone:
                if self.lost is not None:
                    raise self.lost from gone
                raise

        return await self._asked_again(while_held)

    async def _asked_again(self, ask: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        patience = Patience()
        while True:
            try:
                return await ask()
            except PASSING:
                if not patience.lasts(loop.time(), self._heard_s):
                    raise
            await asyncio.sleep(AWAY_REST_S)

    async def commit(
        self, chunk: int, files: Sequence[StagedFile] = (), *, output: str = "", records: int = 0
    ) -> ChunkResult:
        """Publish a chunk, once; waits while the job is paused, and over a restart of the daemon.

        Args:
            chunk: its number.
            files: what was staged for it, in the order of the records.
            output: what is kept of a chunk that was written elsewhere.
            records: how many that one has; of what is staged the daemon counts them.

        Raises:
            JobFenced: another driver has the job.
            JobNotInState: the job has ended.
            StagedFileRefused: a file is not as it should be; nothing was published.
            OutcomeUnknown, Unreachable: the daemon was away for too long.
        """
        from dss_api.v1 import jobs_pb2

        staged = [
            jobs_pb2.StagedFile(name=file.name, bytes=file.bytes, records=file.records)
            for file in files
        ]
        request = jobs_pb2.CommitIngestRequest(
            job=str(self.job.job_id),
            chunk=chunk,
            epoch=self.epoch,
            files=staged,
            output=output,
            records=records,
        )
        if self.granted.is_remote:
            for file in files:
                await self._asked_again(partial(self._bring, file))
        while True:
            try:
                return await self._asked_again(partial(self._committed, request))
            except JobNotInState as refused:
                if refused.fields["state"] != PAUSED:
                    raise
            await asyncio.sleep(JOB_LOOK_S)

    async def _bring(self, file: StagedFile) -> None:
        from dss_client._staging_upload import bring

        folder, job = self.granted.staging, str(self.job.job_id)
        await bring(self._connection, job, self.epoch, folder, file)

    async def _committed(self, request: "jobs_pb2.CommitIngestRequest") -> ChunkResult:
        # Without a bound: the pace of the job decides. Not "wait for ready": that would wait for a
        # daemon that never comes back.
        return _result(await self._connection.answer(self._connection.jobs.Commit(request)))

    async def give_up(self, reason: str) -> None:
        """End the job as failed: it cannot be done.

        Raises:
            JobFenced, JobNotInState: it is not this driver's any more.
        """
        from dss_api.v1 import jobs_pb2

        # A reason that is too long would be refused, and the job would stay as it is.
        told = reason.encode(errors="replace")[:GIVE_UP_REASON_BYTES_MAX].decode(errors="ignore")
        request = jobs_pb2.GiveUpJobRequest(job=str(self.job.job_id), epoch=self.epoch, reason=told)
        call = self._connection.jobs.GiveUp(request, timeout=CALL_TIMEOUT_S)
        self.job = decoded(await self._connection.answer(call), Job)

    async def renew_again_and_again(self) -> None:
        """Keep the lease until the daemon refuses it; then `lost` says why."""
        from dss_core.errors import DssError

        every_s = self.granted.lease_ms / 1_000 / JOB_RENEWALS_A_LEASE
        while True:
            await asyncio.sleep(every_s)
            try:
                await self.renew()
            except PASSING:
                continue
            except DssError as refused:
                self.lost = refused
                self._is_lost.set()
                return

    async def renew(self) -> Job:
        """Keep the lease once, and see how the job stands.

        Raises:
            JobFenced, JobNotInState, JobNotFound: the driver has to stop.
        """
        from dss_api.v1 import jobs_pb2

        request = jobs_pb2.RenewJobRequest(
            job=str(self.job.job_id), epoch=self.epoch, said=self.said
        )
        call = self._connection.jobs.Renew(request, timeout=CALL_TIMEOUT_S)
        self.job = decoded(await self._connection.answer(call), Job)
        self._heard_s = asyncio.get_running_loop().time()
        return self.job


async def _page(connection: "Connection", job: str, after: int | None) -> Sequence[JobChunk]:
    """What one answer holds of a manifest, behind that number; nothing at its end.

    Raises:
        JobNotFound: there is none.
    """
    from dss_api.v1 import jobs_pb2

    request = jobs_pb2.ListChunksRequest(job=job, after=after)
    reply = await connection.ask(connection.jobs.ListChunks, request)
    return [_chunk(each) for each in reply.chunks]


def _chunk(message: "jobs_pb2.Chunk") -> JobChunk:
    result = _result(message.result) if message.HasField("result") else None
    return decoded(message, JobChunk, result=result)


def _result(message: "jobs_pb2.ChunkResult") -> ChunkResult:
    ranges = {each.partition: (each.start, each.end) for each in message.ranges}
    return decoded(message, ChunkResult, ranges=ranges)


def _granted(message: "jobs_pb2.JobLease") -> Granted:
    is_remote = not message.staging
    return decoded(message, Granted, staging=Path(message.staging), is_remote=is_remote)
