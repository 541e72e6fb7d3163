"""Rows of a file of JSON lines: each line is an object, and its text is the payload.

Only the values of columns that the rule names are taken from a line, as their own text: ``1.10``
stays ``1.10``, and missing fields are null. A line that is no JSON object, or has a field twice,
cannot be read; it is kept, with the reason.

Invariant: the number of a row is its place among all lines that are not empty.
"""

import codecs
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from dss_bulk.csv_rows import as_said, with_rejects
from dss_bulk.row_rule import RowRule
from dss_bulk.text_files import require_text
from dss_core.errors import InputRefused

LINE = "__line"
"""The column with the text of the line."""

_BLANK = b" \t\r"
_SPACES = re.compile(r"[ \t\r\n]*")


class _UnreadableError(ValueError):
    """Why a line makes no row."""


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _constant(name: str) -> object:
    raise _UnreadableError(f"{name} is no JSON")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _UnreadableError(f"it names {twice} twice")
    return found


_QUICK = json.JSONDecoder(parse_constant=_constant)
_STRICT = json.JSONDecoder(
    parse_constant=_constant, parse_int=_Number, parse_float=_Number, object_pairs_hook=_object
)
"""Finds repeated names, and takes numbers of any length, which Python does not."""
_ENDS = json.JSONDecoder(parse_int=str, parse_float=str)
"""Finds the end of a value."""


def read_json_lines(path: Path, rule: RowRule) -> pa.Table:
    """All rows: the columns that the rule names, and the line if it is the payload.

    Raises:
        InputRefused: it has no JSON lines, no line has a column that is named, or the rows are to
            be sorted by numbers without a given type.
        OSError: the file cannot be read.
    """
    require_text(path)
    lines = [line for each in _content(path).split(b"\n") if (line := each.strip(_BLANK))]
    taken = _Taken(rule)
    for number, line in enumerate(lines):
        taken.take(number, line)
    if taken.missing and len(taken.reasons) < len(lines):
        reason = f"none of its lines has a field {sorted(taken.missing)[0]}"
        raise InputRefused(file=path, reason=reason)
    if unsortable := taken.numbers.intersection(rule.order) - dict(rule.types or ()).keys():
        # Numbers are texts here and would sort wrongly: 10 before 9.
        name = sorted(unsortable)[0]
        reason = f"its {name} is a number: say how it is sorted, as --types {name}=int64"
        raise InputRefused(file=path, reason=reason)
    return with_rejects(_table(lines, taken, rule), taken.reasons)


def _content(path: Path) -> bytes:
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    if content.lstrip(_BLANK + b"\n").startswith(b"["):
        reason = "it is a JSON array; write a line for each of its values"
        raise InputRefused(file=path, reason=reason)
    return content


class _Taken:
    """The values of the rule's columns, taken from lines."""

    def __init__(self, rule: RowRule) -> None:
        self.columns: dict[str, list[str | None]] = {name: [] for name in rule.columns}
        self.missing = set(self.columns)
        """Columns that no line had."""
        self.numbers: set[str] = set()
        """Columns that were a number in some line."""
        self.reasons: dict[int, str] = {}
        """The reason for each unreadable line, by number."""
        self._quoted = [json.dumps(name) for name in self.columns]
        self._whole = set(self.columns) - set(rule.beside_payload)
        """Columns that may have values of any kind."""

    def take(self, number: int, line: bytes) -> None:
        """Take the values of a line; an unreadable one has none, and gets a reason."""
        try:
            text = line.decode()
            fields = self._fields(text)
            if self.missing:
                self.missing.difference_update(fields)
            for name, values in self.columns.items():
                value = fields.get(name)
                # Nearly all values are such texts, which need no further check.
                if type(value) is not str or not value.isascii():
                    value = self._value(value, name, text)
                values.append(value)
        except UnicodeDecodeError:
            self.reasons[number] = "it is not UTF-8"
        except RecursionError:
            self.reasons[number] = "its values are nested too deeply"
        except json.JSONDecodeError as error:
            self.reasons[number] = f"it is no JSON: {error}"
        except _UnreadableError as why:
            self.reasons[number] = str(why)
        else:
            return
        for values in self.columns.values():
            values[number:] = [None]

    def _fields(self, text: str) -> dict[str, object]:
        decoder = _QUICK
        for name in self._quoted:
            if text.count(name) > 1:
                decoder = _STRICT
        try:
            fields, end = decoder.raw_decode(text)
        except (json.JSONDecodeError, _UnreadableError):
            raise
        except ValueError:  # a number of thousands of digits
            fields, end = _STRICT.raw_decode(text)
        if end != len(text):
            raise json.JSONDecodeError("Extra data", text, end)
        if not isinstance(fields, dict):
            raise _UnreadableError("it is no JSON object")
        return fields

    def _value(self, value: object, name: str, text: str) -> str | None:
        match value:
            case None:
                return None
            case bool():
                return "true" if value else "false"
            case int() | float() | _Number():
                self.numbers.add(name)
                # Zeros and fractions can be written in several ways.
                return str(value) if value and isinstance(value, int) else _own_text(text, name)
            case str():
                return _encodable(value, name)
            case _ if name in self._whole:
                return _own_text(text, name)
        kind = "a list" if isinstance(value, list) else "an object"
        raise _UnreadableError(f"its {name} is {kind}, and no text")


def _encodable(value: str, name: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _UnreadableError(f"its {name} holds half a surrogate pair") from error
    return value


def _own_text(text: str, wanted: str) -> str:
    """The text of a field's value in a line that was parsed."""
    at = _end(_SPACES, text, 1)
    while True:
        name, at = _ENDS.raw_decode(text, at)
        start = _end(_SPACES, text, _end(_SPACES, text, at) + 1)
        _, end = _ENDS.raw_decode(text, start)
        if name == wanted:
            return text[start:end]
        at = _end(_SPACES, text, _end(_SPACES, text, end) + 1)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    assert found is not None, "it matches nothing, too"
    return found.end()


def _table(lines: Sequence[bytes], taken: _Taken, rule: RowRule) -> pa.Table:
    said = dict(rule.types or ())
    columns = {}
    for name, values in taken.columns.items():
        text = pa.table({name: pa.array(values, pa.utf8())})[name]
        is_said = name in said and said[name] != "string"
        columns[name] = as_said(name, text, said[name], taken.reasons) if is_said else text
    if rule.payload is None:
        columns[LINE] = pa.array(lines, pa.binary())
    return pa.table(columns)
