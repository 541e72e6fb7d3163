"""Which items a listing shows: filter, order, limit and columns, the same for every list.

Invariant: what is wanted is read before the daemon is asked, so that a mistake costs nothing; what
is left out by a limit is told. A list that is shown as it comes loads no grammar.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from dssctl.output import Item, Kind, note
from dssctl.settings import Format, Settings

if TYPE_CHECKING:
    from dssctl.choosing import Choice


class Named(NamedTuple):
    """The fields that name the items of a list, for a pattern that selects some of them."""

    metavar: str
    fields: tuple[str, ...] = ("name",)
    """A second field stands behind an @."""
    behind: str = ""
    """What is appended to a pattern without an @, if the names have one."""


class ListRules(NamedTuple):
    """How one list differs from the others."""

    in_daemon: bool = False
    """The daemon filters and sorts, so it need not send all items."""
    newest_last: bool = False
    """Items are in the order of time, and a limit keeps the last ones."""
    limit: int | None = None
    """The limit if the command line has none."""
    remembered: str = ""
    """The names that completion has of it."""
    named: Named | None = None
    """None: it takes no pattern of names."""


class Wanted(NamedTuple):
    """What a list asks the daemon for."""

    filter: str = ""
    sort: str = ""
    at_most: int | None = None
    """How many items are enough; None: all."""


class Selection:
    """What the options of a listing choose.

    Raises:
        FilterUnreadable, OrderUnreadable: filter or order break the grammar.
        WrongUsage: there is no such column.
    """

    def __init__(self, settings: Settings, kind: Kind, rules: ListRules) -> None:
        options = settings.listing
        self._settings = settings
        self._rules = rules
        self._limit = options.limit or rules.limit
        self._filter = _narrowed(options.filter, options.pattern, rules.named)
        chooses = bool(self._filter or options.sort) and not rules.in_daemon
        self._choice = _choice(settings, kind, self._filter) if chooses else None
        self.kind = _with_columns(kind, options.columns)
        self._whole = not options.columns or options.columns.startswith("+")

    @property
    def wanted(self) -> Wanted:
        """What the daemon is asked for."""
        if self._rules.in_daemon:
            return Wanted(self._filter, self._settings.listing.sort)
        bound = None if self._choice or self._limit is None else self._limit + 1
        return Wanted(at_most=bound)

    def of(self, items: Sequence[Item]) -> list[Item]:
        """The items that are shown."""
        found = list(items)
        if self._choice is not None:
            found = self._choice.of(found, self._settings.clock_us())
        limit = self._limit
        if limit is None or len(found) <= limit:
            return found
        bounded = self.wanted.at_most is not None and len(items) <= limit + 1
        there = "there are more" if bounded else f"there are {len(found)}"
        note(self._settings, f"{limit} are shown, and {there}: --limit {2 * limit} shows more")
        sorted_here = self._choice is not None and self._choice.sorts
        from_end = self._rules.newest_last and not sorted_here
        return found[-limit:] if from_end else found[:limit]

    def for_format(self, item: Item) -> Item:
        """The item as the format takes it: documents get the named fields only."""
        if self._whole or self._settings.format not in _DOCUMENTS:
            return item
        from dssctl.output.chosen_columns import only_columns

        return only_columns(self.kind, item)


_DOCUMENTS = {Format.JSON, Format.JSONL, Format.YAML}


def _narrowed(wanted: str, pattern: str, named: Named | None) -> str:
    """A filter that holds only of what is named so, too."""
    if not pattern or named is None:
        return wanted
    pattern += "" if "@" in pattern else named.behind
    parts = pattern.split("@", len(named.fields) - 1)
    named_so = ",".join(f"{field}={part}" for field, part in zip(named.fields, parts, strict=False))
    if not wanted.strip():
        return named_so
    from dss_core.conditions import ALTERNATIVES

    return " or ".join(f"{named_so},{each}" for each in ALTERNATIVES.split(wanted))


def _choice(settings: Settings, kind: Kind, wanted: str) -> "Choice":
    from dssctl.choosing import Choice

    options = settings.listing
    return Choice(kind, wanted, options.sort, settings.clock_us())


def _with_columns(kind: Kind, wanted: str) -> Kind:
    if not wanted:
        return kind
    from dssctl.output.chosen_columns import with_columns

    return with_columns(kind, wanted)
