"""What the commands hand to the renderer: kinds, their columns, and items.

An item is a mapping from field names (the words of the wire) to plain values. Invariant: a kind
is constant; everything that a format needs to know about an item stands in its kind.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dss_core.counted import bytes_text
from dssctl.limits import MOMENT_COLUMNS
from dssctl.output.escape import escaped
from dssctl.output.instants import Instant
from dssctl.settings import TimeStyle

if TYPE_CHECKING:
    from dssctl.fields import Fields

Value: TypeAlias = "bool | int | float | str | Instant | Sequence[Value] | Item | None"
Item: TypeAlias = Mapping[str, Value]
Cell: TypeAlias = Callable[[Item, int], str]
"""What a table shows for an item, given the present in microseconds."""

API_VERSION = "dssctl/v1"


class Column(NamedTuple):
    """One field of an item, as a table shows it."""

    field: str
    header: str
    right: bool = False
    """Numbers are aligned right."""
    wide: bool = False
    """Shown under ``-o wide`` only."""
    only_csv: bool = False
    """Left out of tables, because the cell of another column shows it."""
    width: int = 0
    """Reserved for it in a table that is printed while it grows."""
    cell: Cell | None = None
    """How to show it, where the plain value will not do."""
    styles: Mapping[str, str] = MappingProxyType({})
    """Colours of values, on a terminal."""

    def text(self, item: Item, now_us: int, style: TimeStyle = TimeStyle.RELATIVE) -> str:
        """The cell, safe to print on one line."""
        if self.cell is not None:
            return escaped(self.cell(item, now_us))
        return escaped(shown(item.get(self.field), now_us, style))

    def heading(self, style: TimeStyle) -> str:
        """The header; what is shown as a moment is not called an age."""
        if style is not TimeStyle.RELATIVE and self.header in {"AGE", "UP"}:
            return header_of(self.field)
        return self.header

    def reserved(self, style: TimeStyle) -> int:
        """Its width in a table that is printed while it grows."""
        moment = f"_{self.field}".endswith(("_at", "_timestamp"))
        if not self.width or not moment or style is TimeStyle.RELATIVE:
            return self.width
        return max(self.width, MOMENT_COLUMNS)


class Kind(NamedTuple):
    """The name of a kind, such as ``Group``."""

    name: str
    columns: tuple[Column, ...]
    identity: Callable[[Item], str]
    """What ``-o name`` prints: an item's name, as other commands take it."""
    named: bool = False
    """Whether a user named the columns: all of them are shown, however narrow the terminal is."""

    @property
    def fields(self) -> "Fields":
        """What its items have."""
        from dssctl.fields import fields_of  # some hundreds of sentences, seldom wanted

        return fields_of(self.name)


class Section(NamedTuple):
    """A list inside an item that a table shows below it."""

    field: str
    kind: Kind | None = None
    """None: its rows are sentences, each on a line of its own."""


NOTHING = "-"
"""What a table shows where a field has no value."""


def header_of(field: str) -> str:
    """The header of a column that has none of its own."""
    return field.upper().replace("_", "-")


def shown(value: Value, now_us: int, style: TimeStyle = TimeStyle.RELATIVE) -> str:
    """A value as a table shows it."""
    match value:
        case None | "" | []:
            text = NOTHING
        case bool():
            text = "yes" if value else "no"
        case Instant():
            text = value.shown(now_us, style)
        case str():
            text = value
        case Mapping():
            text = ",".join(f"{key}={shown(inner, now_us, style)}" for key, inner in value.items())
        case Sequence():
            text = ",".join(shown(inner, now_us, style) for inner in value)
        case _:
            text = str(value)
    return text


def plain(value: Value) -> object:
    """A value as JSON knows it."""
    match value:
        case Instant():
            return value.rfc3339()
        case str():
            return value
        case Mapping():
            return {key: plain(inner) for key, inner in value.items()}
        case Sequence():
            return [plain(inner) for inner in value]
        case _:
            return value


def size(field_name: str) -> Cell:
    """A cell for a number of bytes, in units of 1,024."""

    def cell(item: Item, _now_us: int) -> str:
        value = item[field_name]
        return bytes_text(value) if isinstance(value, int) else NOTHING

    return cell
