"""Rows of input files as a frame of records: the rules of `dss_bulk.rows`, in tasks of Spark.

::

    Parquet ──► a task a slice of rows ──► records, and rows that make none (``reject`` says why)
    CSV, JSON lines ──► a task a file

Columns: those of a record, ``file`` and ``row`` (its origin), ``at`` (the row's number over all
files), ``reject`` (null for a record), then the order columns as numbers and texts that Spark sorts
like Arrow does.

Invariant: each requested row gives one row, however files are cut into slices; the records are
those of the local engine.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from dss_bulk.backfill_work import BackfillParams
from dss_bulk.inputs import FORMATS, Inputs
from dss_bulk.limits import BACKFILL_ROWS_PER_BATCH
from dss_bulk.row_groups import rows_of
from dss_bulk.rows import RowsMade, records_of
from dss_core.errors import InputRefused
from dss_spark.limits import SLICE_ROWS
from dss_spark.names import RECORD_SQL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "dss_rows"
SCHEMA_SQL = f"{RECORD_SQL}, file INT, row BIGINT, at BIGINT, reject STRING"
ORDER = "__order"
_SCHEMA = pa.schema(
    [
        ("subject", pa.utf8()),
        ("key", pa.binary()),
        ("payload", pa.binary()),
        ("headers", pa.list_(pa.struct([("name", pa.utf8()), ("value", pa.binary())]))),
        ("timestamp_us", pa.int64()),
        ("file", pa.int32()),
        ("row", pa.int64()),
        ("at", pa.int64()),
        ("reject", pa.utf8()),
    ]
)


@dataclass(frozen=True, slots=True)
class Slice(InputPartition):
    """Rows of one file that one task reads."""

    file: int
    start: int
    end: int
    at: int
    """The number, over all files, of its first row."""


def read_rows(
    spark: "SparkSession", params: BackfillParams, now_us: int, start: int, end: int
) -> "DataFrame":
    """The rows between two numbers, counted over all files in their own order."""
    return (
        spark.read.format(FORMAT)
        .option("params", params.to_json())
        .option("now_us", str(now_us))
        .option("start", str(start))
        .option("end", str(end))
        .load()
    )


class RowsSource(DataSource):
    """The source, as Spark knows it."""

    @classmethod
    def name(cls) -> str:
        """Its name in `read.format`."""
        return FORMAT

    def schema(self) -> str:
        """Columns of records, of their origins, and order columns."""
        params = BackfillParams.from_json(self.options["params"])
        return ", ".join([SCHEMA_SQL, *_order_sql(params)])

    def reader(self, schema: object) -> DataSourceReader:
        """The reader of the rows that the options name."""
        return _RowsReader(self.options)


class _RowsReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._params = BackfillParams.from_json(options["params"])
        self._now_us = int(options["now_us"])
        self._start, self._end = int(options["start"]), int(options["end"])

    def partitions(self) -> Sequence[Slice]:
        """Slices of files; a file that must be read as a whole is one slice."""
        return list(slices(self._params, self._start, self._end))

    def read(self, partition: Slice | None) -> Iterator[pa.RecordBatch]:
        """The records and rejects of a slice."""
        if partition is None:
            return
        params = self._params
        # Rows come in the order of the files; whoever sorts them sorts the records.
        rule = replace(params.rule, order=())
        paths = [file.path for file in params.files]
        for at, rows in _batches(params, partition):
            yield from _out(records_of(rows, paths, rule, self._now_us), rows, at, params)


def slices(params: BackfillParams, start: int, end: int) -> Iterator[Slice]:
    """The slices of the rows between two numbers."""
    first = 0
    for number, file in enumerate(params.files):
        low, high = max(start, first), min(end, first + file.rows)
        step = SLICE_ROWS if is_parquet(file.path) else max(1, file.rows)
        for at in range(low, high, step):
            yield Slice(number, at - first, min(at + step, high) - first, at)
        first += file.rows


def is_parquet(path: str) -> bool:
    """Whether reading can start in the middle of a file."""
    return FORMATS.get(Path(path).suffix.lower()) == "parquet"


def _batches(params: BackfillParams, part: Slice) -> Iterator[tuple[int, pa.Table]]:
    """Rows with their file and number, and the position of the first of them."""
    file = params.files[part.file]
    if is_parquet(file.path):
        for start in range(part.start, part.end, BACKFILL_ROWS_PER_BATCH):
            end = min(start + BACKFILL_ROWS_PER_BATCH, part.end)
            rows = rows_of(Path(file.path), start, end)
            yield part.at + start - part.start, _numbered(rows, part.file, start)
        return
    alone = Inputs([file], params.rule, sorts=False)
    at = part.at
    for rows in alone.batches(part.start, part.end):
        yield (
            at,
            _numbered(rows.drop_columns(["__file", "__row"]), part.file, part.start + at - part.at),
        )
        at += rows.num_rows


def _numbered(rows: pa.Table, file: int, first: int) -> pa.Table:
    numbers = pa.array(range(first, first + rows.num_rows), pa.int64())
    files = pa.repeat(pa.scalar(file, pa.int32()), rows.num_rows)
    return rows.append_column("__file", files).append_column("__row", numbers)


def _out(
    made: RowsMade, rows: pa.Table, at: int, params: BackfillParams
) -> Iterator[pa.RecordBatch]:
    """Records and rejects as batches of the source's schema."""
    first = rows["__row"][0].as_py()
    reasons = {reject.row - first: reject.reason for reject in made.rejects}
    kept = [place for place in range(rows.num_rows) if place not in reasons]
    order = _order_columns(rows, params)
    for places, table in (
        (kept, _values(made.records)),
        (list(reasons), _no_values(len(reasons))),
    ):
        taken = pa.array(places, pa.int64())
        texts = [reasons.get(place) for place in places]
        columns = [
            *table,
            rows["__file"].take(taken),
            rows["__row"].take(taken),
            pc.add(taken, at),
            pa.array(texts, pa.utf8()),
        ]
        whole = pa.Table.from_arrays(columns, schema=_SCHEMA)
        for name, column in order.items():
            whole = whole.append_column(name, column.take(taken))
        yield from whole.combine_chunks().to_batches()


