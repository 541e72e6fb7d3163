"""What every command prints in every format, of items made up from the descriptions of fields.

One item has everything, the other nothing that may be absent. Invariant: no clock, no daemon and no
chance, so that what differs was changed.
"""

import io
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout

from dssctl.command_tree import command_kinds
from dssctl.fields import Field, Type, fields_of
from dssctl.output import Instant, Item, Kind, Value, show_list
from dssctl.settings import Format, Settings

NOW_US = 1_795_000_000_000_000
AN_HOUR_AGO = Instant(NOW_US - 3_600_000_000)

_FULL: Mapping[Type, Value] = {
    Type.NUMBER: 7,
    Type.RATE: 1.5,
    Type.FRACTION: 0.25,
    Type.BYTES: 5_300_000,
    Type.SPAN: 90_000,
    Type.SECONDS: 300,
    Type.MOMENT: AN_HOUR_AGO,
    Type.TRUTH: True,
    Type.TEXTS: ["one", "two"],
    Type.RANGES: [[3, 5], [9, 10]],
    Type.FIELDS: {"name": "value"},
}
_SPARSE: Mapping[Type, Value] = {
    Type.NUMBER: 0,
    Type.RATE: 0.0,
    Type.FRACTION: 0.0,
    Type.BYTES: 0,
    Type.SPAN: 0,
    Type.SECONDS: 0,
    Type.MOMENT: AN_HOUR_AGO,
    Type.TRUTH: False,
    Type.TEXTS: [],
    Type.RANGES: [],
    Type.FIELDS: {},
    Type.ITEMS: [],
}


_WITHIN = {"Schedule": ("last", "ScheduleRun"), "Change": ("value", "Group")}
"""Fields that hold an item whose kind its description cannot name."""


def examples() -> Iterator[tuple[str, str]]:
    """A file for each kind, with its name."""
    seen: dict[str, list[Kind]] = {}
    for kind in command_kinds():
        alike = seen.setdefault(kind.name, [])
        if kind not in alike:
            alike.append(kind)
    for name, kinds in seen.items():
        for number, kind in enumerate(kinds, start=1):
            suffix = f"-{number}" if number > 1 else ""
            yield f"{name}{suffix}.txt", _in_every_format(kind)


def _in_every_format(kind: Kind) -> str:
    printed = io.StringIO()
    items = [_example(kind.name, _FULL), _example(kind.name, _SPARSE, sparse=True)]
    template = "{" + kind.fields[0].name + "}"
    for form in sorted(set(Format) - {Format.HELP, Format.NONE}):
        settings = Settings(format=form, template=template, clock_us=lambda: NOW_US)
        printed.write(f"== {form}\n")
        with redirect_stdout(printed):
            show_list(settings, kind, items)
    return printed.getvalue()


def _example(kind: str, values: Mapping[Type, Value], *, sparse: bool = False) -> Item:
    item = {field.name: _value(field, values, sparse=sparse) for field in fields_of(kind)}
    if not sparse and kind in _WITHIN:
        field, inner = _WITHIN[kind]
        item[field] = _example(inner, values)
    return {**item, "topic": "groups"} if kind == "Change" else item


def _value(field: Field, values: Mapping[Type, Value], *, sparse: bool) -> Value:
    if field.name.endswith("_base64"):
        # Beside the text, or in its place.
        return "/w==" if sparse else None
    if sparse and (field.optional or field.absent):
        return [] if field.type in {Type.ITEMS, Type.TEXTS} else None
    if field.type is Type.TEXT:
        return field.name.replace("_", "-")
    if field.type is Type.ITEMS and not sparse:
        return [_example(field.kind, values)]
    return values[field.type]
