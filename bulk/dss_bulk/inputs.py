"""The files of a backfill: Parquet, CSV and JSON lines as one sequence of rows.

The order is that of the files, row after row, or that of the order columns; chunks are runs of it,
so a chunk's content follows from the files alone. The manifest has sizes and times of the files,
and they are checked again, because a changed file would shift all later rows.

Invariant: all files have the same columns of the same types, except JSON lines, which have their
own; a row is named by file and number, and an unreadable one is kept with the reason.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

from dss_bulk.csv_rows import REJECT, read_csv
from dss_bulk.json_rows import LINE, read_json_lines
from dss_bulk.limits import BACKFILL_ROWS_PER_BATCH
from dss_bulk.row_rule import RowRule
from dss_bulk.rows import OWN
from dss_bulk.typed import arrow_type
from dss_core.errors import InputRefused

COLUMNS_SHOWN_MAX = 20
"""How many column names an error has: people read it, and the daemon takes 4 KiB."""


FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
"""The format, by the end of a file's name."""

Read = TypeVar("Read")

Look = Callable[[pa.Table, Sequence[str]], None]
"""Called with rows, and the paths of their files."""


class InputFile(NamedTuple):
    """A file as it was when the job was planned."""

    path: str
    bytes: int
    modified_ns: int
    rows: int


