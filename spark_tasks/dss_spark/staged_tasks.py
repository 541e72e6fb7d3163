"""What a task that stages does: it writes rows that Spark has routed and sorted to a staged file.

Invariant: the rows of each partition keep their order. If a record breaks a rule, its condition is
reported, and no file is left.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.copies import copied
from dss_bulk.rejects import Reject
from dss_bulk.tables import columns_of
from dss_core.errors import DssError
from dss_core.staged import StagedFile, StagedWriter
from dss_spark.answers import refusal_of
from dss_spark.limits import STAGED_BATCH_BYTES
from dss_spark.staging import PARTITION, REJECT_COLUMNS, Stage, decoded
from dss_spark.tables import as_records


def staged(batches: Iterator[pa.RecordBatch], plan: str) -> str:
    """Write the file of one attempt of one task; returns the result for the sink."""
    rejects: list[Reject] = []
    try:
        file = _written(batches, decoded(plan), rejects)
    except DssError as refusal:
        return _said(None, (), refusal)
    return _said(file, rejects, None)


def _written(
    batches: Iterator[pa.RecordBatch], plan: Stage, rejects: list[Reject]
) -> StagedFile | None:
    """The file; none if there is no record."""
    with StagedWriter(plan.directory, plan.staged_for) as writer:
        for partition, table in by_partition(batches):
            records = as_records(_without_rejects(table, plan.paths, rejects))
            if records.num_rows:
                made = records if plan.copy is None else copied(records, plan.copy)
                writer.add(columns_of(made), partition)
        return writer.finish() if writer.records else None


def _said(file: StagedFile | None, rejects: Sequence[Reject], refusal: DssError | None) -> str:
    return json.dumps(
        {
            "file": None if file is None else asdict(file),
            "rejects": rejects,
            "refusal": None if refusal is None else refusal_of(refusal),
        }
    )


def by_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """Rows sorted by partition, as tables of one partition and some megabytes each."""
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
