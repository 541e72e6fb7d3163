"""Values of columns in Python, and their forms in JSON and keys.

A value that Python cannot have does not stop a column: a time with nanoseconds becomes a type of
its own, and a date in the year 10000 is reported by its row. Invariant: total, whatever the type
and the values of a column are; and the same with and without pandas.
"""

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

_NO_VALUE = (ValueError, OverflowError, KeyError, pa.ArrowException)
"""The errors of Python for a value that it cannot have, or a time zone that it does not know."""

_UNITS_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_US_NS = 1_000
_S_NS = 1_000_000_000


class Values(NamedTuple):
    """The values of a column, by row."""

    values: list[Any]
    none: dict[int, str]
    """The reason for each row whose value Python cannot have; the value is None."""


class FineTime(datetime):
    """A moment between two microseconds."""

    rest_ns = 0

    def isoformat(self, sep: str = "T", timespec: str = "microseconds") -> str:
        """With all nine digits."""
        whole = super().isoformat(sep, "microseconds")
        digits = whole.index(".") + 7
        return f"{whole[:digits]}{self.rest_ns:03}{whole[digits:]}"


def values_of(column: pa.ChunkedArray) -> Values:
    """All values of a column."""
    kind = column.type
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        text = _clock if pa.types.is_time(kind) else _span
        unit_ns = _UNITS_NS[kind.unit]
        numbers = [each and int(each) for each in _numbers(column)]
        return Values([None if each is None else text(each * unit_ns) for each in numbers], {})
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return _to_the_ns(column)
    try:
        return Values(column.to_pylist(), {})
    except _NO_VALUE:
        return _one_by_one(column)


def _numbers(column: pa.ChunkedArray) -> list[int | None]:
    numbers: list[int | None] = []
    for chunk in column.chunks:
        numbers += chunk.view(pa.int32() if chunk.type.bit_width == 32 else pa.int64()).to_pylist()
    return numbers


def _one_by_one(column: pa.ChunkedArray) -> Values:
    found = Values([], {})
    for at, value in enumerate(column):
        try:
            found.values.append(value.as_py())
        except _NO_VALUE:
            found.values.append(None)
            found.none[at] = f"has no text: {_shown(value)}"
    return found


def _shown(value: pa.Scalar) -> str:
    try:
        return str(value.cast(pa.utf8()))[:60]
    except _NO_VALUE:
        return f"a {value.type}"


def _to_the_ns(column: pa.ChunkedArray) -> Values:
    numbers = column.cast(pa.int64())
    whole = pc.multiply(pc.divide(numbers, _US_NS), _US_NS)
    if pc.all(pc.equal(numbers, whole)).as_py() in (True, None):
        return values_of(column.cast(pa.timestamp("us", column.type.tz)))
    floors = [None if each is None else each // _US_NS for each in numbers.to_pylist()]
    moments = pa.chunked_array([pa.array(floors, pa.timestamp("us", column.type.tz))])
    found = values_of(moments)
    for at, number in enumerate(numbers.to_pylist()):
        moment = found.values[at]
        if moment is not None and number % _US_NS:
            fine = FineTime.combine(moment.date(), moment.timetz())
            fine.rest_ns = number % _US_NS
            found.values[at] = fine
    return found


def _clock(ns: int) -> str:
    """A time of day as Python writes it, with nine digits if it needs them."""
    seconds, rest = divmod(ns, _S_NS)
    whole = f"{seconds // 3_600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if not rest:
        return whole
    return f"{whole}.{rest:09}" if rest % _US_NS else f"{whole}.{rest // _US_NS:06}"


def _span(ns: int) -> str:
    """A span in ISO 8601, in seconds only, which have a fixed length."""
    seconds, rest = divmod(abs(ns), _S_NS)
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return f"{'-' if ns < 0 else ''}PT{seconds}{fraction}S"


def json_value(value: object) -> object:
    """The JSON form of a value that JSON does not have.

    Raises:
        ValueError: there is none.
    """
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _span(value // timedelta(microseconds=1) * _US_NS)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal | UUID):
        return str(value)
    raise ValueError(f"{type(value).__name__} is no JSON value")


def finite(value: object) -> object:
    """The value, with null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value
