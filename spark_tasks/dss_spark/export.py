"""Exports on Spark: the files that the local engine writes, each by the task of its hour.

::

    frame ──► repartitionById by hour ──► sortWithinPartitions ──► part-CHUNK.parquet an hour
                                                                      │ how many rows
    driver ◄── commit() in a process of Spark ◄──────────────────────┘

Invariant: of a chunk each hour is one file of one name, whichever attempt wrote it, so a chunk that
is done again replaces what there was. The run appears by the driver's one rename.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from dss_bulk.export import HOUR_US, SCHEMA, folder_of, write_part
from dss_bulk.export_work import ExportParams, run_of, selection_of
from dss_bulk.work import ChunkDone
from dss_client.job_values import Granted, JobChunk
from dss_spark.answers import read_answer, write_answer
from dss_spark.ranges import ORDER, read_ranges
from dss_spark.staging import runs
from dss_spark.work import OnSpark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMAT = "dss_export"
HOUR = "__hour"


class ExportOnSpark:
    """Reads, selects, writes a file an hour."""

    def __init__(self, on: OnSpark, granted: Granted, endpoint: str) -> None:
        self._on = on
        self._endpoint = endpoint
        self._params = ExportParams.from_json(granted.job.params)
        self._selection = selection_of(granted)
        self._run = run_of(granted, self._params)

    async def chunk(self, chunk: JobChunk, *, last: bool) -> ChunkDone:
        """Write its records; with the last chunk, publish the run."""
        if self._run.published:
            records = await self._on.run(lambda: int(self._read(chunk).count()))
        else:
            records = await self._on.run(lambda: self._written(chunk, last=last))
        output = json.dumps({"records": records, "run": self._run.folder.name})
        return ChunkDone(output=output, records=records)

    def stop(self) -> None:
        """End what runs on the cluster."""
        self._on.stop()

    def discard(self) -> None:
        """Remove what was written and not published."""
        self._run.discard()

    def _read(self, chunk: JobChunk) -> "DataFrame":
        return read_ranges(self._on.spark, self._endpoint, chunk.ranges, self._selection)

    def _written(self, chunk: JobChunk, *, last: bool) -> int:
        frame = self._read(chunk)
        plan = Plan(self._run.unfinished, chunk.number, self._on.answer(chunk.number))
        self._run.begin()
        records = write(frame, plan, self._on.at_once)
        if last:
            self._run.discard_if_empty()
            self._run.publish(self._params.ends)
        return records


@dataclass(frozen=True, slots=True)
class Plan:
    """What is written of a chunk."""

    run: Path
    chunk: int
    answer: Path


def write(frame: "DataFrame", plan: Plan, at_once: int) -> int:
    """Write the records of a frame, a file an hour; how many there were."""
    from pyspark.sql import functions as f

    (
        frame.withColumn(HOUR, f.expr(f"append_time_us DIV {HOUR_US}"))
        .repartitionById(2 * at_once, f.expr(f"CAST(pmod({HOUR}, {2 * at_once}) AS INT)"))
        .sortWithinPartitions(HOUR, *ORDER)
        .select(HOUR, *SCHEMA.names)
        .write.format(FORMAT)
        .option("run", str(plan.run))
        .option("chunk", str(plan.chunk))
        .option("answer", str(plan.answer))
        .mode("append")
        .save()
    )
    return int(read_answer(plan.answer)["records"])


@dataclass(frozen=True, slots=True)
class _Written(WriterCommitMessage):
    records: int


class ExportSink(DataSource):
    """The sink, as Spark knows it."""

    @classmethod
    def name(cls) -> str:
        """Its name in `write.format`."""
        return FORMAT

    def writer(self, schema: object, overwrite: bool) -> DataSourceArrowWriter:
        """Of one chunk."""
        said = self.options
        return _ExportWriter(Plan(Path(said["run"]), int(said["chunk"]), Path(said["answer"])))


class _ExportWriter(DataSourceArrowWriter):
    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Written:
        """Write the files of some hours."""
        records = 0
        for hour, rows in _by_hour(iterator):
            write_part(self._plan.run, folder_of(hour), self._plan.chunk, rows)
            records += rows.num_rows
        return _Written(records)

    def commit(self, messages: Sequence[_Written | None]) -> None:
        """Tell the driver how many there were; this is not its process."""
        records = sum(message.records for message in messages if message is not None)
        write_answer(self._plan.answer, {"records": records}, ())

    def abort(self, messages: Sequence[_Written | None]) -> None:
        """What was written is of the same name when it is written again."""


def _by_hour(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """Rows sorted by hour as one table an hour: no more than a chunk has."""
    held: list[pa.RecordBatch] = []
    of = 0
    for batch in batches:
        for hour, part in runs(batch, HOUR):
            if held and hour != of:
                yield of, _rows(held)
                held = []
            of = hour
            held.append(part)
    if held:
        yield of, _rows(held)


def _rows(held: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(held).select(SCHEMA.names).cast(SCHEMA)
