"""Filters and orders of lists: one small grammar for daemon and tool.

::

    lag>1000,state=stalled                both hold; ' and ' is a comma, too
    lag>1000,state!=paused or oldest>5m   one side holds, or the other
    name=b*   created_at<1d   sealed=yes  a text with anything for *, an age, a truth

A term is a field, one of ``= != > >= < <=``, and a value. A moment is compared with a time
(``at>2026-11-20``), or with a span, which is its age (``at<5m``). If an item lacks a field, only
``!=`` holds; ``field=`` finds such items.

An order is a field: greatest numbers first, oldest moments first, texts from a to z. A minus before
the field reverses this; ``:asc`` or ``:desc`` after it sort by value.

Invariant: pure; any text gives a filter or a named error.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from dss_core.errors import FilterUnreadable, IllegalSpan, IllegalTime, OrderUnreadable
from dss_core.times import parse_span_ms, parse_time

Item = TypeVar("Item")
Own = float | str | bool | tuple[str, ...] | None
"""What an item has in a field; a moment in microseconds since 1970, a span in milliseconds."""
ReadField = Callable[[str], Own]


class FieldType(Enum):
    """What a field holds, and so what it may be compared with."""

    NUMBER = auto()
    SPAN = auto()
    MOMENT = auto()
    TEXT = auto()
    TEXTS = auto()
    """Several values: a condition holds if it holds for one of them."""
    TRUTH = auto()


FieldTypes = Mapping[str, FieldType]

_TERM = re.compile(r"\s*([a-z][a-z0-9_]*)\s*(!=|>=|<=|=|>|<)\s*(.*?)\s*")
_NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]{1,6})?")
_AND = re.compile(r",|\sand\s")
ALTERNATIVES = re.compile(r"\sor\s")
"""Separates the alternatives of a filter."""
_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "=": lambda own, wanted: own == wanted,
    "!=": lambda own, wanted: own != wanted,
    ">": lambda own, wanted: own > wanted,
    ">=": lambda own, wanted: own >= wanted,
    "<": lambda own, wanted: own < wanted,
    "<=": lambda own, wanted: own <= wanted,
}
_WANTED = {
    FieldType.NUMBER: "a number",
    FieldType.SPAN: "a span like 5m",
    FieldType.MOMENT: "an age like 5m or a time like 2026-11-20",
    FieldType.TRUTH: "yes or no",
}


@dataclass(frozen=True, slots=True)
class _Term:
    """One condition."""

    field: str
    operator: str
    value: float | str | bool
    age: bool = False
    """The value is an age in milliseconds, and what it is compared with a moment."""

    def holds(self, own: Own, now_us: int) -> bool:
        """Whether it holds of this value."""
        if isinstance(self.value, str):
            texts = own if isinstance(own, tuple) else ("" if own is None else str(own),)
            return any(fnmatchcase(text, self.value) for text in texts) is (self.operator == "=")
        if own is None or isinstance(own, str | tuple):
            return self.operator == "!="
        found = max(0.0, now_us - own) / 1_000 if self.age else own
        return _COMPARED[self.operator](found, self.value)


@dataclass(frozen=True, slots=True)
class Conditions:
    """A filter that was read: one of its alternatives holds, or there is none."""

    alternatives: tuple[tuple[_Term, ...], ...] = ()

    def hold(self, read: ReadField, now_us: int) -> bool:
        """Whether they hold of the item whose fields are read so."""
        return not self.alternatives or any(
            all(term.holds(read(term.field), now_us) for term in terms)
            for terms in self.alternatives
        )


def conditions_of(text: str, types: FieldTypes, *, now_us: int) -> Conditions:
    """The conditions of a filter; an empty one has none.

    Raises:
        FilterUnreadable: it breaks the grammar.
    """
    if not text.strip():
        return Conditions()
    return Conditions(
        tuple(
            tuple(_term(text, part, types, now_us) for part in _AND.split(alternative))
            for alternative in ALTERNATIVES.split(text)
        )
    )


def _term(text: str, part: str, types: FieldTypes, now_us: int) -> _Term:
    found = _TERM.fullmatch(part)
    if found is None:
        raise _unreadable(text, f"'{part}' is no condition", types)
    field, operator, value = found.groups()
    kind = types.get(field)
    if kind is None:
        raise _unreadable(text, f"there is no field {field}", types)
    if kind in {FieldType.TEXT, FieldType.TEXTS, FieldType.TRUTH} and operator not in {"=", "!="}:
        word = "truth" if kind is FieldType.TRUTH else "text"
        raise _unreadable(text, f"{field} is a {word}: use = or !=", types)
    if kind in {FieldType.TEXT, FieldType.TEXTS} or (not value and operator in {"=", "!="}):
        return _Term(field, operator, value)
    read, age = _value(kind, value, now_us)
    if read is None:
        raise _unreadable(text, f"{field} wants {_WANTED[kind]}, not '{value}'", types)
    return _Term(field, operator, read, age)


def _value(kind: FieldType, value: str, now_us: int) -> tuple[float | bool | None, bool]:
    """The value of a term, and whether it is an age; None where it is none of its kind."""
    if kind is FieldType.NUMBER:
        return (float(value) if _NUMBER.fullmatch(value) else None), False
    if kind is FieldType.TRUTH:
        return {"yes": True, "true": True, "no": False, "false": False}.get(value), False
    with suppress(IllegalSpan):
        return float(parse_span_ms(value)), kind is FieldType.MOMENT
    if kind is FieldType.MOMENT:
        with suppress(IllegalTime):
            time_us = parse_time(value, now_us=now_us)
            return (float(time_us) if isinstance(time_us, int) else None), False
    return None, False


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a list."""

    field: str
    descending: bool

    def sorted(self, items: Iterable[Item], read: Callable[[Item, str], Own]) -> list[Item]:
        """In this order; equal ones stay as they are, and what has nothing comes last."""
        found = [(read(item, self.field), item) for item in items]
        there = [(_comparable(own), item) for own, item in found if own is not None]
        there.sort(key=lambda pair: pair[0], reverse=self.descending)
        return [*(item for _, item in there), *(item for own, item in found if own is None)]


def _comparable(own: float | str | bool | tuple[str, ...]) -> Any:  # noqa: ANN401 -- one type a field
    return ", ".join(own) if isinstance(own, tuple) else own


def order_of(text: str, types: FieldTypes) -> Order:
    """The order that a text names.

    Raises:
        OrderUnreadable: there is no such field, or no such direction.
    """
    turned = text.startswith("-")
    field, colon, direction = text.removeprefix("-").partition(":")
    kind = types.get(field)
    problem = ""
    if kind is None:
        problem = f"there is no field {field}" if field else "it names no field"
    elif colon and (turned or direction not in {"asc", "desc"}):
        problem = f"an order is {field}, -{field}, {field}:asc or {field}:desc"
    if problem:
        raise OrderUnreadable(order=text, problem=problem, fields=", ".join(sorted(types)))
    greatest_first = kind in {FieldType.NUMBER, FieldType.SPAN}
    return Order(field, direction == "desc" if colon else greatest_first is not turned)


def _unreadable(text: str, problem: str, types: FieldTypes) -> FilterUnreadable:
    return FilterUnreadable(filter=text, problem=problem, fields=", ".join(sorted(types)))
