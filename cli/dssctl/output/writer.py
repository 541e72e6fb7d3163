"""Choosing the format, and the ways to show something with it.

A listing is opened when its first item is written, so a command that fails before it has data
leaves stdout empty; one that is interrupted later still closes what it has begun.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Protocol, TextIO

from dss_core.errors import OutputUnwritable
from dssctl.output.model import Item, Kind, Section
from dssctl.settings import Format, Settings


class Writer(Protocol):
    """A format at work on one kind."""

    def begin(self) -> None:
        """Text before the first item."""

    def add(self, item: Item) -> None:
        """One item of a listing."""

    def end(self) -> None:
        """Text after the last item."""

    def one(self, item: Item, sections: Sequence[Section]) -> None:
        """A single thing, not a listing."""


_MODULES = {
    Format.TABLE: "table",
    Format.WIDE: "table",
    Format.JSON: "json_document",
    Format.JSONL: "json_lines",
    Format.YAML: "yaml_document",
    Format.CSV: "comma_separated",
    Format.NAME: "names",
    Format.TEMPLATE: "templated",
    Format.NONE: "nothing",
}


def show_list(settings: Settings, kind: Kind, items: Iterable[Item]) -> None:
    """Print a listing that is complete."""
    writer = _writer(settings, kind, grows=False)
    writer.begin()
    for item in items:
        writer.add(item)
    writer.end()


def show_one(settings: Settings, kind: Kind, item: Item, sections: Sequence[Section] = ()) -> None:
    """Print a single thing, with the lists inside it."""
    _writer(settings, kind, grows=False).one(item, sections)


def tell_one(settings: Settings, kind: Kind, item: Item, sections: Sequence[Section] = ()) -> None:
    """Show a single thing on stderr, beside the data, if a person reads; for programs, nothing."""
    if settings.quiet or settings.format not in {Format.TABLE, Format.WIDE}:
        return
    _module(settings).writer(settings, kind, sys.stderr, grows=False).one(item, sections)
    sys.stderr.write("\n")
    sys.stderr.flush()


@contextmanager
def growing(settings: Settings, kind: Kind) -> Iterator["Growing"]:
    """Print items as they come.

    Raises:
        BrokenPipeError: nobody reads stdout any more.
        OutputUnwritable: the system takes no more.
    """
    listing = Growing(_writer(settings, kind, grows=True))
    try:
        yield listing
    except (BrokenPipeError, OutputUnwritable):
        raise
    except BaseException:
        if listing.begun:
            listing.end()
        raise
    listing.end()


class Growing:
    """A listing without a known end."""

    __slots__ = ("_writer", "begun")

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.begun = False

    def add(self, item: Item) -> None:
        """Print one item; it has left this process when this returns."""
        if not self.begun:
            self.begun = True
            self._writer.begin()
        self._writer.add(item)
        sys.stdout.flush()

    def end(self) -> None:
        """Close the listing, an empty one too."""
        if not self.begun:
            self.begun = True
            self._writer.begin()
        self._writer.end()
        sys.stdout.flush()


class _Module(Protocol):
    def writer(self, settings: Settings, kind: Kind, out: TextIO, *, grows: bool) -> Writer:
        """The format's writer."""


def _writer(settings: Settings, kind: Kind, *, grows: bool) -> Writer:
    return _module(settings).writer(settings, kind, sys.stdout, grows=grows)


def _module(settings: Settings) -> _Module:
    # By name, so that a command loads the one format that it prints.
    module: _Module = import_module(f"dssctl.output.{_MODULES[settings.format]}")
    return module
