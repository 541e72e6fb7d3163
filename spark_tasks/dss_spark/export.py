"""Exports on Spark: the files that the local engine writes, each by the task of its hour.

::

    frame ──► repartitionById by hour ──► sortWithinPartitions ──► part-CHUNK.parquet an hour
                                                                      │ how many rows
    driver ◄── commit() in a process of Spark ◄──────────────────────┘

Invariant: each hour of a chunk is one file with one name, whichever attempt wrote it, so a chunk
that is done again replaces its earlier files. The run appears by one rename of the driver.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dss_bulk.export import HOUR_US, schema_of
from dss_bulk.export_work import ExportParams, run_of, selection_of
from dss_bulk.work import ChunkDone
from dss_client.job_values import Granted, JobChunk
from dss_spark.answers import read_answer
from dss_spark.names import EXPORT, HOUR
from dss_spark.ranges import ORDER, read_ranges
from dss_spark.work import OnSpark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ExportOnSpark:
    """Reads, selects, writes a file for each hour."""

    def __init__(self, on: OnSpark, granted: Granted, endpoint: str) -> None:
        self._on = on
        self._endpoint = endpoint
        self._dead_letters = granted.job.dead_letters
        self._params = ExportParams.from_json(granted.job.params)
        self._selection = selection_of(granted)
        self._run = run_of(granted, self._params)

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Write its records; with the last chunk, publish the run."""
        if self._run.published:
            records = await self._on.run(lambda: int(self._read(chunk).count()))
        else:
            records = await self._on.run(lambda: self._written(chunk, last=last))
        if last:
            await asyncio.to_thread(self._run.publish, self._params.noted)
        output = self._run.output(records, last=last)
        return ChunkDone(output=output, records=records)

    def stop(self) -> None:
        """End all work on the cluster."""
        self._on.stop()

    def discard(self) -> None:
        """Remove what was written and not published."""
        self._run.discard()

    def _read(self, chunk: JobChunk) -> "DataFrame":
        return read_ranges(
            self._on.spark,
            self._endpoint,
            chunk.ranges,
            self._selection,
            dead_letters=self._dead_letters,
        )

    def _written(self, chunk: JobChunk, *, last: bool) -> int:
        frame = self._read(chunk)
        plan = ExportPlan(self._run.unfinished, chunk.number, self._on.answer(chunk.number))
        self._run.begin()
        records = write(frame, plan, self._on.at_once)
        if last:
            self._run.discard_if_empty()
        return records


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """The output of a chunk."""

    run: Path
    chunk: int
    answer: Path


def write(frame: "DataFrame", plan: ExportPlan, at_once: int) -> int:
    """Write the records of a frame, a file for each hour; returns how many there were."""
    from pyspark.sql import functions as f

    (
        frame.withColumn(HOUR, f.expr(f"append_time_us DIV {HOUR_US}"))
        .repartitionById(2 * at_once, f.expr(f"CAST(pmod({HOUR}, {2 * at_once}) AS INT)"))
        .sortWithinPartitions(HOUR, *ORDER)
        .select(HOUR, *schema_of(frame.columns).names)
        .write.format(EXPORT)
        .option("run", str(plan.run))
        .option("chunk", str(plan.chunk))
        .option("answer", str(plan.answer))
        .mode("append")
        .save()
    )
    return int(read_answer(plan.answer)["records"])
