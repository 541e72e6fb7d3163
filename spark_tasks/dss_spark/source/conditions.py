"""The conditions of Spark's filters that save reading.

Times, streams, offsets and keys exclude whole ranges; the daemon compares subjects. Spark checks
every record again, so it can handle any filter that is not understood here.

Invariant: no record that meets the filters is left out. This module must not know Spark; filters
are recognised by the names of their classes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TypeVar

from dss_core.errors import IllegalFilter
from dss_core.filters import TopicFilter

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BELOW = ("LessThan", "LessThanOrEqual")
_ABOVE = ("GreaterThan", "GreaterThanOrEqual")
_EQUAL = ("EqualTo", "EqualNullSafe", "In")


@dataclass(frozen=True, slots=True)
class Bounds:
    """From one number (included) to another (excluded); None is no bound."""

    start: int | None = None
    end: int | None = None

    def within(self, start: int | None, end: int | None) -> "Bounds":
        """The range that both allow."""
        starts = [each for each in (self.start, start) if each is not None]
        ends = [each for each in (self.end, end) if each is not None]
        return Bounds(max(starts, default=None), min(ends, default=None))


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions on a wanted record."""

    streams: frozenset[str] | None = None
    keys: frozenset[bytes] | None = None
    subject: str | None = None
    """A filter."""
    append_us: Bounds = Bounds()
    offsets: Bounds = Bounds()


def conditions_of(filters: Iterable[object]) -> Conditions:
    """All conditions together; filters are those of `pyspark.sql.datasource`."""
    return reduce(_narrowed, filters, Conditions())


def _narrowed(known: Conditions, added: object) -> Conditions:
    kind, column = type(added).__name__, getattr(added, "attribute", ())
    value = getattr(added, "value", None)
    values = [each for each in (value or () if kind == "In" else (value,)) if each is not None]
    if not values:
        return known
    match list(column):
        case ["stream"] if kind in _EQUAL:
            known = replace(known, streams=_both(known.streams, values))
        case ["key"] if kind in _EQUAL:
            known = replace(known, keys=_both(known.keys, map(bytes, values)))
        case ["subject"] if known.subject is None:
            known = replace(known, subject=_subject(kind, values))
        case ["append_time"]:
            bounds = _bounds(kind, list(map(_us, values)))
            known = replace(known, append_us=known.append_us.within(*bounds))
        case ["offset"]:
            known = replace(known, offsets=known.offsets.within(*_bounds(kind, values)))
    return known


def _both(known: "frozenset[T] | None", added: Iterable[T]) -> "frozenset[T]":
    return frozenset(added) if known is None else known & frozenset(added)


def _bounds(kind: str, values: Sequence[int]) -> tuple[int | None, int | None]:
    if kind in _ABOVE:
        return values[0] + (kind == "GreaterThan"), None
    if kind in _BELOW:
        return None, values[0] + (kind == "LessThanOrEqual")
    return (min(values), max(values) + 1) if kind in _EQUAL else (None, None)


def _us(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


def _subject(kind: str, values: Sequence[str]) -> str | None:
    """A filter that matches at least all wanted subjects."""
    text = values[0]
    if kind == "StringStartsWith" and "/" in text:
        text = f"{text.rpartition('/')[0]}/#"
    elif kind not in ("EqualTo", "EqualNullSafe"):
        return None
    try:
        # A wildcard would match other characters than the one that is meant.
        return None if "+" in text else TopicFilter.parse(text).text
    except IllegalFilter:
        return None
