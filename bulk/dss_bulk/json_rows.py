"""Rows of a file of JSON lines: each line is an object, and its own text is its payload.

Nothing is made of the line but the values of columns that the rule names, and these are the line's
own text too: ``1.10`` stays ``1.10``, and what a line does not have is not there. A line that is no
JSON object, or names a field twice, cannot be read, but it is there, with the reason.

Invariant: the number of each row is its place among all lines that are not empty.
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
    """Why a line is no row."""


class _Number(str):
    """One as it is written."""

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
"""It finds names that come twice, and takes numbers of any length, which Python does not."""
_ENDS = json.JSONDecoder(parse_int=str, parse_float=str)
"""It finds where a value ends."""


def read_json_lines(path: Path, rule: RowRule) -> pa.Table:
    """All rows: the columns that the rule names, and the line where it is the payload.

    Raises:
        InputRefused: it has no JSON lines, no line has a column that is named, or the rows are to
            be sorted by numbers of which nobody said the type.
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
        # Numbers are not sorted as the texts that they are here: 10 is not before 9.
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
    """What is taken of lines: the values of the columns that a rule names."""

    def __init__(self, rule: RowRule) -> None:
        self.columns: dict[str, list[str | None]] = {name: [] for name in rule.columns}
        self.missing = set(self.columns)
        """Of these: those that no line had."""
        self.numbers: set[str] = set()
        """Of these: those that were a number."""
        self.reasons: dict[int, str] = {}
        """Why lines cannot be read, by number."""
        self._quoted = [json.dumps(name) for name in self.columns]
        self._whole = set(self.columns) - set(rule.beside_payload)
        """Of these: those that may be of any kind."""

    def take(self, number: int, line: bytes) -> None:
        """Take the values of a line; where it cannot be read, it has none, and gets a reason."""
        try:
            text = line.decode()
            fields = self._fields(text)
            if self.missing:
                self.missing.difference_update(fields)
            for name, values in self.columns.items():
                value = fields.get(name)
                # Nearly all are such text, of which nothing else has to be asked.
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
                # Of zeros and fractions there are some ways to write the same.
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
    """What a line, which was read, has as the value of a field."""
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
