"""Which groups a list shows, and in which order: a small grammar over the fields of an overview.

A filter is terms joined by commas, all of which hold: ``lag>1000,state=stalled``. A term is a
field, one of ``= != > >= < <=``, and a value: a number, a span of time like ``5m``, or a text in
which ``*`` stands for anything. Sorting puts the greatest number first and texts from a to z; a
minus before the field turns it round. Invariant: pure; whatever is written gives groups or a named
error.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase

from dss_core.errors import FilterUnreadable, IllegalSpan
from dss_core.times import parse_span_ms
from dssd.questions.overviews import Overview

Value = float | str
Read = Callable[[Overview, int], Value]
"""The field of an overview, at a wall time in microseconds."""


def _age_ms(overview: Overview, now_us: int) -> float:
    at_us = overview.oldest_unacked_us
    return 0 if at_us is None else max(0, now_us - at_us) / 1_000


def _drain_ms(overview: Overview, _now_us: int) -> float:
    drain_ms = overview.drain_ms
    return float("inf") if drain_ms is None else drain_ms


NUMBERS: dict[str, Read] = {
    "lag": lambda each, _: each.lag,
    "members": lambda each, _: each.borrowers,
    "standby": lambda each, _: each.standby,
    "streams": lambda each, _: each.streams,
    "acked": lambda each, _: each.counts.acked,
    "filtered": lambda each, _: each.counts.filtered,
    "lost": lambda each, _: each.counts.lost,
    "damaged": lambda each, _: each.counts.damaged,
    "arrivals": lambda each, _: each.arrivals.minute,
    "acks": lambda each, _: each.acks.minute,
}
SPANS: dict[str, Read] = {"oldest": _age_ms, "drains": _drain_ms}
TEXTS: dict[str, Read] = {
    "name": lambda each, _: each.group.name,
    "filter": lambda each, _: each.group.filter,
    "state": lambda each, _: each.state,
    "kind": lambda each, _: each.group.kind,
    "protocol": lambda each, _: each.group.protocol,
}
FIELDS: dict[str, Read] = {**NUMBERS, **SPANS, **TEXTS}

_TERM = re.compile(r"\s*([a-z_]+)\s*(!=|>=|<=|=|>|<)\s*(.*?)\s*")
_NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]{1,6})?")
_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "=": lambda own, wanted: own == wanted,
    "!=": lambda own, wanted: own != wanted,
    ">": lambda own, wanted: own > wanted,
    ">=": lambda own, wanted: own >= wanted,
    "<": lambda own, wanted: own < wanted,
    "<=": lambda own, wanted: own <= wanted,
}


@dataclass(frozen=True, slots=True)
class Term:
    """One condition."""

    field: str
    operator: str
    value: Value

    def holds(self, overview: Overview, now_us: int) -> bool:
        """Whether the group meets it."""
        own = FIELDS[self.field](overview, now_us)
        if isinstance(own, str):
            return fnmatchcase(own, str(self.value)) is (self.operator == "=")
        assert not isinstance(self.value, str)
        return _COMPARED[self.operator](own, self.value)


def terms_of(text: str) -> tuple[Term, ...]:
    """The terms of a filter; none of an empty one.

    Raises:
        FilterUnreadable: it breaks the grammar.
    """
    return tuple(_term(text, part) for part in text.split(",")) if text.strip() else ()


def _term(text: str, part: str) -> Term:
    found = _TERM.fullmatch(part)
    if found is None:
        raise FilterUnreadable(filter=text, problem=f"'{part}' is no condition")
    field, operator, value = found.groups()
    if field in TEXTS:
        if operator not in ("=", "!="):
            raise FilterUnreadable(filter=text, problem=f"{field} is a text: use = or !=")
        return Term(field, operator, value)
    if field in NUMBERS and _NUMBER.fullmatch(value):
        return Term(field, operator, float(value))
    if field in SPANS:
        with suppress(IllegalSpan):
            return Term(field, operator, float(parse_span_ms(value)))
    if field not in FIELDS:
        raise FilterUnreadable(filter=text, problem=f"there is no field {field}")
    kind = "a number" if field in NUMBERS else "a span like 5m"
    raise FilterUnreadable(filter=text, problem=f"{field} wants {kind}, not '{value}'")


class Order:
    """The order of a list; by name where nothing is asked for.

    Raises:
        FilterUnreadable: there is no such field.
    """

    def __init__(self, sort: str) -> None:
        self._turned = sort.startswith("-")
        self._field = sort.removeprefix("-") or "name"
        if self._field not in FIELDS:
            raise FilterUnreadable(filter=sort, problem=f"there is no field {self._field}")

    def sorted(self, overviews: Iterable[Overview], now_us: int) -> list[Overview]:
        """In this order; equal ones by name and filter."""
        by_name = sorted(overviews, key=lambda each: (each.group.name, each.group.filter))
        read = FIELDS[self._field]
        # Turned round, equal ones stay by name: the sort is stable.
        greatest_first = (self._field not in TEXTS) is not self._turned
        return sorted(by_name, key=lambda each: read(each, now_us), reverse=greatest_first)
