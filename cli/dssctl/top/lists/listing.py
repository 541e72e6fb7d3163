"""The parts of a list, and which of its rows are shown in which order.

Invariant: the order is total: rows of equal value are ordered by their keys, so no row jumps.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from dssctl.output.escape import escaped
from dssctl.top.model.answers import Answer
from dssctl.top.model.picture import Picture
from dssctl.top.model.places import Ordering, Place, Visit
from dssctl.top.model.wanted import Value, Values
from dssctl.top.paint import amounts
from dssctl.top.paint.glyphs import Glyphs
from dssctl.top.paint.spans import Line, Look, Span, cell, cut, fitted

COLUMN_GAP = 1
"""The gap between two columns of a list; every column of text ends in blanks anyway."""


Row = TypeVar("Row")


class Pen(NamedTuple):
    """What a text depends on beside its row."""

    now_ms: int
    glyphs: Glyphs


class Scene(NamedTuple):
    """What there is to show: the picture, the place, and the answer to the place's question."""

    picture: Picture
    place: Place
    pen: Pen
    answer: Answer | None = None
    width: int = 80
    """The width in terminal cells: long texts are wrapped to it."""
    spot: Any = None
    """The row that was chosen when the menu of actions was opened."""


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """One field of a row."""

    name: str
    """The name that a filter uses."""
    header: str
    width: int
    """The width in cells; a column that grows takes more."""
    value: Callable[[Row], Value]
    text: Callable[[Row, Pen], str] | None = None
    """A text that is safe to print; the value itself if it is None."""
    right: bool = False
    grows: bool = False
    rank: int = 0
    """If there is no room, columns of the highest rank are left out first."""
    look: Callable[[Row], Look] = lambda _row: ""
    rises: bool = False
    """When sorted by it, the least comes first."""

    def shown(self, row: Row, pen: Pen) -> str:
        """The text for a row, safe to print."""
        if self.text is not None:
            return self.text(row, pen)
        value = self.value(row)
        if isinstance(value, str):
            return escaped(value) or "-"
        return "-" if value is None else amounts.count(value)


@dataclass(frozen=True, slots=True)
class Listing(Generic[Row]):
    """A list."""

    title: str
    columns: tuple[Column[Row], ...]
    rows: Callable[[Scene], Mapping[str, Row]]
    """Rows by a key that stays the same while the row exists."""
    order: Ordering
    opens: Callable[[Place, str, Row], Place | None] = lambda _place, _key, _row: None
    """The place that the enter key opens."""
    fault: Callable[[Row], bool] = lambda _row: False
    """Whether a row is faulty."""
    facts: "Callable[[Row, Pen], Sequence[tuple[str, str]]] | None" = None
    """All facts of a row, in words; if there is none, the texts of its columns."""
    empty: str = "none"
    """The text shown if there is no row."""

    def column(self, name: str) -> "Column[Row] | None":
        """The column of this name."""
        return next((each for each in self.columns if each.name == name), None)

    @property
    def values(self) -> Values:
        """The value of each column for a row."""
        return {column.name: column.value for column in self.columns}


class Shown(NamedTuple):
    """The wanted rows, in order."""

    keys: tuple[str, ...]
    rows: Mapping[str, Any]
    of: int
    """How many rows there are, wanted or not."""


def shown(listing: Listing[Any], scene: Scene, visit: Visit) -> Shown:
    """The rows that a visit wants, in its order."""
    rows = listing.rows(scene)
    keys = list(rows)
    if visit.faults_only:
        keys = [key for key in keys if listing.fault(rows[key])]
    if visit.wanted:
        test = visit.wanted.test(listing.values)
        keys = [key for key in keys if test(rows[key])]
    return Shown(tuple(_ordered(listing, rows, keys, visit.ordering)), rows, len(rows))


