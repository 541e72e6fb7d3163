"""Printing what changes, as it changes, until Ctrl-C.

Invariant: rows come in the order in which the daemon told of them; a lost connection is noted on
stderr, and what was missed is printed when it is back.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from dssctl.advice import outages_noted
from dssctl.connection import connected, require_daemon
from dssctl.output import Item, Kind, growing
from dssctl.output.writer import Growing
from dssctl.settings import Settings

if TYPE_CHECKING:
    from dss_client import WatchUpdate

Rows = Callable[["WatchUpdate"], Iterable[Item]]


def print_changes(
    settings: Settings,
    kind: Kind,
    rows: Rows,
    topics: Sequence[str],
    groups: Sequence[str] = (),
    *,
    private: bool = False,
) -> None:
    """Print the rows of each update.

    Raises:
        KeyboardInterrupt: it was interrupted.
        BrokenPipeError: nobody reads stdout any more.
        DssError: there is no such topic, or no daemon.
    """
    with growing(settings, kind) as listing, outages_noted(settings):
        asyncio.run(_watch(settings, listing, rows, topics, groups, private=private))


async def _watch(
    settings: Settings,
    listing: Growing,
    rows: Rows,
    topics: Sequence[str],
    groups: Sequence[str],
    *,
    private: bool,
) -> None:
    async with connected(settings) as client:
        await require_daemon(client, settings)
        async for update in client.watch(*topics, groups=groups, all=private):
            for row in rows(update):
                listing.add(row)
