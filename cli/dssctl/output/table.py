"""Tables for people: upper-case headers, two spaces between columns, no boxes.

So `awk`, `cut` and eyes read them alike. Widths come from the rows, or from the columns where the
table grows while it is printed. A row is one line, unless a terminal is narrower: then columns in
which nothing stands are left out, and the rest is folded. Colours are added last and never change
the text.
"""

import shutil
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TextIO

from dssctl.output.escape import escaped
from dssctl.output.folding import GAP, Layout, folded, layout_of, places
from dssctl.output.model import NOTHING, Item, Kind, Section, Value
from dssctl.settings import Format, Settings, TimeStyle


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
        # A printed row stays on the terminal, so an age in it would soon be wrong.
        self._style = settings.time or (TimeStyle.ISO if grows else TimeStyle.RELATIVE)
        self._width = shutil.get_terminal_size().columns if out.isatty() else None

    def begin(self) -> None:
        """Print the headers, where the rows need not be known first."""
        if self._grows and self._settings.headers:
            self._print_rows([self._headings()], heading=True)

    def add(self, item: Item) -> None:
        """Take one row."""
        if self._grows:
            self._now_us = self._settings.clock_us()
        row = [column.text(item, self._now_us, self._style) for column in self._columns]
        if self._grows:
            self._print_rows([row], heading=False)
        else:
            self._rows.append(row)

    def end(self) -> None:
        """Print what was collected."""
        if self._grows:
            return
        if self._rows and not self._kind.named:
            self._leave_out_empty()
        headings = [self._headings()] if self._settings.headers else []
        self._print_rows(headings + self._rows, heading=bool(headings))

    def _leave_out_empty(self) -> None:
        """Where a row takes several lines, leave out the columns in which nothing stands."""
        by_column = list(zip(self._headings(), *self._rows, strict=True))
        widths = [max(map(places, texts)) for texts in by_column]
        if len(layout_of(widths, self._width, text_last=not self._columns[-1].right)) == 1:
            return
        kept = [at for at, (_, *texts) in enumerate(by_column) if {*texts} != {NOTHING}]
        self._columns = [self._columns[at] for at in kept]
        self._rows = [[row[at] for at in kept] for row in self._rows]

    def one(self, item: Item, sections: Sequence[Section]) -> None:
        """Print the fields below each other, then each section as a table of its own."""
        columns = [column for column in self._kind.columns if not column.only_csv]
        labels = [column.heading(self._style) for column in columns]
        label_width = max(map(len, labels))
        for column, label in zip(columns, labels, strict=True):
            text = column.text(item, self._now_us, self._style)
            widths = (label_width, places(text))
            shape = _Shape(widths, (False, False), layout_of(widths, self._width, text_last=True))
            self._print_row((label, text), shape, ("bold", column.styles.get(text, "")))
        for section in sections:
            self._out.write(f"\n{escaped(section.field.replace('_', ' ').upper())}\n")
            rows = item[section.field]
            assert isinstance(rows, Sequence)
            self._print_section(section.kind, rows)

    def _print_section(self, kind: Kind | None, rows: Sequence[Value]) -> None:
        if kind is None:
            for row in rows:
                sentence = escaped(str(row))
                widths = (places(sentence),)
                shape = _Shape(widths, (False,), layout_of(widths, self._width, text_last=True))
                self._print_row((sentence,), shape, ("",))
            return
        table = Table(self._settings, kind, self._out, grows=False)
        for row in rows:
            assert isinstance(row, Mapping)
            table.add(row)
        table.end()

    def _headings(self) -> list[str]:
        return [column.heading(self._style) for column in self._columns]

    def _print_rows(self, rows: list[list[str]], *, heading: bool) -> None:
        widths = [column.reserved(self._style) if self._grows else 0 for column in self._columns]
        for row in rows:
            widths = [max(width, places(text)) for width, text in zip(widths, row, strict=True)]
        rights = [column.right for column in self._columns]
        shape = _Shape(widths, rights, layout_of(widths, self._width, text_last=not rights[-1]))
        for index, row in enumerate(rows):
            bold = heading and index == 0
            styles = [
                "bold" if bold else column.styles.get(text, "")
                for column, text in zip(self._columns, row, strict=True)
            ]
            self._print_row(row, shape, styles)

    def _print_row(self, row: Sequence[str], shape: "_Shape", styles: Sequence[str]) -> None:
        for indent, pieces in folded(row, shape.layout):
            cells = [(" " * indent, "")] if indent else []
            for column, text in pieces:
                last = column == pieces[-1][0]
                cells.append((shape.padded(column, text, last=last), styles[column]))
            self._print_line(cells)

    def _print_line(self, cells: list[tuple[str, str]]) -> None:
        if not self._settings.coloured(self._out):
            self._out.write("".join(text for text, _ in cells) + "\n")
            return
        # Loaded for a terminal only: it takes longer than the call to the daemon.
        from rich.console import Console
        from rich.text import Text

        console = Console(file=self._out, force_terminal=True, highlight=False, soft_wrap=True)
        console.print(Text.assemble(*cells))


class _Shape(NamedTuple):
    """How the rows of a table are laid out."""

    widths: Sequence[int]
    rights: Sequence[bool]
    layout: Layout

    def padded(self, column: int, text: str, *, last: bool) -> str:
        """A cell with its gap; the last of a line has none behind it."""
        blank = " " * (self.widths[column] - places(text))
        gap = "" if last else GAP
        if self.rights[column]:
            return blank + text + gap
        return text if last else text + blank + gap
