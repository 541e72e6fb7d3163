"""Records of a backfill, read once, sorted, and kept as Parquet until they are published.

Spark sorts on disk if rows are to be sorted over all files. Files that cannot be read from the
middle (CSV, JSON lines) are read once instead of once for each chunk. The result lies in the job's
staging directory, which the daemon removes when the job has ended or has another driver.

Invariant: the order is total: by the order columns, then file and row, with nulls last. So another
driver that sorts again cuts the same chunks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from dss_bulk.row_groups import rows_of
from dss_spark.limits import SLICE_ROWS
from dss_spark.rows_source import ORDER, SCHEMA_SQL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPOOL_ROW_GROUP_BYTES = 16 << 20
"""The size of a row group: a chunk reads few sorted records besides its own."""


FORMAT = "dss_spooled"


def spool(frame: "DataFrame", folder: Path, order: int) -> None:
    """Sort records by this many order columns, and write them to a folder."""
    from pyspark.sql import functions as f

    keys = [f"{ORDER}{at}" for at in range(order)]
    columns = [f.col(name).asc_nulls_last() for name in (*keys, "file", "row")]
    (
        frame.sort(*columns)
        .drop(*keys)
        .write.option("compression", "zstd")
        .option("parquet.block.size", SPOOL_ROW_GROUP_BYTES)
        # An attempt that found no room has left a part of it.
        .mode("overwrite")
        .parquet(str(folder))
    )


def read_spooled(spark: "SparkSession", folder: Path, start: int, end: int) -> "DataFrame":
    """The records between two positions in the order."""
    return (
        spark.read.format(FORMAT)
        .option("folder", str(folder))
        .option("start", str(start))
        .option("end", str(end))
        .load()
    )


@dataclass(frozen=True, slots=True)
class Piece(InputPartition):
    """Rows of one file."""

    path: str
    start: int
    end: int
    at: int
    """The position, in the order, of its first row."""


class SpooledSource(DataSource):
    """The source, as Spark knows it."""

    @classmethod
    def name(cls) -> str:
        """Its name in `read.format`."""
        return FORMAT

    def schema(self) -> str:
        """The same columns as rows of input files."""
        return SCHEMA_SQL

    def reader(self, schema: object) -> DataSourceReader:
        """The reader of the positions that the options name."""
        return _SpooledReader(self.options)


class _SpooledReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._folder = Path(options["folder"])
        self._start, self._end = int(options["start"]), int(options["end"])

    def partitions(self) -> Sequence[Piece]:
        """Pieces of the files, in the order of their names."""
        files = sorted(self._folder.glob("part-*.parquet"))
        return list(_pieces(files, self._start, self._end))

    def read(self, partition: Piece | None) -> Iterator[pa.RecordBatch]:
        """The records of a piece."""
        if partition is None:
            return
        table = rows_of(Path(partition.path), partition.start, partition.end)
        places = pa.array(range(partition.at, partition.at + table.num_rows), pa.int64())
        table = table.set_column(table.schema.get_field_index("at"), "at", places)
        yield from table.combine_chunks().to_batches()


def _pieces(files: Sequence[Path], start: int, end: int) -> Iterator[Piece]:
    rows = [pq.read_metadata(path).num_rows for path in files]
    firsts = accumulate(rows, initial=0)
    for path, first, count in zip(files, firsts, rows, strict=False):
        low, high = max(start, first), min(end, first + count)
        for at in range(low, high, SLICE_ROWS):
            yield Piece(str(path), at - first, min(at + SLICE_ROWS, high) - first, at)
