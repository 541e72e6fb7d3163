"""Filters and sorts the groups of a list: the grammar of conditions applied to overviews.

Each number, text or boolean of an overview, its row and its counts is a field under its own name; a
table here has the fields that are shown differently. Invariant: pure; any text gives groups or a
named error. The names are those that the command line prints, and shorter ones.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import get_type_hints

from dss_core.conditions import Conditions, FieldType, Order, Own, conditions_of, order_of
from dss_core.times import text_of_span
from dssd.machines.fate import Counts
from dssd.machines.queues import parsed_backoff
from dssd.machines.start_point import shown_start
from dssd.questions.overviews import Overview
from dssd.questions.verdicts import forecast_ms, verdict_of
from dssd.store.rows import GroupRow

Read = Callable[[Overview], Own]
_COMPARED = {int: FieldType.NUMBER, str: FieldType.TEXT, bool: FieldType.TRUTH}
_TIMES = ("_us", "_ms")
_INTERNAL = {"cursor_generation", "failing", "stuck", "error"}
"""Fields that no list shows; `health` tells the last three."""


def _plain(kind: type, path: str = "") -> Iterator[tuple[str, tuple[FieldType, Read]]]:
    for name, hint in get_type_hints(kind).items():
        if hint in (GroupRow, Counts):
            yield from _plain(hint, f"{path}{name}.")
        elif hint in _COMPARED and not name.endswith(_TIMES) and name not in _INTERNAL:
            yield name, (_COMPARED[hint], attrgetter(path + name))


def _at(milliseconds: str) -> tuple[FieldType, Read]:
    read: Callable[[Overview], int | None] = attrgetter(milliseconds)
    return FieldType.MOMENT, lambda each: None if (at := read(each)) is None else at * 1_000


def _backoff(overview: Overview) -> str:
    group = overview.group
    steps_ms = parsed_backoff(group.backoff_ms) if group.max_deliver else ()
    return ",".join(map(text_of_span, steps_ms))


def _of_order(read: Callable[[GroupRow], str], overview: Overview) -> str:
    return read(overview.group) if overview.group.ordered else ""


_FIELDS: dict[str, tuple[FieldType, Read]] = {
    **dict(_plain(Overview)),
    "start": (FieldType.TEXT, lambda each: shown_start(each.group.start)),
    "health": (FieldType.TEXT, lambda each: verdict_of(each).level),
    "arrivals_1m": (FieldType.NUMBER, attrgetter("arrivals.minute")),
    "arrivals_5m": (FieldType.NUMBER, attrgetter("arrivals.five_minutes")),
    "acks_1m": (FieldType.NUMBER, attrgetter("acks.minute")),
    "acks_5m": (FieldType.NUMBER, attrgetter("acks.five_minutes")),
    "backoff": (FieldType.TEXT, _backoff),
    "on_dead_letter": (FieldType.TEXT, partial(_of_order, attrgetter("on_dead_letter"))),
    "keyless": (FieldType.TEXT, partial(_of_order, attrgetter("keyless"))),
    "oldest": (FieldType.SPAN, lambda each: each.oldest_ms or 0),
    "drain_ms": (FieldType.SPAN, forecast_ms),
    "ack_wait_ms": (FieldType.SPAN, attrgetter("group.ack_wait_ms")),
    "unused_ms": (FieldType.SPAN, attrgetter("group.unused_ms")),
    "oldest_unacked_at": (FieldType.MOMENT, attrgetter("oldest_unacked_us")),
    "created_at": _at("group.created_at_ms"),
    "paused_until": _at("group.paused_until_ms"),
    "leader_since": _at("leader_since_ms"),
}
_SHORT = {
    "members": "borrowers",
    "epoch": "leader_epoch",
    "arrivals": "arrivals_1m",
    "acks": "acks_1m",
    "drains": "drain_ms",
    "drained_in": "drain_ms",
    "ack_wait": "ack_wait_ms",
    "age": "created_at",
    "reason": "state_reason",
}
_FIELDS |= {short: _FIELDS[name] for short, name in _SHORT.items()}
TYPES = {name: kind for name, (kind, _) in _FIELDS.items()}


class GroupSelection:
    """The groups that a filter lets through, in an order; by name where none is asked for.

    Raises:
        FilterUnreadable, OrderUnreadable: filter or order break the grammar.
    """

    def __init__(self, wanted: str, sort: str, now_us: int) -> None:
        self._conditions: Conditions = conditions_of(wanted, TYPES, now_us=now_us)
        self._order: Order = order_of(sort or "name", TYPES)
        self._now_us = now_us

    def of(self, overviews: Iterable[Overview]) -> list[Overview]:
        """The overviews that the filter lets through, in order; equal ones by name and filter."""
        chosen = [
            each for each in overviews if self._conditions.hold(partial(_read, each), self._now_us)
        ]
        chosen.sort(key=lambda each: (each.group.name, each.group.filter))
        return self._order.sorted(chosen, _read)


def _read(overview: Overview, field: str) -> Own:
    return _FIELDS[field][1](overview)
