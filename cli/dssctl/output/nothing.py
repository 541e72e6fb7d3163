"""No data at all, for scripts that want the exit code; notes and errors remain."""

from collections.abc import Sequence
from typing import TextIO

from dssctl.output.model import Item, Kind, Section
from dssctl.settings import Settings


def writer(_settings: Settings, _kind: Kind, _out: TextIO, *, grows: bool) -> "Nothing":
    """Of any kind."""
    return Nothing()


class Nothing:
    """Takes items and writes none."""

    def begin(self) -> None:
        """Nothing stands before the first item."""

    def add(self, item: Item) -> None:
        """Leave it out."""

    def end(self) -> None:
        """Nothing stands after the last item."""

    def one(self, item: Item, _sections: Sequence[Section]) -> None:
        """Leave it out."""
