"""A checksum for every row. SQLite has none: a flipped bit in a value reads as another value.

::

    checksum = xxh3_64(words, bytes; seed = xxh3_64 of the table's name) - 2**63

    words, i64 little-endian, column by column in the order of their names, the version among them
        int, bool          its value
        int or absent      1 and its value; absent: 0 and 0
        str, bytes         its length in bytes, str as UTF-8; absent: -1
    bytes: those of the str and bytes columns, in the same order

So two different rows of a table never give the same bytes, and a value whose type is not its
column's has no checksum. The order in which columns were added to a table does not matter.

Invariant: pure; must not know SQL. The functions are compiled for each table, as `dataclasses`
does it: a commit of thousands of rows has 2 µs for each, and a loop over columns takes half of it.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from xxhash import xxh3_64_intdigest

CHECKSUM_FUNCTIONS_MAX = 64
"""For how many tables the compiled functions are kept. One takes 0.2 ms; tests open thousands of
stores."""


CHECKSUM = "checksum"
"""The column that has the checksum."""

UNFIT = (struct.error, TypeError, AttributeError)
"""The errors of a checksum for a value of another type than its column, or beyond 64 bits."""


_HALF = 1 << 63
"""SQLite's integers are signed."""


Stored = Callable[[Any, int], tuple[Any, ...]]


class Unsound(Exception):
    """SQLite finds no damage in the database, but it is not as it was written."""

    @classmethod
    def row(cls, table: str, key: Sequence[object]) -> "Unsound":
        """A row whose values are not those that were written."""
        named = ", ".join(map(repr, key))
        return cls(f"the row ({named}) of table {table} is not as it was written")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: a field of a kind, or the version."""

    name: str
    type: type
    optional: bool


def checksum_of(table: str, columns: Sequence[Column]) -> Callable[..., int]:
    """A function that takes the values of a row, in column order, and returns its checksum.

    It raises one of `UNFIT` for values that are not of their columns' types.
    """
    head = f"def checksum({', '.join(_values(columns))}):"
    source = [head, *_encoded(columns), f"    return {_summed(columns)}"]
    compiled: Callable[..., int] = _scope(table, columns, source)["checksum"]
    return compiled


@lru_cache(CHECKSUM_FUNCTIONS_MAX)
def is_sound_of(table: str, columns: tuple[Column, ...]) -> Callable[..., bool]:
    """A function that takes the values of a row and its stored checksum, and tells if they match.

    It raises as `checksum_of` does.
    """
    head = f"def is_sound({', '.join(_values(columns))}, checksum):"
    source = [head, *_encoded(columns), f"    return {_summed(columns)} == checksum"]
    compiled: Callable[..., bool] = _scope(table, columns, source)["is_sound"]
    return compiled


def stored_of(table: str, columns: Sequence[Column]) -> Stored:
    """A function that takes a row and its version, and returns its values and checksum to store.

    The columns are the fields of the row, and then the version. It raises one of `UNFIT` for
    values that are not of their columns' types.
    """
    *fields, version = _values(columns)
    taken = [f"    {to} = row.{column.name}" for to, column in zip(fields, columns, strict=False)]
    source = [f"def stored(row, {version}):", *taken, *_encoded(columns)]
    result = f"    return ({', '.join([*fields, version])}, {_summed(columns)})"
    compiled: Stored = _scope(table, columns, [*source, result])["stored"]
    return compiled


def _values(columns: Sequence[Column]) -> list[str]:
    return [f"v{at}" for at in range(len(columns))]


def _encoded(columns: Sequence[Column]) -> list[str]:
    """Statements that give each str and bytes column its bytes."""
    return [
        f"    b{at} = {_bytes(at, column)}"
        for at, column in _in_order(columns)
        if not _is_word(column)
    ]


def _bytes(at: int, column: Column) -> str:
    plain = f"v{at}.encode()" if column.type is str else f"v{at}"
    return f'b"" if v{at} is None else {plain}' if column.optional else plain


def _summed(columns: Sequence[Column]) -> str:
    words = ", ".join(word for at, column in _in_order(columns) for word in _words(at, column))
    parts = [f" + b{at}" for at, column in _in_order(columns) if not _is_word(column)]
    return f"digest(pack({words}){''.join(parts)}, seed) - {_HALF}"


def _words(at: int, column: Column) -> list[str]:
    if not _is_word(column):
        return [f"-1 if v{at} is None else len(b{at})" if column.optional else f"len(b{at})"]
    if column.optional:
        return [f"v{at} is not None", f"0 if v{at} is None else v{at}"]
    return [f"v{at}"]


def _in_order(columns: Sequence[Column]) -> list[tuple[int, Column]]:
    return sorted(enumerate(columns), key=lambda one: one[1].name)


def _is_word(column: Column) -> bool:
    return column.type in (int, bool)


def _scope(table: str, columns: Sequence[Column], source: list[str]) -> dict[str, Any]:
    """Run a generated source; returns its names. The source depends on the columns alone."""
    words = sum(len(_words(at, column)) for at, column in enumerate(columns))
    scope: dict[str, Any] = {
        "digest": xxh3_64_intdigest,
        "pack": struct.Struct(f"<{words}q").pack,
        "seed": xxh3_64_intdigest(table.encode()),
    }
    exec("\n".join(source), scope)
    return scope
