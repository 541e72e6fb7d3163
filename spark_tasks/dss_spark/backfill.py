"""Backfills on Spark: rows of files as records of a topic, by the rules of the local engine.

Before the first chunk is published all rows are read, or sorted, once. If a row cannot become a
record, or the target does not own its subject, the job ends with nothing published.

Invariant: each chunk gives the same records as in the local engine, so either engine may continue a
job of the other.
"""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dss_bulk.backfill_work import BackfillParams, rows_refused, set_aside
from dss_bulk.inputs import Inputs
from dss_bulk.limits import REJECTS_MAX
from dss_bulk.rejects import Reject
from dss_bulk.work import ChunkDone
from dss_client.job_values import Granted, JobChunk
from dss_core.errors import SubjectOutsideTopic
from dss_spark.rows_source import is_parquet, read_rows
from dss_spark.selection import none_of
from dss_spark.spooled import read_spooled, spool
from dss_spark.staging import Stage, stage
from dss_spark.work import OnSpark, target_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BackfillOnSpark:
    """Reads rows, makes records, stages them."""

    def __init__(self, on: OnSpark, granted: Granted) -> None:
        self._granted = granted
        self._params = BackfillParams.from_json(granted.job.params)
        self._inputs = Inputs(self._params.files, self._params.rule)
        self._on = on
        self._target = target_of(granted)
        self._spooled = granted.staging / "spooled"
        self._prepared: asyncio.Task[None] | None = None

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Stage the records of its rows.

        Raises:
            InputRefused: a file was changed.
            RowsRefused: a row cannot become a record, and there is no side file.
            SubjectOutsideTopic: the target does not own a subject.
            DssError: it failed.
        """
        if self._prepared is None or _has_failed(self._prepared):
            preparing = self._on.run(self._prepare)
            self._prepared = asyncio.create_task(preparing, name="rows are looked through")
        await asyncio.shield(self._prepared)
        return await self._on.run(lambda: self._staged(chunk))

    def stop(self) -> None:
        """End all work on the cluster."""
        self._on.stop()

    def discard(self) -> None:
        """Do nothing: the daemon sweeps staged files, and rejects are of use."""

    @property
    def _is_spooled(self) -> bool:
        """Whether the rows are read once, before all chunks."""
        params = self._params
        return bool(params.rule.order) or not all(is_parquet(each.path) for each in params.files)

    def _all_rows(self) -> "DataFrame":
        now_us = self._granted.job.created_at_ms * 1_000
        return read_rows(self._on.spark, self._params, now_us, 0, self._inputs.rows)

    def _prepare(self) -> None:
        self._inputs.require_unchanged()
        frame = self._all_rows()
        if self._is_spooled:
            spool(frame, self._spooled, len(self._params.rule.order))
            frame = self._on.spark.read.parquet(str(self._spooled))
        if self._granted.job.published == 0:
            self._look_through(frame)

    def _look_through(self, frame: "DataFrame") -> None:
        """Make sure that no chunk will be refused."""
        assert self._granted.target is not None
        patterns = self._granted.target.patterns
        counts: Any = frame.selectExpr(
            "count(reject) AS rejects",
            "min_by(struct(file, row, reject), at) FILTER (WHERE reject IS NOT NULL) AS first",
            f"any_value(subject) FILTER (WHERE {none_of(patterns)}) AS outside",
        ).first()
        if counts.outside is not None:
            topic = self._params.rule.topic
            raise SubjectOutsideTopic(
                subject=counts.outside, topic=topic, patterns=", ".join(patterns)
            )
        if counts.rejects > (0 if self._params.rejects is None else REJECTS_MAX):
            first = counts["first"]
            path = self._params.files[first.file].path
            raise rows_refused([Reject(path, first.row, first.reject)], counts.rejects)

    def _staged(self, chunk: JobChunk) -> ChunkDone:
        self._inputs.require_unchanged()
        span = json.loads(chunk.input)
        plan = Stage(
            self._granted.staging,
            self._granted.staged_for(chunk.number),
            self._target,
            self._on.answer(chunk.number),
            paths=tuple(file.path for file in self._params.files),
        )
        frame = self._rows(span["start"], span["end"])
        done = stage(frame, plan, number="at", order=("at",), at_once=self._on.at_once)
        if done.rejects:
            if self._params.rejects is None:
                raise rows_refused(done.rejects)
            set_aside(Path(self._params.rejects), chunk.number, done.rejects)
        output = json.dumps({"records": done.records, "rejects": len(done.rejects)})
        return ChunkDone(done.files, output, done.records)

    def _rows(self, start: int, end: int) -> "DataFrame":
        if self._is_spooled:
            return read_spooled(self._on.spark, self._spooled, start, end)
        now_us = self._granted.job.created_at_ms * 1_000
        return read_rows(self._on.spark, self._params, now_us, start, end)


def _has_failed(task: "asyncio.Task[None]") -> bool:
    """Whether a failure is worth another try: a disk that was full may have room by now."""
    return task.done() and (task.cancelled() or task.exception() is not None)
