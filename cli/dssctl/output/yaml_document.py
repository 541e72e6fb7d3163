"""YAML in blocks: the envelope of the JSON document, easier to read.

Text that is not a plain word is quoted, whatever the library would do: so nothing that a name can
hold (``no``, ``1e3``, ``: #``) is read back as something else, by readers of YAML 1.1 and 1.2.
"""

import re
from collections.abc import Sequence
from typing import TextIO

import yaml

try:  # ten times as quick; not on every platform
    from yaml import CSafeDumper as SafeDumper
except ImportError:
    from yaml import SafeDumper  # type: ignore[assignment]

from dssctl.output.escape import escaped_in_json_lines
from dssctl.output.model import API_VERSION, Item, Kind, Section, plain
from dssctl.settings import Settings

_WORD = re.compile("[A-Za-z][A-Za-z0-9_]*")
_ONE_LINE = 1 << 30


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
        self._write({"apiVersion": API_VERSION, "kind": f"{self._kind.name}List"})

    def add(self, item: Item) -> None:
        """Write one item of the list."""
        if self._empty:
            self._out.write("items:\n")
            self._empty = False
        self._write([plain(item)])

    def end(self) -> None:
        """Write an empty list where no item came."""
        if self._empty:
            self._write({"items": []})

    def one(self, item: Item, _sections: Sequence[Section]) -> None:
        """Write the envelope around a single item."""
        self._write({"apiVersion": API_VERSION, "kind": self._kind.name, "item": plain(item)})

    def _write(self, value: object) -> None:
        text = yaml.dump(
            value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_ONE_LINE
        )
        self._out.write(escaped_in_json_lines(text))


class _Dumper(SafeDumper):
    """Blocks without anchors."""

    def ignore_aliases(self, data: object) -> bool:
        """Write what occurs twice twice."""
        return True


def _represent_text(dumper: SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if _WORD.fullmatch(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