class Inputs:
    """The files of a backfill as one sequence of rows, counted from 0."""

    def __init__(self, files: Sequence[InputFile], rule: RowRule, *, sorts: bool = True) -> None:
        self.files = tuple(files)
        self._rule = rule
        self._sorts = sorts and bool(rule.order)
        self.row_bytes = 0
        """The average unpacked bytes of a row where rows are longest; known after a look."""
        self._sorted: pa.Table | None = None
        self._last: tuple[int, pa.Table] | None = None
        """The file that was read last: the chunks take their rows from it one after the other."""

    @classmethod
    def looked_at(cls, paths: Sequence[Path], rule: RowRule, look: Look | None = None) -> Self:
        """Look at every file and, with ``look``, at each row.

        Args:
            paths: of the files, in their order.
            rule: the columns that they must have, and the order of rows.
            look: called with all rows, as `batches` gives them, and the paths that ``__file``
            counts.

        Raises:
            InputRefused: one cannot be read, has other columns or types than the first, or lacks
                a column that is named; or rows cannot be ordered.
        """
        inputs = cls((), rule)
        schema: pa.Schema | None = None
        for path in paths:
            own, rows, table = _head(path, rule)
            _require_columns(path, own, rule)
            if schema is not None and not own.equals(schema):
                raise InputRefused(file=path, reason=_difference(schema, own))
            schema = own
            stat = path.stat()
            file = InputFile(str(path.resolve()), stat.st_size, stat.st_mtime_ns, rows)
            inputs.files = (*inputs.files, file)
            size = _unpacked_bytes(path) if table is None else stat.st_size
            inputs.row_bytes = max(inputs.row_bytes, size // max(1, rows))
            if table is not None:
                inputs._keep(len(inputs.files) - 1, table)
            if look is not None and not rule.order:
                inputs._show(look, inputs.rows - rows)
        if look is not None and rule.order:
            inputs._show(look, 0)
        return inputs

    def _show(self, look: Look, start: int) -> None:
        paths = [file.path for file in self.files]
        for rows in self.batches(start, self.rows):
            self.row_bytes = max(self.row_bytes, rows.nbytes // rows.num_rows)
            look(rows, paths)

    @property
    def rows(self) -> int:
        """The number of rows of all files."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """The bytes of all files."""
        return sum(file.bytes for file in self.files)

    def require_unchanged(self) -> None:
        """Check that the rows are those of the plan.

        Raises:
            InputRefused: a file was changed, or is gone.
        """
        for file in self.files:
            try:
                stat = Path(file.path).stat()
            except OSError as error:
                raise InputRefused(file=file.path, reason=error.strerror) from error
            if (stat.st_size, stat.st_mtime_ns) != (file.bytes, file.modified_ns):
                raise InputRefused(file=file.path, reason="it was changed since the job was made")

    def batches(self, start: int, end: int) -> Iterator[pa.Table]:
        """Rows in the one order, with the columns ``__file`` and ``__row`` that name their source.

        If ``__reject`` is not null, a row cannot be read.

        Raises:
            InputRefused: a file cannot be read.
        """
        if self._sorts:
            if self._sorted is None:
                self._sorted = self._in_order()
            yield from _cut(self._sorted.slice(start, end - start))
            return
        first = 0
        for number, file in enumerate(self.files):
            low, high = max(start, first), min(end, first + file.rows)
            if low < high:
                yield from _cut(self._read(number).slice(low - first, high - low))
            first += file.rows

    def _in_order(self) -> pa.Table:
        whole = pa.concat_tables([self._read(number) for number in range(len(self.files))])
        keys = [(name, "ascending") for name in (*self._rule.order, "__file", "__row")]
        try:
            return whole.sort_by(keys)
        except pa.ArrowException as error:
            reason = f"its rows cannot be sorted by {', '.join(self._rule.order)}"
            raise InputRefused(file=self.files[0].path, reason=reason) from error

    def _read(self, number: int) -> pa.Table:
        if self._last is not None and self._last[0] == number:
            return self._last[1]
        path = Path(self.files[number].path)
        table = _reading(path, partial(_read_whole, rule=self._rule))
        if table.num_rows != self.files[number].rows:
            raise InputRefused(file=path, reason="it has other rows than when the job was made")
        return self._keep(number, table)

    def _keep(self, number: int, table: pa.Table) -> pa.Table:
        rows = pa.array(range(table.num_rows), pa.int64())
        files = pa.repeat(pa.scalar(number, pa.int32()), table.num_rows)
        table = table.append_column("__file", files).append_column("__row", rows)
        if REJECT not in table.column_names:
            table = table.append_column(REJECT, pa.nulls(table.num_rows, pa.utf8()))
        columns = [name for name in table.column_names if name != REJECT]
        table = table.select([*columns, REJECT])
        self._last = (number, table)
        return table


def size_of(paths: Sequence[Path]) -> int:
    """The bytes of files that exist; faults of the others are reported later."""
    return sum(path.stat().st_size for path in paths if path.exists())


def _head(path: Path, rule: RowRule) -> tuple[pa.Schema, int, pa.Table | None]:
    """The columns of a file, its number of rows, and the rows themselves if they had to be read."""
    if _format(path) == "parquet":
        return *_reading(path, _parquet_head), None
    table = _reading(path, partial(_read_whole, rule=rule))
    columns = [field for field in table.schema if field.name != REJECT]
    return pa.schema(columns), table.num_rows, table


def _parquet_head(path: Path) -> tuple[pa.Schema, int]:
    with pq.ParquetFile(path) as file:
        return file.schema_arrow.remove_metadata(), file.metadata.num_rows


def _unpacked_bytes(path: Path) -> int:
    """The unpacked bytes of a Parquet file."""
    with pq.ParquetFile(path) as file:
        groups = range(file.metadata.num_row_groups)
        return sum(file.metadata.row_group(at).total_byte_size for at in groups)


def _read_whole(path: Path, rule: RowRule) -> pa.Table:
    match _format(path):
        case "parquet":
            return pq.read_table(path, partitioning=None).replace_schema_metadata()
        case "csv":
            return read_csv(path, rule.types)
        case _:
            return pa.json.read_json(path) if rule.types is None else read_json_lines(path, rule)


def _reading(path: Path, read: Callable[[Path], Read]) -> Read:
    try:
        return read(path)
    except OSError as error:
        # Arrow's own errors have a number, and a long sentence around their meaning.
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputRefused(file=path, reason=reason) from error
    except (pa.ArrowException, ValueError) as error:
        reason = (str(error).splitlines() or ["for no reason"])[0].removesuffix(".")[:200]
        raise InputRefused(file=path, reason=f"it cannot be read ({reason})") from error


def _format(path: Path) -> str:
    found = FORMATS.get(path.suffix.lower())
    if path.is_dir():
        raise InputRefused(file=path, reason="it is a folder; name the files in it")
    if found is None:
        names = ", ".join(FORMATS)
        raise InputRefused(file=path, reason=f"its name ends with none of {names}")
    return found


def _require_columns(path: Path, schema: pa.Schema, rule: RowRule) -> None:
    names = schema.names
    (name, times), *_ = Counter(names).most_common(1) or [("", 0)]
    if times > 1:
        raise InputRefused(file=path, reason=f"it names the column {name} twice")
    is_of_lines = _format(path) == "json"
    own = [name for name in OWN if name in names]
    if own and not is_of_lines:
        raise InputRefused(file=path, reason=f"a column must not have the name {own[0]}")
    said = {} if is_of_lines else dict(rule.types or ())
    for name in (*rule.columns, *said):
        if name not in names:
            raise InputRefused(file=path, reason=f"it has no column {name}, but {_some(names)}")
    for name, kind in said.items():
        if (has := schema.field(name).type) != arrow_type(kind):
            raise InputRefused(file=path, reason=f"{name} is {has} in it, and not {kind}")


def _some(names: Sequence[str]) -> str:
    """Some names for people: a file may have thousands."""
    more = len(names) - COLUMNS_SHOWN_MAX
    return ", ".join(names[:COLUMNS_SHOWN_MAX]) + (f" and {more:,} more" if more > 0 else "")


def _difference(first: pa.Schema, other: pa.Schema) -> str:
    if (LINE in first.names) != (LINE in other.names):
        return "one of it and the first file has JSON lines: backfill these by a job of their own"
    for name in first.names:
        if name not in other.names:
            return f"it has no column {name}, which the first file has"
        if first.field(name).type != other.field(name).type:
            return f"{name} is {other.field(name).type}, and {first.field(name).type} in the first"
    more = next((name for name in other.names if name not in first.names), None)
    return "its columns are in another order" if more is None else f"the first file has no {more}"


def _cut(table: pa.Table) -> Iterator[pa.Table]:
    for at in range(0, table.num_rows, BACKFILL_ROWS_PER_BATCH):
        yield table.slice(at, BACKFILL_ROWS_PER_BATCH)
