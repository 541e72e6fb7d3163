"""A list that is refreshed again and again.

On a terminal it is redrawn in place; elsewhere each item that came, changed or went is printed.
Invariant: an absent daemon ends nothing; it is noted once, and once when it is back.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from dss_core.errors import Stopping, TimedOut, Unreachable
from dssctl.connection import connected, in_time, require_daemon
from dssctl.output import Column, Item, Kind, growing, note
from dssctl.output.table import Table
from dssctl.output.writer import Growing
from dssctl.screen import Drawn, Screen
from dssctl.selection import Selection, Wanted
from dssctl.settings import Format, Settings

if TYPE_CHECKING:
    from dss_client import Client

Question = Callable[["Client", Wanted], Awaitable[Sequence[Item]]]
Show = Callable[[list[Item]], None]

ADDED, CHANGED, GONE = "ADDED", "CHANGED", "GONE"
_AWAY = (Unreachable, TimedOut, Stopping)


def watch_list(
    settings: Settings, selection: Selection, question: Question, interval_s: float
) -> None:
    """Show the list until it is interrupted.

    Raises:
        KeyboardInterrupt: it was interrupted.
        BrokenPipeError: nobody reads stdout any more.
        DssError: the daemon was never there, or refuses the question.
    """
    if sys.stdout.isatty() and settings.format in {Format.TABLE, Format.WIDE}:
        screen = Screen(settings, interval_s)

        def draw(items: list[Item]) -> None:
            screen.draw(_rows(settings, selection.kind, items), f"{len(items)} shown")

        asyncio.run(_look(settings, selection, question, interval_s, draw))
        return
    with growing(settings, change_kind(selection.kind)) as listing:
        changes = Changes(selection.kind)

        def show(items: list[Item]) -> None:
            _print_changes(listing, selection, changes.to(items))

        asyncio.run(_look(settings, selection, question, interval_s, show))


def change_kind(kind: Kind) -> Kind:
    """A kind of items with what happened to them."""
    happened = Column("event", "EVENT", width=7, styles={GONE: "yellow", ADDED: "green"})
    return kind._replace(name=f"{kind.name}Event", columns=(happened, *kind.columns))


class Changes:
    """The changes between two looks."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._fading = {field.name for field in kind.fields if field.fades}
        self._known: dict[str, Item] = {}

    def to(self, items: list[Item]) -> Iterator[Item]:
        """Each item that came, changed or went since the last look."""
        there = {self._key(item): item for item in items}
        for key, item in there.items():
            before = self._known.get(key)
            if before is None:
                yield {"event": ADDED, **item}
            elif self._lasting(before) != self._lasting(item):
                yield {"event": CHANGED, **item}
        for key, item in self._known.items():
            if key not in there:
                yield {"event": GONE, **item}
        self._known = there

    def _key(self, item: Item) -> str:
        places = (str(item.get(name, "")) for name in ("group", "filter"))
        return " ".join((self._kind.identity(item), *places))

    def _lasting(self, item: Item) -> Item:
        return {name: value for name, value in item.items() if name not in self._fading}


def _print_changes(listing: Growing, selection: Selection, changes: Iterator[Item]) -> None:
    for change in changes:
        listing.add({"event": change["event"], **selection.for_format(change)})


async def _look(
    settings: Settings, selection: Selection, question: Question, interval_s: float, show: Show
) -> None:
    async with connected(settings) as client:
        await require_daemon(client, settings)
        away = False
        while True:
            try:
                items = await in_time(settings, question(client, selection.wanted))
            except _AWAY as silence:
                if not away:
                    note(settings, f"{silence.message} It is asked again.")
                away = True
            else:
                if away:
                    note(settings, "the daemon answers again")
                away = False
                show(selection.of(items))
            await asyncio.sleep(interval_s)


def _rows(settings: Settings, kind: Kind, items: list[Item]) -> list[str]:
    drawn = Drawn()
    table = Table(settings, kind, drawn, grows=False)
    table.begin()
    for item in items:
        table.add(item)
    table.end()
    return drawn.getvalue().splitlines()
