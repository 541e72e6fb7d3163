"""Types that a user gives for columns of text, ``n=int64``, in the words of Arrow.

Without a type a value is the text of the file: ``00501`` is not 501. Invariant: a value of another
type is reported by its row, and the others are still converted.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from dss_core.errors import IllegalArgument, InputRefused

Types = tuple[tuple[str, str], ...]
"""Column and type, in the order in which they were given."""

_WIDTHS = ("8", "16", "32", "64")
_PLAIN = {
    *("string", "binary", "bool", "date32", "float32", "float64"),
    *(f"{kind}{width}" for kind in ("int", "uint") for width in _WIDTHS),
}
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, *([\w/+:-]+))?\]")
_DECIMAL = re.compile(r"decimal128\(([0-9]{1,2}), *([0-9]{1,2})\)")
_WORDS = "string, binary, bool, int64, float64, date32, timestamp[us], timestamp[us, UTC]"


def types_given(words: Sequence[str]) -> Types:
    """Each word is ``COLUMN=TYPE``, or a file with one of these in each line.

    Raises:
        IllegalArgument: one is neither, or names a column twice.
        InputRefused: a file cannot be read.
    """
    lines = [line for word in words for line in ([word] if "=" in word else _lines(Path(word)))]
    found: dict[str, str] = {}
    for line in lines:
        column, equals, kind = line.rpartition("=")
        if not equals or column in found:
            rule = "it names a column twice" if equals else "write COLUMN=TYPE"
            raise IllegalArgument(argument=f"the type '{line}'", rule=rule)
        arrow_type(kind)
        found[column] = kind
    return tuple(found.items())


def _lines(path: Path) -> list[str]:
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise InputRefused(file=path, reason=error.strerror) from error
    except UnicodeDecodeError as error:
        raise InputRefused(file=path, reason="it is not UTF-8") from error
    return [line.strip() for line in lines if line.strip()]


def arrow_type(word: str) -> pa.DataType:
    """The type for a word.

    Raises:
        IllegalArgument: there is none.
    """
    if word in _PLAIN:
        return pa.type_for_alias(word)
    if found := _TIMESTAMP.fullmatch(word):
        return pa.timestamp(found[1], found[2])
    if (found := _DECIMAL.fullmatch(word)) and 1 <= int(found[1]) <= 38:
        return pa.decimal128(int(found[1]), int(found[2]))
    rule = f"it is none of {_WORDS}, decimal128(10, 2) and the other widths of these"
    raise IllegalArgument(argument=f"the type '{word}'", rule=rule)


def converted(column: pa.ChunkedArray, kind: pa.DataType) -> tuple[pa.ChunkedArray, list[int]]:
    """The column as that type, and the rows whose values are not of it: these are null."""
    chunks: list[pa.Array] = []
    wrong: list[int] = []
    first = 0
    for chunk in column.chunks:
        chunks.append(_converted(chunk, kind, first, wrong))
        first += len(chunk)
    return pa.chunked_array(chunks, kind), wrong


def _converted(values: pa.Array, kind: pa.DataType, first: int, wrong: list[int]) -> pa.Array:
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        if len(values) == 1:
            wrong.append(first)
            return pa.nulls(1, kind)
    # The error does not say which value it is: halves without an error are converted as they are.
    half = len(values) // 2
    parts = ((values[:half], first), (values[half:], first + half))
    return pa.concat_arrays([_converted(part, kind, at, wrong) for part, at in parts])