def _values(records: pa.Table) -> list[pa.Array]:
    """The columns of records, in Spark's types."""
    subjects = records["subject"].cast(pa.utf8())
    lists = pa.array([[]] * records.num_rows, _SCHEMA.field("headers").type)
    return [subjects, records["key"], records["payload"], lists, records["timestamp_us"]]


def _no_values(rows: int) -> list[pa.Array]:
    return [pa.nulls(rows, _SCHEMA.field(at).type) for at in range(5)]


def _order_columns(rows: pa.Table, params: BackfillParams) -> dict[str, pa.ChunkedArray]:
    """The order columns in types that Spark sorts in the same order."""
    return {
        f"{ORDER}{at}": _sortable(rows[name], params)[1]
        for at, name in enumerate(params.rule.order)
    }


def _order_sql(params: BackfillParams) -> list[str]:
    if not params.rule.order:
        return []
    filled = next(number for number, file in enumerate(params.files) if file.rows)
    head = next(_batches(params, Slice(filled, 0, 1, 0)))[1]
    return [
        f"{ORDER}{at} {_sortable(head[name], params)[0]}"
        for at, name in enumerate(params.rule.order)
    ]


def _sortable(column: pa.ChunkedArray, params: BackfillParams) -> tuple[str, pa.ChunkedArray]:
    """A type of Spark, and values of it that sort like the given ones."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _sortable(column.cast(kind.value_type), params)
    if pa.types.is_decimal128(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})", column
    for is_one, steps, name in _SORTABLE:
        if is_one(kind):
            for step in steps:
                column = column.cast(step)
            return name, column
    reason = f"its rows cannot be sorted by {', '.join(params.rule.order)}"
    raise InputRefused(file=params.files[0].path, reason=reason)


_SORTABLE: tuple[tuple[Callable[[pa.DataType], bool], tuple[pa.DataType, ...], str], ...] = (
    (pa.types.is_uint64, (pa.decimal128(20, 0),), "DECIMAL(20, 0)"),
    (pa.types.is_integer, (pa.int64(),), "BIGINT"),
    (pa.types.is_boolean, (pa.int64(),), "BIGINT"),
    (pa.types.is_date32, (pa.int32(), pa.int64()), "BIGINT"),
    (pa.types.is_time32, (pa.int32(), pa.int64()), "BIGINT"),
    (pa.types.is_timestamp, (pa.int64(),), "BIGINT"),
    (pa.types.is_date64, (pa.int64(),), "BIGINT"),
    (pa.types.is_time64, (pa.int64(),), "BIGINT"),
    (pa.types.is_floating, (pa.float64(),), "DOUBLE"),
    (pa.types.is_string, (pa.utf8(),), "STRING"),
    (pa.types.is_large_string, (pa.utf8(),), "STRING"),
    (pa.types.is_binary, (pa.binary(),), "BINARY"),
    (pa.types.is_large_binary, (pa.binary(),), "BINARY"),
)
"""Types of columns, the casts that keep their order, and Spark's name of the resulting type."""