def _ordered(
    listing: Listing[Any], rows: Mapping[str, Any], keys: list[str], ordering: Ordering | None
) -> list[str]:
    ordering = ordering or listing.order
    column = listing.column(ordering.column)
    if column is None:
        return keys
    keys.sort()
    valued: list[tuple[Any, str]] = [(column.value(rows[key]), key) for key in keys]
    told = [each for each in valued if each[0] is not None]
    told.sort(key=itemgetter(0), reverse=ordering.descending)
    return [key for _, key in told] + [key for value, key in valued if value is None]


def facts_of(listing: Listing[Any], row: object, pen: Pen) -> Sequence[tuple[str, str]]:
    """All facts of a row, as names and texts."""
    if listing.facts is not None:
        return listing.facts(row, pen)
    return [(column.name, column.shown(row, pen).strip()) for column in listing.columns]


class Layout(NamedTuple):
    """The columns that there is room for, and their widths."""

    columns: tuple[tuple[Column[Any], int], ...]
    width: int
    fills: bool
    """Whether the columns take exactly that width."""


def layout(listing: Listing[Any], width: int) -> Layout:
    """The columns that fit; those that grow share the rest."""
    columns = list(listing.columns)
    while len(columns) > 1 and _needed(columns) > width:
        last = max(range(len(columns)), key=lambda index: (columns[index].rank, index))
        if not columns[last].rank:
            break
        del columns[last]
    growing = [column for column in columns if column.grows]
    left = max(0, width - _needed(columns))
    share, rest = divmod(left, len(growing)) if growing else (0, 0)
    placed: list[tuple[Column[Any], int]] = []
    for column in columns:
        more = share + (rest if growing and column is growing[0] else 0) if column.grows else 0
        placed.append((column, column.width + more))
    taken = sum(wide for _, wide in placed) + COLUMN_GAP * (len(placed) - 1)
    return Layout(tuple(placed), width, taken == width)


def _needed(columns: Sequence[Column[Any]]) -> int:
    return sum(column.width for column in columns) + COLUMN_GAP * (len(columns) - 1)


def header_line(placed: Layout, ordering: Ordering, glyphs: Glyphs) -> Line:
    """The headers, with the direction of the column that rows are sorted by."""
    spans: list[Span] = []
    for index, (column, width) in enumerate(placed.columns):
        sign = ""
        if column.name == ordering.column:
            sign = glyphs.down if ordering.descending else glyphs.up
        room = width - len(sign)
        text = cut(column.header, room, "") + sign
        look: Look = "accent" if sign else "head"
        spans.append(Span(cell(text, width, glyphs.more, right=column.right), look))
        if index < len(placed.columns) - 1:
            spans.append(Span(" " * COLUMN_GAP, "head"))
    return fitted(spans, placed.width, glyphs.more)


def row_line(placed: Layout, row: object, pen: Pen) -> Line:
    """A row, exactly as wide as its layout."""
    spans: list[Span] = []
    for index, (column, width) in enumerate(placed.columns):
        text = cell(column.shown(row, pen), width, pen.glyphs.more, right=column.right)
        spans.append(Span(text, column.look(row)))
        if index < len(placed.columns) - 1:
            spans.append(_GAP)
    # Cells are as wide as their columns: most rows need not be measured.
    return tuple(spans) if placed.fills else fitted(spans, placed.width, pen.glyphs.more)


_GAP = Span(" " * COLUMN_GAP)


def column_at(placed: Layout, x: int) -> Column[Any] | None:
    """The column at a terminal cell."""
    at = 0
    for column, width in placed.columns:
        if at <= x < at + width:
            return column
        at += width + COLUMN_GAP
    return None


def next_ordering(listing: Listing[Any], ordering: Ordering | None, by: int) -> Ordering:
    """The order by the next column, or by the one before."""
    names = [column.name for column in listing.columns]
    now = ordering or listing.order
    at = names.index(now.column) if now.column in names else 0
    return ordering_by(listing, names[(at + by) % len(names)])


def ordering_by(listing: Listing[Any], name: str) -> Ordering:
    """The order by a column in its usual direction: large numbers first, texts from a to z."""
    column = listing.column(name)
    return Ordering(name, descending=column is not None and not column.rises)
