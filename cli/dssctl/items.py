"""Values of the client as items, by their kind's fields.

A field is the value's own field of that name, or one of a part that the value has: `acked` of the
`fates` of a group. By rule: a moment is written in milliseconds or microseconds, `created_at` for
`created_at_ms`; a rate over one or five minutes is one of the `Rates`; an optional text that is
empty is None, and so is an optional number that is 0 where the value has no None for that.
Invariant: an item has every field of its kind that is always there, in that order.
"""

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, get_args, get_type_hints

from dssctl.fields import Field, Type, fields_of
from dssctl.output import Instant, Item, Value

Read = Callable[[Any], Value]
Source = Any
"""A class of values."""
_SPANS = {"1m": "minute", "5m": "five_minutes"}
_DIGITS = 3
"""The precision of a rate: 4.6e-05 records a second count as 0."""


def item_of(kind: str, value: Any, **told: Value) -> Item:  # noqa: ANN401 - of any type
    """A value as an item of a kind; fields that are given are not read from the value."""
    source: Source = type(value)
    readers = _readers(kind, source, frozenset(told))
    return {name: told[name] if read is None else read(value) for name, read in readers}


@cache
def _readers(
    kind: str, source: Source, told: frozenset[str]
) -> tuple[tuple[str, Read | None], ...]:
    """The reader of each field of a kind, in their order; none for fields that are given."""
    wanted = (each for each in fields_of(kind) if each.name in told or not each.absent)
    return tuple(
        (each.name, None if each.name in told else _reader(each, source)) for each in wanted
    )


def _reader(field: Field, source: type) -> Read:
    if field.type is Type.RATE:
        name, _, span = field.name.rpartition("_")
        average = attrgetter(f"{name}.{_SPANS[span]}")
        return lambda value: round(average(value), _DIGITS)
    path, may_be_none = _place(field.name, source, is_moment=field.type is Type.MOMENT)
    get = attrgetter(path)
    if field.type is Type.MOMENT:
        return _moment(get, in_us=path.endswith("_us"))
    if field.optional and not may_be_none:
        return lambda value: get(value) or None
    whole: dict[Type, Read] = {
        Type.ITEMS: lambda value: [item_of(field.kind, each) for each in get(value)],
        Type.TEXTS: lambda value: list(get(value)),
        Type.FIELDS: lambda value: dict(get(value)),
    }
    return whole.get(field.type, get)


def _moment(get: Callable[[Any], Any], *, in_us: bool) -> Read:
    made = Instant if in_us else Instant.of_ms

    def read(value: object) -> Value:
        at = get(value)
        return None if at is None else made(at)

    return read


def _place(field: str, source: type, *, is_moment: bool) -> tuple[str, bool]:
    """Where the value has a field, and whether it may be None there."""
    hints = get_type_hints(source)
    places = {name: hint for name, hint in hints.items() if not is_dataclass(hint)}
    for part, kind in hints.items():
        if is_dataclass(kind):
            inner = get_type_hints(kind).items()
            places |= {f"{part}.{name}": hint for name, hint in inner if name not in hints}
    wanted = _spellings(field) if is_moment else (field,)
    for path, hint in places.items():
        if path.rpartition(".")[2] in wanted:
            return path, type(None) in get_args(hint)
    if hasattr(source, field):
        return field, False  # a property
    raise AttributeError(f"{source.__name__} has no {field}")


def _spellings(moment: str) -> tuple[str, ...]:
    bare = moment.removesuffix("_at")
    return f"{moment}_ms", f"{moment}_us", f"{bare}_us", f"{bare}_ms"
