"""The view: the picture, the way, and the rows that are seen.

Invariant: the chosen row is one of the shown rows, and is on the screen; a view never changes. A
chosen row stays chosen while it exists, wherever the order moves it; before any choice it is the
first row.
"""

from dataclasses import dataclass, field, replace

from dssctl.top.limits import LARGE_COLUMNS
from dssctl.top.lists.listing import Pen, Scene, Shown, shown
from dssctl.top.model.answers import Answer
from dssctl.top.model.picture import Picture
from dssctl.top.model.places import Place, Visit, Way
from dssctl.top.paint.frame import HEADING_LINES, Badge
from dssctl.top.paint.glyphs import FULL, Glyphs
from dssctl.top.paint.spans import Line
from dssctl.top.stage.actions import Spot
from dssctl.top.stage.screens import Screen, Tab, screen_of

LARGE_LINES = 36
"""From this size on there is room for charts above and lists below."""


FOOT_LINES = 3
FRAME_LINES = 2
"""The lines above and below a list."""


class Size(tuple[int, int]):
    """Columns and lines."""

    __slots__ = ()

    @property
    def is_large(self) -> bool:
        """Whether there is room for panes beside and below."""
        return self[0] >= LARGE_COLUMNS and self[1] >= LARGE_LINES


@dataclass(frozen=True, slots=True)
class View:
    """Everything that decides what is on the terminal."""

    badge: Badge
    size: Size = field(default_factory=lambda: Size((80, 24)))
    glyphs: Glyphs = FULL
    picture: Picture = field(default_factory=Picture)
    """The newest picture."""
    held: Picture | None = None
    """The picture that is shown instead while the view is frozen."""
    way: Way = field(default_factory=lambda: Way.starting(Place("pulse")))
    answer: Answer | None = None
    spot: Spot | None = None
    """The row that was chosen when the menu of actions was opened."""
    notice: str = ""
    found: Shown = field(default_factory=lambda: Shown((), {}, 0))
    """The rows of the last look."""
    drawn: dict[object, tuple[Line, ...]] = field(default_factory=dict, compare=False, repr=False)
    """Parts that were drawn since that look: a key that only moves draws none of them again."""

    @property
    def seen(self) -> Picture:
        """The picture that is shown."""
        return self.held or self.picture

    @property
    def here(self) -> Visit:
        """The present visit."""
        return self.way.here

    @property
    def screen(self) -> Screen:
        """The present screen."""
        return screen_of(self.here.place)

    @property
    def tab(self) -> Tab:
        """The list that is shown."""
        tabs = self.screen.tabs
        return tabs[min(self.here.tab, len(tabs) - 1)]

    @property
    def pen(self) -> Pen:
        """What texts depend on."""
        return Pen(self.seen.now_ms, self.glyphs)

    @property
    def scene(self) -> Scene:
        """What there is to show."""
        answer = self.answer if self.answer and self.answer.place == self.here.place else None
        width = self.list_width - 4
        return Scene(self.seen, self.here.place, self.pen, answer, width, self.spot)

    @property
    def above_lines(self) -> int:
        """Lines of the panel above the list."""
        strip = self.screen.above
        wanted = 0 if strip is None else strip.large if self.size.is_large else strip.small
        return wanted if self._middle_lines >= wanted + _LIST_LINES_MIN else 0

    @property
    def below_lines(self) -> int:
        """Lines of the panel below the list."""
        strip = self.screen.below
        wanted = 0 if strip is None else strip.large if self.size.is_large else strip.small
        left = self._middle_lines - self.above_lines
        return wanted if left >= wanted + _LIST_LINES_MIN else 0

    @property
    def _middle_lines(self) -> int:
        return self.size[1] - HEADING_LINES - FOOT_LINES

    @property
    def list_lines(self) -> int:
        """Lines of the list with its frame."""
        return max(0, self._middle_lines - self.above_lines - self.below_lines)

    @property
    def list_width(self) -> int:
        """Columns of the list with its frame."""
        return self.size[0] - self.beside_width

    @property
    def beside_width(self) -> int:
        """Columns of the facts beside the list."""
        return self.size[0] // 3 if self.size.is_large and self.screen.beside else 0

    @property
    def rows_shown(self) -> int:
        """How many rows there is room for."""
        headers = any(column.header for column in self.tab.listing.columns)
        return max(0, self.list_lines - FRAME_LINES - headers)

    @property
    def chosen(self) -> Spot | None:
        """The chosen row, if there is any."""
        key = self.here.cursor or (self.found.keys[0] if self.found.keys else "")
        if key not in self.found.rows:
            place = self.here.place
            named = place.group or place.name
            return Spot(place, "", None, self.seen) if named else None
        return Spot(self.here.place, key, self.found.rows[key], self.seen)

    @property
    def index(self) -> int:
        """The number of the chosen row."""
        return self.here.at


_LIST_LINES_MIN = FRAME_LINES + 4


def looked(view: View) -> View:
    """The view with its present rows, one of them chosen and on the screen."""
    view = _named_in_full(view)
    found = shown(view.tab.listing, view.scene, view.here)
    return settled(replace(view, found=found, drawn={}))


def _named_in_full(view: View) -> View:
    """Complete the name of a group that was typed before the groups were known."""
    place, groups = view.here.place, view.seen.items.groups
    if not place.group or "@" in place.group or place.group in groups:
        return view
    found = [key for key, group in groups.items() if group.name == place.group]
    if len(found) != 1:
        return view
    here = replace(view.here, place=replace(place, group=found[0]))
    return replace(view, way=view.way.seeing(here))


def settled(view: View) -> View:
    """The view with an existing row chosen and on the screen."""
    here, keys = view.here, view.found.keys
    cursor, at = here.cursor, here.at
    if not cursor:
        at = 0
    elif here.at < len(keys) and keys[here.at] == cursor:
        pass
    elif cursor in view.found.rows and cursor in keys:
        at = keys.index(cursor)
    else:
        at = max(0, min(here.at, len(keys) - 1))
        cursor = keys[at] if keys else cursor
    last_first = max(0, len(keys) - view.rows_shown)
    first = min(max(here.first, at - view.rows_shown + 1), at, last_first)
    if (cursor, at, first) == (here.cursor, here.at, here.first):
        return view
    return replace(view, way=view.way.seeing(replace(here, cursor=cursor, at=at, first=first)))
