"""Filter and order of a list that the daemon itself does not filter and sort.

Invariant: the grammar is that of `dss_core.conditions`, the names those of fields and headers.
"""

from collections.abc import Mapping, Sequence

from dss_core.conditions import FieldType, Own, conditions_of, order_of
from dssctl.fields import Type
from dssctl.output import Instant, Item, Kind
from dssctl.output.chosen_columns import names_of_columns

COMPARED_AS = {
    Type.TEXT: FieldType.TEXT,
    Type.NUMBER: FieldType.NUMBER,
    Type.FRACTION: FieldType.NUMBER,
    Type.RATE: FieldType.NUMBER,
    Type.BYTES: FieldType.NUMBER,
    Type.SPAN: FieldType.SPAN,
    Type.SECONDS: FieldType.NUMBER,
    Type.MOMENT: FieldType.MOMENT,
    Type.TRUTH: FieldType.TRUTH,
    Type.TEXTS: FieldType.TEXTS,
}
"""How a filter compares a type of field; other types cannot be compared."""


class Choice:
    """Selects items of a kind, and puts them in an order.

    Raises:
        FilterUnreadable, OrderUnreadable: the filter or the order breaks the grammar.
    """

    def __init__(self, kind: Kind, wanted: str, sort: str, now_us: int) -> None:
        self._names = names_of_columns(kind)
        types = _types(kind, self._names)
        self._conditions = conditions_of(wanted, types, now_us=now_us)
        self._order = order_of(sort, types) if sort else None

    @property
    def sorts(self) -> bool:
        """Whether an order was asked for."""
        return self._order is not None

    def of(self, items: Sequence[Item], now_us: int) -> list[Item]:
        """The selected items, in that order."""
        found = [each for each in items if self._conditions.hold(self._reader(each), now_us)]
        if self._order is None:
            return found
        return self._order.sorted(found, lambda item, name: self._reader(item)(name))

    def _reader(self, item: Item) -> "_Reader":
        return _Reader(item, self._names)


class _Reader:
    """Reads an item's field, by any of its names, in the form that conditions take."""

    __slots__ = ("_item", "_names")

    def __init__(self, item: Item, names: Mapping[str, str]) -> None:
        self._item = item
        self._names = names

    def __call__(self, name: str) -> Own:
        value = self._item.get(self._names[name])
        match value:
            case Instant():
                return value.us
            case None | bool() | int() | float() | str():
                return value
            case Mapping():
                return None
            case _:
                return tuple(map(str, value))


def _types(kind: Kind, names: Mapping[str, str]) -> Mapping[str, FieldType]:
    """For each name that can be compared, its type."""
    types = {each.name: COMPARED_AS[each.type] for each in kind.fields if each.type in COMPARED_AS}
    return {name: types[field] for name, field in names.items() if field in types}
