"""Staging on Spark: records are routed, shuffled and sorted natively; tasks write staged files.

::

    frame ──partition_sql──► repartitionById ──► sortWithinPartitions ──► a staged file a task
                                                                             │ its name
    driver ◄── names, in the order of the tasks ── commit() in a process of Spark

A task writes a file whose name was drawn for this attempt (`dss_core.staged`), so attempts that are
killed, repeated or speculated never meet; what Spark names at the end are the files of the attempts
that counted. Nothing is published here: the driver commits the files with its lease.

Invariant: each partition of the target is written by one task, in the order of ``order``; so the
order of each key is that of ``order`` too. A record that breaks a rule ends the work at once, with
its condition: Spark would try it again, and say it in forty lines of a trace.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from dss_bulk.copies import CopyRule, copied
from dss_bulk.rows import Reject
from dss_bulk.staging import Target
from dss_bulk.tables import columns_of
from dss_core.errors import DssError
from dss_core.routing import Router
from dss_core.staged import StagedFile, StagedFor, StagedWriter
from dss_spark.answers import read_answer, write_answer
from dss_spark.limits import STAGED_BATCH_BYTES, STAGING_TASKS_MAX
from dss_spark.routing import HASH as HASH_SQL
from dss_spark.routing import partition_sql
from dss_spark.tables import HASH, as_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMAT = "dss_stage"
PARTITION = "__partition"
RECORD_COLUMNS = ("subject", "key", "payload", "headers", "timestamp_us")
REJECT_COLUMNS = ("file", "row", "reject")
COPY_COLUMNS = ("stream", "offset", "append_time_us")
"""What copies are made of besides."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What a chunk is staged as, and where to."""

    directory: Path
    staged_for: StagedFor
    target: Target
    answer: Path
    """Where the driver reads which files there are."""
    copy: CopyRule | None = None
    """The records are copies by this rule, and get their origin headers."""
    paths: tuple[str, ...] = ()
    """Of the files whose rows the records are made of; rows with a ``reject`` make none."""


@dataclass(frozen=True, slots=True)
class StagedChunk:
    """What was staged."""

    files: Sequence[StagedFile]
    """In the order in which a commit names them."""
    rejects: Sequence[Reject]
    """In the order of files and rows."""

    @property
    def records(self) -> int:
        """Of all files."""
        return sum(file.records for file in self.files)


