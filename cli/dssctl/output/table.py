"""Tables for people: upper-case headers, two spaces between columns, no boxes.

So `awk`, `cut` and eyes read them alike. Widths come from the rows, or from the columns where the
table grows while it is printed. Colours are added last and never change the text.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import TextIO

from dssctl.output.escape import escaped
from dssctl.output.model import Column, Item, Kind, Section, Value
from dssctl.settings import Format, Settings

_GAP = "  "


def writer(settings: Settings, kind: Kind, out: TextIO, *, grows: bool) -> "Table":
    """A table of the kind."""
    return Table(settings, kind, out, grows=grows)


class Table:
    """Collects rows and prints them aligned; a growing one prints each at once."""

    def __init__(self, settings: Settings, kind: Kind, out: TextIO, *, grows: bool) -> None:
        self._settings = settings
        self._kind = kind
        self._out = out
        self._grows = grows
        self._columns = [
            column
            for column in kind.columns
            if not column.only_csv and (settings.format is Format.WIDE or not column.wide)
        ]
        self._rows: list[list[str]] = []
        self._now_us = settings.clock_us()

    def begin(self) -> None:
        """Print the headers, where the rows need not be known first."""
        if self._grows and self._settings.headers:
            self._print_rows([[column.header for column in self._columns]], heading=True)

    def add(self, item: Item) -> None:
        """Take one row."""
        if self._grows:
            self._now_us = self._settings.clock_us()
        row = [column.text(item, self._now_us) for column in self._columns]
        if self._grows:
            self._print_rows([row], heading=False)
        else:
            self._rows.append(row)

    def end(self) -> None:
        """Print what was collected."""
        if self._grows:
            return
        headings = [[column.header for column in self._columns]] if self._settings.headers else []
        self._print_rows(headings + self._rows, heading=bool(headings))

    def one(self, item: Item, sections: Sequence[Section]) -> None:
        """Print the fields below each other, then each section as a table of its own."""
        columns = [column for column in self._kind.columns if not column.only_csv]
        label_width = max(len(column.header) for column in columns)
        for column in columns:
            cells = [(column.header.ljust(label_width) + _GAP, "bold")]
            text = column.text(item, self._now_us)
            cells.append((text, column.styles.get(text, "")))
            self._print_line(cells)
        for section in sections:
            self._out.write(f"\n{escaped(section.field.replace('_', ' ').upper())}\n")
            rows = item[section.field]
            assert isinstance(rows, Sequence)
            self._print_section(section.kind, rows)

    def _print_section(self, kind: Kind | None, rows: Sequence[Value]) -> None:
        if kind is None:
            self._out.writelines(f"{escaped(str(row))}\n" for row in rows)
            return
        table = Table(self._settings, kind, self._out, grows=False)
        for row in rows:
            assert isinstance(row, Mapping)
            table.add(row)
        table.end()

    def _print_rows(self, rows: list[list[str]], *, heading: bool) -> None:
        widths = [column.width if self._grows else 0 for column in self._columns]
        for row in rows:
            widths = [max(width, _cells(text)) for width, text in zip(widths, row, strict=True)]
        for index, row in enumerate(rows):
            bold = heading and index == 0
            self._print_line(
                [
                    (padded, "bold" if bold else column.styles.get(text, ""))
                    for column, text, padded in zip(
                        self._columns, row, _padded(self._columns, row, widths), strict=True
                    )
                ]
            )

    def _print_line(self, cells: list[tuple[str, str]]) -> None:
        if not self._settings.coloured(self._out):
            self._out.write("".join(text for text, _ in cells) + "\n")
            return
        # Loaded for a terminal only: it takes longer than the call to the daemon.
        from rich.console import Console
        from rich.text import Text

        console = Console(file=self._out, force_terminal=True, highlight=False, soft_wrap=True)
        console.print(Text.assemble(*cells))


def _padded(columns: list[Column], row: list[str], widths: list[int]) -> list[str]:
    """The cells with their gaps; the last of a line has none behind it."""
    cells = []
    for index, (column, text, width) in enumerate(zip(columns, row, widths, strict=True)):
        blank = " " * (width - _cells(text))
        last = index == len(row) - 1
        if column.right:
            cells.append(blank + text + ("" if last else _GAP))
        else:
            cells.append(text if last else text + blank + _GAP)
    return cells


def _cells(text: str) -> int:
    """How many places of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )
