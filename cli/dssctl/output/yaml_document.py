"""YAML in blocks: the envelope of the JSON document, easier to read.

Strings are written as JSON strings, which YAML 1.2 contains: so nothing that a name can hold
(``no``, ``1e3``, ``: #``) is read back as something else.
"""

import json
from collections.abc import Iterator, Sequence
from typing import TextIO

from dssctl.output.escape import escaped_in_json
from dssctl.output.model import API_VERSION, Item, Kind, Section, plain
from dssctl.settings import Settings

_STEP = "  "


def writer(_settings: Settings, kind: Kind, out: TextIO, *, grows: bool) -> "YamlDocument":
    """A document of the kind."""
    return YamlDocument(kind, out)


class YamlDocument:
    """Writes the envelope, and items into it."""

    def __init__(self, kind: Kind, out: TextIO) -> None:
        self._kind = kind
        self._out = out
        self._empty = True

    def begin(self) -> None:
        """Open the envelope; the list begins with its first item, for an empty one differs."""
        self._out.write(f"apiVersion: {API_VERSION}\nkind: {self._kind.name}List\n")

    def add(self, item: Item) -> None:
        """Write one item of the list."""
        if self._empty:
            self._out.write("items:\n")
            self._empty = False
        self._write(_lines([plain(item)], ""))

    def end(self) -> None:
        """Write an empty list where no item came."""
        if self._empty:
            self._out.write("items: []\n")

    def one(self, item: Item, _sections: Sequence[Section]) -> None:
        """Write the envelope around a single item."""
        self._out.write(f"apiVersion: {API_VERSION}\nkind: {self._kind.name}\n")
        self._write(_lines({"item": plain(item)}, ""))

    def _write(self, lines: Iterator[str]) -> None:
        for line in lines:
            self._out.write(escaped_in_json(line) + "\n")


def _lines(value: object, indent: str) -> Iterator[str]:
    """A mapping or a list in block style; anything else is a scalar of its parent."""
    if isinstance(value, dict):
        for key, inner in value.items():
            label = f"{indent}{key if str(key).isidentifier() else json.dumps(key)}:"
            yield from _entry(label, inner, indent + _STEP)
    elif isinstance(value, list):
        for inner in value:
            yield from _list_entry(inner, indent)


def _entry(label: str, value: object, indent: str) -> Iterator[str]:
    if isinstance(value, dict | list) and value:
        yield label
        yield from _lines(value, indent)
    else:
        yield f"{label} {_scalar(value)}"


def _list_entry(value: object, indent: str) -> Iterator[str]:
    """The first line of a nested block stands behind the dash."""
    if not isinstance(value, dict | list) or not value:
        yield f"{indent}- {_scalar(value)}"
        return
    inner = _lines(value, indent + _STEP)
    yield f"{indent}- {next(inner).lstrip()}"
    yield from inner


def _scalar(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