def stage(
    frame: "DataFrame", plan: Stage, *, number: str, order: Sequence[str], at_once: int
) -> StagedChunk:
    """Stage the records of a frame.

    Args:
        frame: records, and the columns that the next two name.
        plan: what they are staged as.
        number: expression of a number of the record, for those without a key.
        order: columns that put all records in their order.
        at_once: how many tasks run at once.

    Raises:
        DssError: a record breaks a rule.
    """
    from pyspark.sql import functions as f

    target = plan.target
    tasks = min(target.partitions, STAGING_TASKS_MAX, 2 * at_once)
    each = -(-target.partitions // tasks)
    copy_columns = () if plan.copy is None else COPY_COLUMNS
    columns = (*RECORD_COLUMNS, *copy_columns, *(REJECT_COLUMNS if plan.paths else ()))
    keep = dict.fromkeys((*columns, *order))
    hashed = "key_hash" if "key_hash" in frame.columns else HASH_SQL
    routed = frame.withColumn(HASH, f.expr(hashed)).withColumn(
        PARTITION, f.expr(partition_sql(target, HASH, number))
    )
    (
        routed.select(PARTITION, HASH, *keep)
        .repartitionById(tasks, f.expr(f"CAST({PARTITION} DIV {each} AS INT)"))
        .sortWithinPartitions(PARTITION, *order)
        .select(PARTITION, HASH, *columns)
        .write.format(FORMAT)
        .option("plan", _encoded(plan))
        .mode("append")
        .save()
    )
    return _answer(plan.answer)


def _answer(path: Path) -> StagedChunk:
    said = read_answer(path)
    rejects = sorted(Reject(*each) for each in said["rejects"])
    return StagedChunk([StagedFile(**each) for each in said["files"]], rejects)


@dataclass(frozen=True, slots=True)
class _Staged(WriterCommitMessage):
    """What one task has done."""

    file: StagedFile | None
    """None where it had no record."""
    rejects: Sequence[Reject] = ()
    refusal: DssError | None = None


class StageSource(DataSource):
    """The sink, as Spark knows it."""

    @classmethod
    def name(cls) -> str:
        """Its name in `write.format`."""
        return FORMAT

    def writer(self, schema: object, overwrite: bool) -> DataSourceArrowWriter:
        """Of one chunk; made in a process of Spark, and sent to the tasks."""
        return _StageWriter(_decoded(self.options["plan"]))


class _StageWriter(DataSourceArrowWriter):
    def __init__(self, plan: Stage) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Staged:
        """Write the file of one attempt of one task."""
        plan = self._plan
        rejects: list[Reject] = []
        try:
            with StagedWriter(plan.directory, plan.staged_for) as staged:
                for partition, table in by_partition(iterator):
                    records = as_records(_without_rejects(table, plan.paths, rejects))
                    if records.num_rows:
                        made = records if plan.copy is None else copied(records, plan.copy)
                        staged.add(columns_of(made), partition)
                return _Staged(staged.finish() if staged.records else None, rejects)
        except DssError as refusal:
            return _Staged(None, refusal=refusal)

    def commit(self, messages: Sequence[_Staged | None]) -> None:
        """Tell the driver which files there are; this is not its process."""
        done = [message for message in messages if message is not None]
        said = {
            "files": [asdict(each.file) for each in done if each.file is not None],
            "rejects": [reject for each in done for reject in each.rejects],
        }
        refusals = [each.refusal for each in done if each.refusal is not None]
        write_answer(self._plan.answer, said, refusals)

    def abort(self, messages: Sequence[_Staged | None]) -> None:
        """Remove what was written for nothing; the daemon sweeps what is missed here."""
        for message in messages:
            if message is not None and message.file is not None:
                (self._plan.directory / message.file.name).unlink(missing_ok=True)


def by_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """Rows sorted by partition as tables of one partition each, of some megabytes."""
    held: list[pa.RecordBatch] = []
    held_bytes, of = 0, -1
    for batch in batches:
        for partition, part in runs(batch, PARTITION):
            if held and (partition != of or held_bytes >= STAGED_BATCH_BYTES):
                yield of, pa.Table.from_batches(held)
                held, held_bytes = [], 0
            of = partition
            held.append(part)
            held_bytes += part.nbytes
    if held:
        yield of, pa.Table.from_batches(held)


def _without_rejects(table: pa.Table, paths: Sequence[str], rejects: list[Reject]) -> pa.Table:
    """The rows that are records; the others are added to the rejects."""
    if not paths or table["reject"].null_count == table.num_rows:
        return table
    is_record = table["reject"].is_null()
    others = table.filter(pc.invert(is_record)).select(REJECT_COLUMNS).to_pylist()
    rejects += [Reject(paths[each["file"]], each["row"], each["reject"]) for each in others]
    return table.filter(is_record)


def runs(batch: pa.RecordBatch, name: str) -> Iterator[tuple[Any, pa.RecordBatch]]:
    """Consecutive rows with the same value of a column."""
    if not batch.num_rows:
        return
    runs = pc.run_end_encode(batch.column(name))
    start = 0
    for value, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield value, batch.slice(start, end - start)
        start = end


def _encoded(plan: Stage) -> str:
    return json.dumps(asdict(plan), default=str)


def _decoded(text: str) -> Stage:
    said = json.loads(text)
    copy, target = said["copy"], said["target"]
    return Stage(
        directory=Path(said["directory"]),
        staged_for=StagedFor(*said["staged_for"]),
        target=Target(**{**target, "router": Router(target["router"])}),
        answer=Path(said["answer"]),
        copy=None if copy is None else CopyRule(**copy),
        paths=tuple(said["paths"]),
    )
