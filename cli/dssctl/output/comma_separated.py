"""CSV: a header of field names, then a row an item, as a spreadsheet reads it.

All columns of the kind, the wide ones too, with the values of the JSON document rather than the
table's: a spreadsheet wants moments, not ages. Invariant: in a file no two values look alike.
Nothing is an empty cell, empty text is ``""``, and bytes that are no text are in base64 in a column
of their own.
"""

import json
import re
from collections.abc import Sequence
from typing import TextIO

from dssctl.output.escape import escaped
from dssctl.output.model import Item, Kind, Section, Value, plain
from dssctl.settings import Settings

_NEEDS_QUOTES = re.compile(r'[",\r\n]|^\s|\s$')


def writer(settings: Settings, kind: Kind, out: TextIO, *, grows: bool) -> "CommaSeparated":
    """Rows of the kind."""
    return CommaSeparated(settings, kind, out)


class CommaSeparated:
    """Writes the header, then rows."""

    def __init__(self, settings: Settings, kind: Kind, out: TextIO) -> None:
        self._headers = settings.headers
        self._kind = kind
        self._out = out
        # A file keeps every byte; a terminal must not obey them.
        self._on_terminal = out.isatty()

    def begin(self) -> None:
        """Write the field names."""
        if self._headers:
            self._write([column.field for column in self._kind.columns])

    def add(self, item: Item) -> None:
        """Write one row."""
        self._write([self._cell(item.get(column.field)) for column in self._kind.columns])

    def end(self) -> None:
        """Nothing stands after the last row."""

    def one(self, item: Item, _sections: Sequence[Section]) -> None:
        """A single thing is a table of one row."""
        self.begin()
        self.add(item)

    def _write(self, cells: Sequence[str | None]) -> None:
        # The library's writer would write nothing and empty text alike.
        self._out.write(",".join("" if cell is None else _quoted(cell) for cell in cells) + "\n")

    def _cell(self, value: Value) -> str | None:
        simple = plain(value)
        if simple is None:
            return None
        if isinstance(simple, bool | dict | list):
            return json.dumps(simple)
        return escaped(str(simple)) if self._on_terminal else str(simple)


def _quoted(cell: str) -> str:
    if cell and not _NEEDS_QUOTES.search(cell):
        return cell
    return '"' + cell.replace('"', '""') + '"'
