"""One JSON document: the envelope of ``dssctl/v1`` around an item, or around a list of them.

A list is written item by item, so that one without an end can be followed, and is a valid
document as soon as it is closed.
"""

import json
from collections.abc import Sequence
from typing import TextIO

from dssctl.output.escape import escaped_in_json, escaped_in_json_lines
from dssctl.output.model import API_VERSION, Item, Kind, Section, plain
from dssctl.settings import Settings


def writer(_settings: Settings, kind: Kind, out: TextIO, *, grows: bool) -> "JsonDocument":
    """A document of the kind."""
    return JsonDocument(kind, out)


class JsonDocument:
    """Writes the envelope, and items into it."""

    def __init__(self, kind: Kind, out: TextIO) -> None:
        self._kind = kind
        self._out = out
        self._separator = "\n"

    def begin(self) -> None:
        """Open the envelope."""
        head = json.dumps({"apiVersion": API_VERSION, "kind": f"{self._kind.name}List"})
        self._out.write(f'{head[:-1]}, "items": [')

    def add(self, item: Item) -> None:
        """Write one item on a line of its own."""
        self._out.write(f"{self._separator}{encoded(item)}")
        self._separator = ",\n"

    def end(self) -> None:
        """Close the envelope."""
        self._out.write("\n]}\n" if self._separator != "\n" else "]}\n")

    def one(self, item: Item, _sections: Sequence[Section]) -> None:
        """Write the envelope around a single item."""
        document = {"apiVersion": API_VERSION, "kind": self._kind.name, "item": plain(item)}
        text = json.dumps(document, ensure_ascii=False, indent=2)
        self._out.write(escaped_in_json_lines(text) + "\n")


def encoded(item: Item) -> str:
    """The item as JSON on one line, safe to print."""
    return escaped_in_json(json.dumps(plain(item), ensure_ascii=False))
