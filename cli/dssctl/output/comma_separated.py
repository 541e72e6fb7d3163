"""CSV: a header of field names, then a row an item, as a spreadsheet reads it.

All columns of the kind, the wide ones too, with the values of the JSON document rather than the
table's: a spreadsheet wants moments, not ages.
"""

import csv
import json
from collections.abc import Sequence
from typing import TextIO

from dssctl.output.escape import escaped
from dssctl.output.model import Item, Kind, Section, Value, plain
from dssctl.settings import Settings


def writer(settings: Settings, kind: Kind, out: TextIO, *, grows: bool) -> "CommaSeparated":
    """Rows of the kind."""
    return CommaSeparated(settings, kind, out)


class CommaSeparated:
    """Writes the header, then rows."""

    def __init__(self, settings: Settings, kind: Kind, out: TextIO) -> None:
        self._headers = settings.headers
        self._kind = kind
        self._rows = csv.writer(out, lineterminator="\n")
        # A file keeps every byte; a terminal must not obey them.
        self._on_terminal = out.isatty()

    def begin(self) -> None:
        """Write the field names."""
        if self._headers:
            self._rows.writerow([column.field for column in self._kind.columns])

    def add(self, item: Item) -> None:
        """Write one row."""
        self._rows.writerow([self._cell(item.get(column.field)) for column in self._kind.columns])

    def end(self) -> None:
        """Nothing stands after the last row."""

    def one(self, item: Item, _sections: Sequence[Section]) -> None:
        """A single thing is a table of one row."""
        self.begin()
        self.add(item)

    def _cell(self, value: Value) -> str:
        simple = plain(value)
        if simple is None:
            return ""
        if isinstance(simple, bool | dict | list):
            return json.dumps(simple)
        return escaped(str(simple)) if self._on_terminal else str(simple)
