"""Rows of a CSV file, those too that have more or fewer values than its head.

Such a row cannot be read, but it is there: without values, and with the reason in a column of its
own. So it counts, and whoever makes records of rows can name it. Invariant: the number of each row
is its place among all rows of the file, empty lines not counted.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.csv

from dss_bulk.limits import REJECTS_MAX
from dss_core.counted import counted

REJECT = "__reject"
"""The column with the reason why a row makes no record; null where there is none."""

_HEAD_ROWS = 1
"""Rows are numbered from 1, and the first of them has the names."""


class _Unreadable:
    """Takes note of rows; too many of them, and the file is not read at all."""

    def __init__(self) -> None:
        self.rows: list[pa.csv.InvalidRow] = []

    def __call__(self, row: pa.csv.InvalidRow) -> Literal["error", "skip"]:
        """Leave a row out."""
        self.rows.append(row._replace(text=""))
        return "error" if len(self.rows) > REJECTS_MAX else "skip"


def read_csv(path: Path) -> pa.Table:
    """All rows; with the column `REJECT` only where a row cannot be read.

    Raises:
        OSError, pa.ArrowException, ValueError: the file cannot be read.
    """
    table, unreadable = _read(path, use_threads=True)
    if not unreadable:
        return table
    # Only one thread after the other knows the numbers.
    return _with_holes(*_read(path, use_threads=False))


def _read(path: Path, *, use_threads: bool) -> tuple[pa.Table, list[pa.csv.InvalidRow]]:
    unreadable = _Unreadable()
    table = pa.csv.read_csv(
        path,
        read_options=pa.csv.ReadOptions(use_threads=use_threads),
        parse_options=pa.csv.ParseOptions(invalid_row_handler=unreadable),
    )
    return table, unreadable.rows


def _with_holes(table: pa.Table, unreadable: Sequence[pa.csv.InvalidRow]) -> pa.Table:
    reasons = {
        row.number - 1 - _HEAD_ROWS: f"it has {counted(row.actual_columns, 'value')}, its file has "
        f"{counted(row.expected_columns, 'column')}"
        for row in unreadable
    }
    read = iter(range(table.num_rows))
    rows = range(table.num_rows + len(reasons))
    places = [None if row in reasons else next(read) for row in rows]
    texts = [reasons.get(row) for row in rows]
    whole = table.take(pa.array(places, pa.int64()))
    return whole.append_column(REJECT, pa.array(texts, pa.utf8()))
