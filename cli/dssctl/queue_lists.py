"""How ``dssctl dlq`` and ``dssctl rq`` list what is in the queues of a group."""

from collections import deque
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

import typer

from dss_core.counted import counted
from dssctl.listing import list_items
from dssctl.nouns.queues import entry_item, error_item, error_name, error_words
from dssctl.output import Item, note
from dssctl.selection import ListRules, Wanted
from dssctl.settings import Format, Settings
from dssctl.tree import settings_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from dss_client import Client, ErrorCounts, NewestEntries, QueueEntry

QUEUE_ENTRIES_LISTED = 20
"""Entries that are shown where nobody says how many: a screen of lines."""

QUEUE_ERRORS_TOLD = 5
QUEUE_ERRORS_COUNTED = 20_000
"""Before a list of entries the most frequent errors are told, of so many: half a second."""

RULES = ListRules(newest_last=True, limit=QUEUE_ENTRIES_LISTED)

COUNTED = {
    "dead": ("dead letter", "dead letters"),
    "retry": ("record that waits", "records that wait"),
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which entries of a level of a group."""

    group: str
    level: str
    error: str = ""
    key: str | None = None
    stream: str = ""

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return not self.error and self.key is None and not self.stream

    def entries(self, client: "Client") -> "AsyncGenerator[QueueEntry, None]":
        """All of them."""
        ask = client.queues.dead_letters if self.level == "dead" else client.queues.retries
        key = None if self.key is None else self.key.encode(errors="surrogateescape")
        return ask(self.group, error=self.error, key=key, stream=self.stream)


def list_entries(context: typer.Context, chosen: Chosen) -> None:
    """Print the newest, after how many there are of which error."""
    settings = settings_of(context)
    tells = _tells(settings)

    async def found(client: "Client", wanted: Wanted) -> list[Item]:
        if not chosen.is_all or wanted.at_most is None:
            entries = await _chosen(client, chosen, wanted.at_most)
        else:
            newest = await client.queues.newest(chosen.group, wanted.at_most, level=chosen.level)
            entries = list(newest.entries)
            if tells:
                await _tell_errors(settings, client, chosen, newest)
        if tells and not entries:
            await _tell_if_plain(settings, client, chosen.group)
            _tell_if_none_is_chosen(settings, chosen)
        return [entry_item(each) for each in entries]

    list_items(context, found)


def _tells(settings: Settings) -> bool:
    """Whether a person reads it, once."""
    is_watched = settings.listing.watch_s is not None
    return settings.format in {Format.TABLE, Format.WIDE} and not is_watched


async def _tell_if_plain(settings: Settings, client: "Client", named: str) -> None:
    """Say that a group has no queues, and how one gets them."""
    group = (await client.groups.describe(named)).group
    if not group.max_deliver:
        note(settings, f"{named} has no queues: a record that fails comes again for ever")
        note(settings, f"it gets them by: dssctl groups edit {quote(named)} --max-deliver 5")


def _tell_if_none_is_chosen(settings: Settings, chosen: Chosen) -> None:
    if not chosen.is_all:
        one, _ = COUNTED[chosen.level]
        what = f"no {one} of {chosen.group} is what was chosen"
        note(settings, f"{what}; what is there: {_errors_command(chosen)}")


def _errors_command(chosen: Chosen) -> str:
    return f"dssctl {'dlq' if chosen.level == 'dead' else 'rq'} errors {quote(chosen.group)}"


async def _chosen(client: "Client", chosen: Chosen, at_most: int | None) -> "list[QueueEntry]":
    """The newest of those that are chosen, as many as are wanted."""
    kept: deque[QueueEntry] = deque(maxlen=at_most)
    async for each in chosen.entries(client):
        kept.append(each)
    return sorted(kept, key=lambda each: each.entered_at_us)


async def _tell_errors(
    settings: Settings, client: "Client", chosen: Chosen, newest: "NewestEntries"
) -> None:
    """What went wrong most, before the list."""
    note(settings, f"{chosen.group} has {counted(newest.total, *COUNTED[chosen.level])}")
    if newest.is_cut:
        note(settings, "not all of the queues could be looked at for the newest")
    if not newest.total:
        return
    found = await client.queues.errors(
        chosen.group, level=chosen.level, at_most=QUEUE_ERRORS_COUNTED
    )
    for each in map(error_item, found.errors[:QUEUE_ERRORS_TOLD]):
        note(settings, f"{each['count']} x {error_words(each)} (--error '{error_name(each)}')")
    _tell_rest(settings, chosen, found)


def _tell_rest(settings: Settings, chosen: Chosen, found: "ErrorCounts") -> None:
    command = _errors_command(chosen)
    if found.counted < found.total:
        note(settings, f"{found.counted} of {found.total} were counted; all: {command}")
    elif len(found.errors) > QUEUE_ERRORS_TOLD:
        note(settings, f"{len(found.errors) - QUEUE_ERRORS_TOLD} more: {command}")


def list_errors(context: typer.Context, group: str, level: str) -> None:
    """Print how many entries there are of each error."""
    settings = settings_of(context)
    settings.timeout_s = settings.wait_s  # all of the queues is read

    async def found(client: "Client", _wanted: Wanted) -> list[Item]:
        counts = await client.queues.errors(group, level=level)
        if not counts.errors and _tells(settings):
            await _tell_if_plain(settings, client, group)
        return [error_item(each) for each in counts.errors]

    list_items(context, found)
