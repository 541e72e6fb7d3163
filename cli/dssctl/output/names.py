"""Names only, one a line: what other commands take as arguments."""

from collections.abc import Sequence
from typing import TextIO

from dssctl.output.escape import escaped
from dssctl.output.model import Item, Kind, Section
from dssctl.settings import Settings


def writer(_settings: Settings, kind: Kind, out: TextIO, *, grows: bool) -> "Names":
    """Names of the kind."""
    return Names(kind, out)


class Names:
    """Writes each item's name on its line."""

    def __init__(self, kind: Kind, out: TextIO) -> None:
        self._kind = kind
        self._out = out

    def begin(self) -> None:
        """Nothing stands before the first name."""

    def add(self, item: Item) -> None:
        """Write one name."""
        self._out.write(f"{escaped(self._kind.identity(item))}\n")

    def end(self) -> None:
        """Nothing stands after the last name."""

    def one(self, item: Item, _sections: Sequence[Section]) -> None:
        """A single thing is one name."""
        self.add(item)
