"""Which fields the items of a command have, as items themselves."""

from collections.abc import Iterator, Sequence

from dssctl.fields import KINDS, Fields, fields_of
from dssctl.output import Column, Item, Kind, show_list
from dssctl.settings import Format, Settings

FIELD_KIND = Kind(
    "Field",
    (
        Column("kind", "KIND"),
        Column("field", "FIELD"),
        Column("type", "TYPE"),
        Column("column", "COLUMN"),
        Column("help", "WHAT IT IS"),
    ),
    lambda item: f"{item['kind']}.{item['field']}",
)


def show_fields(settings: Settings, kinds: Sequence[Kind]) -> None:
    """Print the fields of these kinds, and of the kinds inside them, instead of items."""
    settings.format = Format.TABLE
    show_list(settings, FIELD_KIND, field_items(kinds))


def field_items(kinds: Sequence[Kind]) -> Iterator[Item]:
    """The fields of kinds, each kind once, with those of the kinds that they contain."""
    headers = {
        (kind.name, column.field): column.header for kind in kinds for column in kind.columns
    }
    for name, fields in _reached([kind.name for kind in kinds]):
        for field in fields:
            yield {
                "kind": name,
                "field": field.name,
                "type": field.type_text,
                "help": field.help,
                "column": headers.get((name, field.name)),
            }


def _reached(names: list[str]) -> Iterator[tuple[str, Fields]]:
    todo, seen = list(names), set[str]()
    while todo:
        name = todo.pop(0)
        if name in seen or name not in KINDS:
            continue
        seen.add(name)
        fields = fields_of(name)
        yield name, fields
        todo += [field.kind for field in fields if field.kind]
