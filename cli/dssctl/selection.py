"""Which items a listing shows: filter, order, limit and columns, the same for every list.

Invariant: what is wanted is read before the daemon is asked, so that a mistake costs nothing; what
is left out by a limit is told.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dss_core.conditions import FieldType, Own, conditions_of, order_of
from dssctl.fields import COMPARED_AS
from dssctl.output import Instant, Item, Kind, note
from dssctl.output.chosen_columns import names_of_columns, only_columns, with_columns
from dssctl.settings import Format, Settings


@dataclass(frozen=True, slots=True)
class ListRules:
    """How one list differs from the others."""

    in_daemon: bool = False
    """The daemon filters and sorts, for it knows how without telling all."""
    newest_last: bool = False
    """It is in the order of time, and a limit keeps its end."""
    limit: int | None = None
    """Where none is asked for."""
    remembered: str = ""
    """The names that completion has of it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a list asks the daemon for."""

    filter: str = ""
    sort: str = ""
    at_most: int | None = None
    """More need not be told; None: all that there are."""


class Selection:
    """What the options of a listing choose.

    Raises:
        FilterUnreadable: filter or order break the grammar.
        WrongUsage: there is no such column.
    """

    def __init__(self, settings: Settings, kind: Kind, rules: ListRules) -> None:
        options = settings.listing
        self._settings = settings
        self._rules = rules
        self._options = options if not rules.in_daemon else replace(options, filter="", sort="")
        self._names = names_of_columns(kind)
        self._now_us = settings.clock_us()
        self._limit = options.limit or rules.limit
        types = self._types(kind)
        self._conditions = conditions_of(self._options.filter, types, now_us=self._now_us)
        self._order = order_of(self._options.sort, types) if self._options.sort else None
        self.kind = with_columns(kind, options.columns)
        self._whole = not options.columns or options.columns.startswith("+")

    @property
    def wanted(self) -> Wanted:
        """What the daemon is asked for."""
        if self._rules.in_daemon:
            return Wanted(self._settings.listing.filter, self._settings.listing.sort)
        chooses = bool(self._options.filter or self._options.sort)
        return Wanted(at_most=None if chooses or self._limit is None else self._limit + 1)

    def of(self, items: Sequence[Item]) -> list[Item]:
        """The items that are shown."""
        now_us = self._settings.clock_us()
        found = [each for each in items if self._conditions.hold(self._reader(each), now_us)]
        if self._order is not None:
            found = self._order.sorted(found, lambda item, name: self._reader(item)(name))
        limit = self._limit
        if limit is None or len(found) <= limit:
            return found
        bounded = self.wanted.at_most is not None and len(items) <= limit + 1
        there = "there are more" if bounded else f"there are {len(found)}"
        note(self._settings, f"{limit} are shown, and {there}: --limit {2 * limit} shows more")
        from_end = self._rules.newest_last and self._order is None
        return found[-limit:] if from_end else found[:limit]

    def for_format(self, item: Item) -> Item:
        """The item as the format takes it: documents get the named fields only."""
        if self._whole or self._settings.format in {Format.TABLE, Format.WIDE, Format.CSV}:
            return item
        if self._settings.format in {Format.TEMPLATE, Format.NAME}:
            return item
        return only_columns(self.kind, item)

    def _types(self, kind: Kind) -> Mapping[str, FieldType]:
        types = {field.name: COMPARED_AS[field.type] for field in kind.fields
                 if field.type in COMPARED_AS}  # fmt: skip
        return {name: types[field] for name, field in self._names.items() if field in types}

    def _reader(self, item: Item) -> "_Reader":
        return _Reader(item, self._names)


class _Reader:
    """Reads an item's field, by any of its names, as a condition takes it."""

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
