"""How ``dssctl dlq`` and ``dssctl rq`` list what is in the queues of a group."""

from collections import deque
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from dss_core.counted import counted
from dssctl.listing import list_items
from dssctl.nouns.queues import entry_item, error_item, error_name, error_words, key_item
from dssctl.output import Item, note
from dssctl.queue_choices import key_bytes
from dssctl.selection import ListRules, Wanted
from dssctl.settings import Format, Settings
from dssctl.tree import settings_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from dss_client import Client, ErrorCounts, NewestEntries, QueueEntry

QUEUE_ENTRIES_LISTED = 20
"""Entries that are shown where nobody says how many: a screen of lines."""

QUEUE_ERRORS_TOLD = 5
QUEUE_ENTRIES_COUNTED = 20_000
"""So many entries are counted by error or key where nobody asks for all: half a second."""

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
    offset: int | None = None
    client_id: str = ""
    start_us: int | None = None
    end_us: int | None = None
    attempt: int = 0

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self == Chosen(self.group, self.level)

    @property
    def told(self) -> str:
        """For people: a record, or the group."""
        return self.group if self.offset is None else f"{self.stream}@{self.offset}"

    def entries(
        self, client: "Client", *, whole: bool = False
    ) -> "AsyncGenerator[QueueEntry, None]":
        """All of them."""
        ask = client.queues.dead_letters if self.level == "dead" else client.queues.retries
        return ask(
            self.group,
            error=self.error,
            key=key_bytes(self.key),
            stream=self.stream,
            offset=self.offset,
            client_id=self.client_id,
            start_us=self.start_us,
            end_us=self.end_us,
            attempt=self.attempt,
            whole=whole,
        )


def chosen_entries(
    group: str, level: str, named: dict[str, Any], key: str | None, attempts: int = 0
) -> Chosen:
    """Those that the options of a command name."""
    return Chosen(group, level, **{**named, "key": key}, attempt=attempts)


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
        chosen.group, level=chosen.level, at_most=QUEUE_ENTRIES_COUNTED
    )
    for each in map(error_item, found.errors[:QUEUE_ERRORS_TOLD]):
        note(settings, f"{each['count']} x {error_words(each)} (--error '{error_name(each)}')")
    _tell_rest(settings, chosen, found)


def _tell_rest(settings: Settings, chosen: Chosen, found: "ErrorCounts") -> None:
    command = _errors_command(chosen)
    if found.counted < found.total:
        told = f"at least: {found.counted} of {found.total} were counted"
        note(settings, f"{told}; all: {command} --exact")
    elif len(found.errors) > QUEUE_ERRORS_TOLD:
        note(settings, f"{len(found.errors) - QUEUE_ERRORS_TOLD} more: {command}")


def list_errors(context: typer.Context, group: str, level: str, *, exact: bool) -> None:
    """Print how many entries there are of each error."""
    settings = _settings_of_counts(context, exact=exact)
    at_most = None if exact else QUEUE_ENTRIES_COUNTED

    async def found(client: "Client", _wanted: Wanted) -> list[Item]:
        counts = await client.queues.errors(group, level=level, at_most=at_most)
        if not counts.errors and _tells(settings):
            await _tell_if_plain(settings, client, group)
        is_exact = counts.counted >= counts.total
        if not is_exact and _tells(settings):
            _tell_bound(settings, counts.counted, counts.total)
        return [error_item(each, exact=is_exact) for each in counts.errors]

    list_items(context, found)


def list_keys(context: typer.Context, group: str, level: str, error: str, *, exact: bool) -> None:
    """Print how many entries there are of each key."""
    settings = _settings_of_counts(context, exact=exact)
    at_most = None if exact else QUEUE_ENTRIES_COUNTED

    async def found(client: "Client", _wanted: Wanted) -> list[Item]:
        counts = await client.queues.keys(group, level=level, error=error, at_most=at_most)
        if not counts.keys and _tells(settings):
            await _tell_if_plain(settings, client, group)
        if not counts.looked_at_all and _tells(settings):
            _tell_bound(settings, sum(each.count for each in counts.keys))
        return [key_item(each, exact=counts.looked_at_all) for each in counts.keys]

    list_items(context, found)


def _settings_of_counts(context: typer.Context, *, exact: bool) -> Settings:
    settings = settings_of(context)
    if exact:
        settings.timeout_s = settings.wait_s  # all of the queues is read
    return settings


def _tell_bound(settings: Settings, counted_: int, total: int | None = None) -> None:
    of = "" if total is None else f" of {total}"
    note(settings, f"{counted_}{of} were counted; --exact counts all of them")
