"""Reads some rows of a Parquet file, and no row groups without any of them.

Invariant: the rows that were asked for, in order, whatever the file's row groups are.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dss_core.errors import InputRefused


def rows_of(path: Path, start: int, end: int, columns: list[str] | None = None) -> pa.Table:
    """Rows from one number up to another.

    Raises:
        InputRefused: the file cannot be read, or has fewer rows.
    """
    try:
        with pq.ParquetFile(path) as file:
            return _rows_of(file, path, start, end, columns)
    except OSError as error:
        raise InputRefused(file=path, reason=error.strerror or str(error)) from error
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise InputRefused(file=path, reason=f"it cannot be read ({reason})") from error


def _rows_of(
    file: pq.ParquetFile, path: Path, start: int, end: int, columns: list[str] | None
) -> pa.Table:
    if end > file.metadata.num_rows:
        raise InputRefused(file=path, reason="it has other rows than when the job was made")
    groups: list[int] = []
    first = before = 0
    for group in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if before < end and start < before + rows:
            first = first if groups else before
            groups.append(group)
        before += rows
    table = file.read_row_groups(groups, columns=columns)
    return table.slice(start - first, end - start).replace_schema_metadata()
