"""Publishes one chunk: its rows, and the records that come with them.

Invariant: the commit that makes the records readable holds the chunk's line in the manifest and the
progress of the job, on the condition that neither job nor progress moved meanwhile. The machine of
the job decides beforehand who may publish (`dssd.machines.job`).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from dss_core.errors import JobNotFound, TopicNotFound
from dss_core.staged import StagedFor
from dssd.clock import Clock
from dssd.jobs.frame_check import FrameCheck
from dssd.jobs.held_job import HeldJob, JobChunk, ended, moved
from dssd.jobs.model import ChunkResult, JobKind, Spec
from dssd.jobs.pacing import Pace
from dssd.jobs.staging import Staging, checked_frames
from dssd.log.port import Adopted, BulkLog, Publication, Publish, Rest
from dssd.machines.job import Phase
from dssd.store.job_rows import ChunkRow, JobProgressRow, JobRow
from dssd.store.port import Precondition, PreconditionFailed, Put, Store, VersionIs, Write
from dssd.topics.catalogue import Catalogue
from dssd.topics.model import StorageTopic, Topic

RESTED_READ_BYTES = 256 << 10
"""Piece size of a chunk that is copied with rests: producers wait for reading and checking a piece
too."""


class ChunkPublisher:
    """Of all jobs; keeps nothing."""

    def __init__(
        self, store: Store, catalogue: Catalogue, log: BulkLog, staging: Staging, clock: Clock
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._log = log
        self._staging = staging
        self._clock = clock

    async def publish(self, job: HeldJob, chunk: JobChunk) -> "ChunkRows":
        """Publish a chunk; returns the rows that were committed with it.

        Raises:
            DssError: why nothing was published.
        """
        while True:
            try:
                return await self._published(job, chunk)
            except PreconditionFailed:
                # The job may have been paused and resumed meanwhile: only the present rows count.
                continue

    async def _published(self, job: HeldJob, chunk: JobChunk) -> "ChunkRows":
        rows, conditions = await self._begun(job, chunk)

        def publish(adopted: Adopted) -> Publication:
            return Publication(rows.writes(adopted, self._clock.wall_ms()), conditions)

        if JobKind(rows.row.kind).writes_topic:
            await self._adopt(rows.row, chunk, publish, job.pace)
        else:
            await self._store.commit(*publish(Adopted({}, 0, 0, chunk.records, 0)))
        return rows

    async def _begun(
        self, job: HeldJob, chunk: JobChunk
    ) -> tuple["ChunkRows", Sequence[Precondition]]:
        """The rows to write, and the precondition that they are unchanged."""
        key = (job.row.job_id,)
        row = await self._store.read(JobRow, key)
        progress = await self._store.read(JobProgressRow, key)
        found = await self._store.read(ChunkRow, (*key, chunk.chunk))
        if row is None or progress is None or found is None:
            raise JobNotFound(job=job.row.name)
        if (why := moved(row.row, progress.row, chunk)) is not None:
            raise why
        conditions = [
            VersionIs(JobRow, key, row.version),
            VersionIs(JobProgressRow, key, progress.version),
        ]
        return ChunkRows(self._log, found.row, row.row, progress.row, chunk), conditions

    async def _adopt(self, row: JobRow, chunk: JobChunk, publish: Publish, pace: Pace) -> None:
        topic, part = self.target(row)
        folder = self._staging.of_epoch(row.job_id, chunk.epoch)
        staged_for = StagedFor(row.job_id, chunk.chunk, part.storage_topic_id)
        check = FrameCheck(topic, part)
        frames = partial(checked_frames, folder, row.name, chunk.files, staged_for, check)
        rest: Rest | None = None
        if pace.is_limited:
            frames = partial(frames, read_bytes=RESTED_READ_BYTES)
            rest = partial(_rest, pace, sum(file.bytes for file in chunk.files))
        await self._log.adopt(
            part.storage_topic_id, frames, topic_epoch=topic.topic_epoch, publish=publish, rest=rest
        )

    def target(self, row: JobRow) -> tuple[Topic, StorageTopic]:
        """Where the records of a job go.

        Raises:
            TopicNotFound: it was removed.
        """
        spec = Spec.from_json(row.spec)
        topic = self._catalogue.find(spec.target)
        if topic is None or topic.topic_id != row.target_topic_id:
            raise TopicNotFound(topic=spec.target)
        for part in topic.storage_topics:
            if part.storage_topic_id == row.target_storage_topic_id:
                return topic, part
        raise TopicNotFound(topic=spec.target)


async def _rest(pace: Pace, chunk_bytes: int, piece_bytes: int) -> None:
    await asyncio.sleep(pace.rest_ms(piece_bytes, chunk_bytes) / 1_000)


class ChunkRows:
    """The rows of a chunk that is published."""

    def __init__(
        self, log: BulkLog, found: ChunkRow, row: JobRow, progress: JobProgressRow, chunk: JobChunk
    ) -> None:
        self._log = log
        self._found = found
        self._chunk = chunk
        self.row = row
        self.progress = progress
        self.result: ChunkResult | None = None

    def writes(self, adopted: Adopted, now_ms: int) -> list[Write]:
        """What is committed with the records."""
        chunk, progress = self._chunk, self.progress
        self.result = ChunkResult(
            adopted.ranges, adopted.records, adopted.bytes, adopted.append_time_us, chunk.output
        )
        self.progress = replace(
            progress,
            published=progress.published + 1,
            records=progress.records + adopted.records,
            bytes=progress.bytes + adopted.bytes,
        )
        published = replace(
            self._found,
            epoch=chunk.epoch,
            result=self.result.to_json(),
            published_at_ms=now_ms,
        )
        writes: list[Write] = [Put(published), Put(self.progress)]
        if self.progress.published == self.row.chunks:
            self.row = ended(self.row, Phase.DONE, "", now_ms)
            writes += [Put(self.row), *self._log.release(self.row.job_id)]
        return writes
