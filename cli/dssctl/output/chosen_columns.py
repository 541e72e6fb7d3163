"""The columns that a user names, in place of those that a kind shows.

Columns are known by the name of their field or by their header, in small letters: `lag`, `oldest`.
Invariant: every column that is named is shown, in the order of the names.
"""

from collections.abc import Mapping

from dss_core.errors import WrongUsage
from dssctl.near_names import near_names
from dssctl.output.model import Column, Item, Kind, header_of


def names_of_columns(kind: Kind) -> Mapping[str, str]:
    """By each name of a column, or of a field without one, its field."""
    names = {field.name: field.name for field in kind.fields}
    for column in kind.columns:
        names.setdefault(column.field, column.field)
        names.setdefault(column.header.lower().replace("-", "_"), column.field)
    return names


def with_columns(kind: Kind, wanted: str) -> Kind:
    """The kind with these columns: `name,lag`, or `+oldest` beside the usual ones.

    Raises:
        WrongUsage: there is no such column.
    """
    parts = [part.strip() for part in wanted.split(",") if part.strip()]
    if not parts:
        return kind
    usual = [column for column in kind.columns if not column.wide and not column.only_csv]
    adds = parts[0].startswith("+")
    chosen = [*usual] if adds else []
    for part in parts:
        column = _column(kind, part.removeprefix("+"))
        if column.field not in {each.field for each in chosen}:
            chosen.append(column)
    return kind._replace(columns=tuple(chosen), named=True)


def only_columns(kind: Kind, item: Item) -> Item:
    """Of an item the fields that these columns show, for documents."""
    return {column.field: item.get(column.field) for column in kind.columns}


def _column(kind: Kind, name: str) -> Column:
    known = names_of_columns(kind)
    field = known.get(name.lower().replace("-", "_"))
    if field is None:
        near = " or ".join(near_names(name, known))
        said = f" Did you mean {near}?" if near else f" There are {', '.join(known)}."
        raise WrongUsage(reason=f"There is no column '{name}'.{said}", command="dssctl explain")
    for column in kind.columns:
        if column.field == field:
            return column._replace(wide=False, only_csv=False)
    return Column(field, header_of(field))
