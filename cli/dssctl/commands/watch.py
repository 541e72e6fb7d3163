"""``dssctl watch``: how things are, then each change."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from dssctl.items import item_of
from dssctl.limits import MOMENT_COLUMNS
from dssctl.nouns.groups import group_item
from dssctl.nouns.jobs import job_item
from dssctl.nouns.operations import operation_item
from dssctl.nouns.schedules import schedule_item
from dssctl.output import Column, Instant, Item, Kind
from dssctl.tree import settings_of, showing, verb_alone
from dssctl.watching import print_changes

if TYPE_CHECKING:
    from dss_client import WatchedGrant, WatchedLag, WatchedMember, WatchKey, WatchUpdate
    from dss_client.watch import WatchedValue

app = verb_alone("watch")

ANEW = "anew"
"""Everything printed before is outdated, except events; the present state follows."""


_NOTHING = {"topic": None, "change": None, "group": None, "name": None, "value": None}

_SHOWN = {
    "groups": ("state", "borrowers", "lag"),
    "members": ("client_id", "streams"),
    "grants": ("state", "client_id", "stall"),
    "lags": ("lag", "floor", "end"),
    "events": ("code", "subject", "sentence"),
    "operations": ("kind", "subject", "state"),
    "sessions": ("state", "subscriptions", "peer"),
    "schedules": ("task", "state", "next_at"),
    "jobs": ("kind", "state", "published", "chunks"),
}
"""The fields that a table has room for; programs get every field."""


def _value(item: Item, _now_us: int) -> str:
    value = item["value"]
    if not isinstance(value, dict):
        return "-"
    fields = (field for field in _SHOWN[str(item["topic"])] if value[field] is not None)
    return ", ".join(f"{field.replace('_', ' ')} {value[field]}" for field in fields)


def _identity(item: Item) -> str:
    named = "/".join(str(item[part]) for part in ("topic", "group", "name") if item[part])
    return named or str(item["change"])


CHANGE_KIND = Kind(
    "Change",
    (
        Column("at", "AT", width=MOMENT_COLUMNS),
        Column("topic", "TOPIC", width=10),
        Column("change", "CHANGE", width=6, styles={"gone": "yellow", ANEW: "bold yellow"}),
        Column("group", "GROUP", width=20),
        Column("name", "NAME", width=16),
        Column("value", "NOW", cell=_value),
    ),
    _identity,
)


@app.command(cls=showing(CHANGE_KIND))
def watch(
    context: typer.Context,
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND]...",
            help="groups, members, grants, lags, events, operations, sessions, schedules, "
            "jobs; all where absent.",
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option("-g", "--group", help="Only of this group, NAME or NAME@FILTER; repeatable."),
    ] = None,
    every: Annotated[
        bool, typer.Option("-a", "--all", help="Private subscriptions of sessions too.")
    ] = False,
) -> None:
    """Print how things are, then each change until Ctrl-C: an item at most four times a second."""
    settings = settings_of(context)
    print_changes(
        settings, CHANGE_KIND, _Rows(settings.clock_us).of, topics or (), group or (), private=every
    )


class _Rows:
    """One row for each change."""

    def __init__(self, clock_us: Callable[[], int]) -> None:
        self._clock_us = clock_us
        self._began = False

    def of(self, update: "WatchUpdate") -> Iterator[Item]:
        """The rows of an update."""
        at = Instant(self._clock_us() // 1_000 * 1_000)
        if update.anew and self._began:
            yield {"at": at, **_NOTHING, "change": ANEW}
        self._began = True
        for key, value in update.changed:
            yield {"at": at, **_key(key), "change": "is", "value": value_item(value)}
        for key in update.removed:
            yield {"at": at, **_key(key), "change": "gone", "value": None}


def _key(key: "WatchKey") -> dict[str, str | None]:
    return {"topic": key.topic, "group": key.group or None, "name": key.name or None}


def value_item(value: "WatchedValue") -> Item:
    """An item as the command that lists it prints it."""
    from dss_client import (
        Event,
        Group,
        Job,
        Operation,
        Schedule,
        SessionSummary,
        WatchedGrant,
        WatchedLag,
    )

    match value:
        case Group():
            item = group_item(value)
        case Event():
            item = item_of("Event", value)
        case Operation():
            item = operation_item(value)
        case SessionSummary():
            item = item_of("Session", value)
        case Schedule():
            item = schedule_item(value)
        case Job():
            item = job_item(value)
        case WatchedGrant():
            item = _grant(value)
        case WatchedLag():
            item = _lag(value)
        case _:
            item = _member(value)
    return item


def _member(member: "WatchedMember") -> Item:
    return {
        "borrower_id": member.borrower_id,
        "client_id": member.client_id,
        "streams": member.streams,
        "connected_at": Instant.of_ms(member.connected_at_ms),
    }


def _grant(grant: "WatchedGrant") -> Item:
    since_ms = grant.since_ms
    return {
        "stream": grant.stream,
        "state": grant.state,
        "client_id": grant.client_id or None,
        "grant_epoch": grant.grant_epoch,
        "since": None if since_ms is None else Instant.of_ms(since_ms),
        "stall": grant.stall or None,
        "pinned_to": grant.pinned_to or None,
    }


def _lag(lag: "WatchedLag") -> Item:
    oldest_us = lag.oldest_unacked_us
    return {
        "stream": lag.stream,
        "floor": lag.floor,
        "end": lag.end,
        "lag": lag.lag,
        "lag_exact": lag.lag_exact,
        "oldest_unacked_at": None if oldest_us is None else Instant(oldest_us),
    }
