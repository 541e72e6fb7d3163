"""Rows of a CSV file, including those that cannot be read.

Each value is the text of the file, or null if there is nothing between two commas; a type only if
the user gives one. A row cannot be read if it has more or fewer values than the head, or a value
that is not UTF-8 or not of its type. It is kept, with the reason in a column of its own, so it is
counted and can be named.

Invariant: the number of a row is its place among all rows of the file, not counting empty lines.
"""

import csv
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.csv

from dss_bulk.limits import REJECTS_MAX
from dss_bulk.text_files import require_text
from dss_bulk.typed import Types, arrow_type, converted
from dss_core.counted import counted
from dss_core.errors import InputRefused

CSV_BLOCK_BYTES_USUAL = 1 << 20
"""How much of a CSV file is parsed at once, as by Arrow's default. A longer row needs a larger
block."""

CSV_BLOCK_BYTES_MAX = (1 << 31) - 1
"""The largest block of Arrow, so a longer row cannot be read."""


REJECT = "__reject"
"""The column with the reason why a row makes no record; null if it makes one."""

_HEAD_ROWS = 1
"""Rows are numbered from 1, and the first row has the names."""

_TOO_LONG = "straddling object"
"""Arrow's message for a row that is longer than a block."""

_NO_ROWS = "Empty CSV file or block"
"""Arrow's message for a head that no line ends."""


class _Unreadable:
    """Notes unreadable rows; with too many of them, the file is refused."""

    def __init__(self) -> None:
        self.rows: list[pa.csv.InvalidRow] = []
        self.last_text = ""

    def __call__(self, row: pa.csv.InvalidRow) -> Literal["error", "skip"]:
        """Leave a row out."""
        self.last_text = row.text
        self.rows.append(row._replace(text=""))
        return "error" if len(self.rows) > REJECTS_MAX else "skip"


def read_csv(path: Path, types: Types | None = ()) -> pa.Table:
    """All rows; with the column `REJECT` only if a row cannot be read.

    Args:
        path: of the file.
        types: of columns that are not text; None guesses all types, as older jobs did.

    Raises:
        InputRefused: it is no CSV.
        OSError, pa.ArrowException, ValueError: the file cannot be read.
    """
    require_text(path)
    names = None if types is None else names_in(path)
    table, unreadable = _in_blocks(path, names, use_threads=True)
    reasons: dict[int, str] = {}
    if unreadable.rows:
        # Row numbers are known only if one thread parses.
        table, unreadable = _in_blocks(path, names, use_threads=False)
        reasons = {row.number - 1 - _HEAD_ROWS: _ragged(row) for row in unreadable.rows}
        table = _with_holes(table, reasons)
    if names is not None:
        _require_closed(path, table, unreadable if table.num_rows - 1 in reasons else None)
        table = _of_types(table, dict(types or ()), reasons)
    return with_rejects(table, reasons)


def with_rejects(table: pa.Table, reasons: Mapping[int, str]) -> pa.Table:
    """The table, with the reason beside each row that cannot be read, if there is any."""
    if not reasons:
        return table
    texts = [reasons.get(row) for row in range(table.num_rows)]
    return table.append_column(REJECT, pa.array(texts, pa.utf8()))


def names_in(path: Path) -> list[str]:
    """The names in the first line that is not empty.

    Raises:
        InputRefused: there is none, or it is not UTF-8.
    """
    # Bytes after the line are read along, and need not be UTF-8.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        try:
            names = next((names for names in csv.reader(file) if names), [])
            for name in names:
                name.encode()
        except UnicodeEncodeError as error:
            raise InputRefused(file=path, reason="the names in it are not UTF-8") from error
        except csv.Error as error:
            raise InputRefused(
                file=path, reason=f"the names in it cannot be read: {error}"
            ) from error
    if not names:
        raise InputRefused(file=path, reason="it is empty")
    return names


def _in_blocks(
    path: Path, names: list[str] | None, *, use_threads: bool
) -> tuple[pa.Table, _Unreadable]:
    """The table, read in blocks that are as large as the longest row needs."""
    block = CSV_BLOCK_BYTES_USUAL
    while True:
        unreadable = _Unreadable()
        try:
            return _read(path, names, unreadable, block, use_threads=use_threads), unreadable
        except pa.ArrowInvalid as error:
            if names and _NO_ROWS in str(error):
                nothing = [pa.chunked_array([], pa.binary()) for _ in names]
                return pa.Table.from_arrays(nothing, names=names), unreadable
            if _TOO_LONG not in str(error) or block >= CSV_BLOCK_BYTES_MAX:
                raise
        block = min(block * 16, CSV_BLOCK_BYTES_MAX)


def _read(
    path: Path,
    names: list[str] | None,
    unreadable: Callable[[pa.csv.InvalidRow], Literal["error", "skip"]],
    block_bytes: int,
    *,
    use_threads: bool,
) -> pa.Table:
    convert = pa.csv.ConvertOptions()
    if names is not None:
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
    return pa.csv.read_csv(
        path,
        read_options=pa.csv.ReadOptions(use_threads=use_threads, block_size=block_bytes),
        parse_options=pa.csv.ParseOptions(
            invalid_row_handler=unreadable, newlines_in_values=names is not None
        ),
        convert_options=convert,
    )


def _ragged(row: pa.csv.InvalidRow) -> str:
    has, wants = counted(row.actual_columns, "value"), counted(row.expected_columns, "column")
    return f"it has {has}, its file has {wants}"


def _with_holes(table: pa.Table, missing: Mapping[int, str]) -> pa.Table:
    """The rows at their places, with nulls for missing ones."""
    read = iter(range(table.num_rows))
    rows = range(table.num_rows + len(missing))
    return table.take(
        pa.array([None if row in missing else next(read) for row in rows], pa.int64())
    )


def _require_closed(path: Path, table: pa.Table, last: _Unreadable | None) -> None:
    """Refuse a file that ends within quotes: Arrow takes all later rows for one value."""
    if last is not None:
        text = last.last_text.encode(errors="replace")
    else:
        text = (table.columns[-1][-1].as_py() if table.num_rows else None) or b""
    if b"\n" in text and not _ends_with_quote(path):
        reason = "a value that begins with a quote is not closed, so all rows behind it are in it"
        raise InputRefused(file=path, reason=reason)


def _ends_with_quote(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4))
        return file.read().rstrip(b"\r\n").endswith(b'"')


def _of_types(table: pa.Table, types: Mapping[str, str], reasons: dict[int, str]) -> pa.Table:
    """Bytes as text, or as the type that the user gave; other values get a reason."""
    columns = list(_typed_columns(table, types, reasons))
    return pa.Table.from_arrays(columns, names=table.column_names)


def _typed_columns(
    table: pa.Table, types: Mapping[str, str], reasons: dict[int, str]
) -> Iterator[pa.ChunkedArray]:
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = types.get(name, "string")
        if kind == "binary":
            yield column
            continue
        text, wrong = converted(column, pa.utf8())
        for row in wrong:
            reasons.setdefault(row, f"its {name} is not UTF-8")
        yield as_said(name, text, kind, reasons) if kind != "string" else text


def as_said(
    name: str, text: pa.ChunkedArray, kind: str, reasons: dict[int, str]
) -> pa.ChunkedArray:
    """A column of text as the given type; other values get a reason."""
    values, wrong = converted(text, arrow_type(kind))
    for row in wrong:
        reasons.setdefault(row, f"its {name} is no {kind}: {str(text[row])[:40]}")
    return values
