"""Checks whether the payloads of rows are certainly valid, without making any.

Making payloads is most of the cost of rows, and a first look throws them away. Invariant: True
means that `dss_bulk.rows` makes each payload without an error, and that each of them, with the
longest key, is within the limit of a record. False means nothing: then they must be made.
"""

import json

import pyarrow as pa
import pyarrow.compute as pc

from dss_bulk.json_rows import LINE
from dss_core.limits import KEY_BYTES_MAX, RECORD_BYTES_MAX

_ESCAPED = 6
"""The most bytes that JSON needs for a byte of text."""

_HEX = 2

_WIDTHS = (
    (pa.types.is_null, 4),
    (pa.types.is_boolean, 5),
    (pa.types.is_integer, 20),
    (pa.types.is_floating, 25),
)
"""The most bytes that JSON needs for a value that always succeeds."""


_TIME_BYTES = 40
_YEARS_S = (-62_135_596_800, 253_402_300_799)
"""The range of Python's times, year 1 to the end of 9999, in seconds since 1970."""
_PER_S = {"s": 1, "ms": 1_000, "us": 1_000_000}
_SECONDS_A_DAY = 86_400


def payloads_fit(rows: pa.Table, payload: str | None) -> bool:
    """Whether the payloads fit: one column, the line of a row, or a JSON object of all columns."""
    if payload is None and LINE in rows.column_names:
        payload = LINE
    if payload is not None:
        size = _bytes_max(rows[payload], text=1, data=1)
        return size is not None and size + KEY_BYTES_MAX <= RECORD_BYTES_MAX
    total = KEY_BYTES_MAX
    for name in rows.column_names:
        if name.startswith("__"):
            continue
        size = _json_bytes_max(rows[name])
        if size is None:
            return False
        total += size + len(json.dumps(name)) + len(":,")
    return total <= RECORD_BYTES_MAX


def _json_bytes_max(column: pa.ChunkedArray) -> int | None:
    for is_such, width in _WIDTHS:
        if is_such(column.type):
            return width
    if pa.types.is_timestamp(column.type) or pa.types.is_date32(column.type):
        return _TIME_BYTES if _python_has(column) else None
    size = _bytes_max(column, text=_ESCAPED, data=_HEX)
    return None if size is None else size + len('""')


def _bytes_max(column: pa.ChunkedArray, *, text: int, data: int) -> int | None:
    """The size of the longest value, each byte of text or data counted so often; None: another
    type."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _longest(column) * text if _is_text(column) else None
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return _longest(column) * data
    return None


def _python_has(times: pa.ChunkedArray) -> bool:
    """Whether each value is a time that Python has: within its years, in microseconds at most."""
    if pa.types.is_date32(times.type):
        numbers, lowest, highest = (
            times.cast(pa.int32()),
            *(each // _SECONDS_A_DAY for each in _YEARS_S),
        )
    elif times.type.unit in _PER_S and times.type.tz in (None, "UTC"):
        numbers = times.cast(pa.int64())
        lowest, highest = (each * _PER_S[times.type.unit] for each in _YEARS_S)
    else:
        return False
    found = pc.min_max(numbers).as_py()
    return found["min"] is None or (lowest <= found["min"] and found["max"] <= highest)


def _longest(column: pa.ChunkedArray) -> int:
    return pc.max(pc.binary_length(column)).as_py() or 0


def _is_text(column: pa.ChunkedArray) -> bool:
    """Whether all values are UTF-8, which a file may claim wrongly."""
    try:
        column.validate(full=True)
    except pa.ArrowException:
        return False
    return True
