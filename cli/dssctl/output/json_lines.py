"""JSON lines: one item a line, without an envelope, for pipes."""

from collections.abc import Sequence
from typing import TextIO

from dssctl.output.json_document import encoded
from dssctl.output.model import Item, Kind, Section
from dssctl.settings import Settings


def writer(_settings: Settings, _kind: Kind, out: TextIO, *, grows: bool) -> "JsonLines":
    """Lines of the kind."""
    return JsonLines(out)


class JsonLines:
    """Writes each item on its line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def begin(self) -> None:
        """Nothing stands before the first line."""

    def add(self, item: Item) -> None:
        """Write one line."""
        self._out.write(f"{encoded(item)}\n")

    def end(self) -> None:
        """Nothing stands after the last line."""

    def one(self, item: Item, _sections: Sequence[Section]) -> None:
        """A single thing is one line."""
        self.add(item)
