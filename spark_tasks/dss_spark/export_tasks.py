"""What a task of an export does: it writes rows that Spark has grouped by hours into files.

Invariant: each hour is written by one task, in the order of its rows.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from dss_bulk.export import folder_of, schema_of, write_part
from dss_spark.names import HOUR
from dss_spark.staged_tasks import runs


def written(batches: Iterator[pa.RecordBatch], run: Path, chunk: int) -> int:
    """Write the files of some hours; returns how many records they have."""
    records = 0
    for hour, rows in _by_hour(batches):
        write_part(run, folder_of(hour), chunk, rows)
        records += rows.num_rows
    return records


def _by_hour(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """Rows sorted by hour, as one table for each hour: no larger than a chunk."""
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
    whole = pa.Table.from_batches(held)
    schema = schema_of(whole.schema.names)
    return whole.select(schema.names).cast(schema)
