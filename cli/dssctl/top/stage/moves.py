"""The effects of keys on the view; those that need a terminal are elsewhere.

Invariant: pure and total: a move that makes no sense at a place leaves the view unchanged.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from dssctl.top.limits import RECORDS_PAGE
from dssctl.top.lists.details import detail_rows
from dssctl.top.lists.groups import GroupRow
from dssctl.top.lists.jobs import JobRow
from dssctl.top.lists.listing import facts_of, next_ordering, ordering_by
from dssctl.top.lists.streams import MemberRow
from dssctl.top.model.places import Ordering, Place, Visit, Way
from dssctl.top.model.wanted import EVERYTHING, Wanted
from dssctl.top.stage.view import View, looked, settled

Move = Callable[[View], View]


def moved(by: int) -> Move:
    """So many rows down."""

    def move(view: View) -> View:
        return chosen(view, view.index + by)

    return move


def chosen(view: View, at: int) -> View:
    """Choose the row of this number, or the nearest."""
    keys = view.found.keys
    if not keys:
        return view
    at = max(0, min(at, len(keys) - 1))
    here = replace(view.here, cursor=keys[at], at=at)
    return settled(replace(view, way=view.way.seeing(here)))


def _paged(direction: int) -> Move:
    return lambda view: moved(direction * max(1, view.rows_shown - 1))(view)


def _bottom(view: View) -> View:
    return chosen(view, len(view.found.keys) - 1)


def _top(view: View) -> View:
    """Choose the first row, also when another one becomes the first."""
    here = replace(view.here, cursor="", at=0, first=0)
    return settled(replace(view, way=view.way.seeing(here)))


def gone_to(view: View, place: Place) -> View:
    """Go one place further."""
    return _along(view, view.way.into(place))


def started_at(view: View, place: Place) -> View:
    """Go to a place, with the first screen as the only way back."""
    first = Way(view.way.visits[:1])
    return _along(view, first if place == first.here.place else first.into(place))


def _along(view: View, way: Way) -> View:
    return looked(replace(view, way=way, answer=None, notice=""))


def _opened(view: View) -> View:
    spot = view.chosen
    if spot is None or spot.row is None:
        return view
    place = view.tab.listing.opens(spot.place, spot.key, spot.row)
    if place is not None:
        return gone_to(view, place)
    return view if view.tab.listing.facts is None else _described(view)


def _back(view: View) -> View:
    here = view.here
    if here.wanted or here.faults_only:
        return seen_by(view, replace(here, wanted=EVERYTHING, faults_only=False))
    return _along(view, view.way.back())


def seen_by(view: View, visit: Visit) -> View:
    """Show the same place differently."""
    return looked(replace(view, way=view.way.seeing(visit)))


def filtered(view: View, text: str) -> View:
    """Filter the rows."""
    return seen_by(view, replace(view.here, wanted=Wanted(text)))


def _tabbed(by: int) -> Move:
    def move(view: View) -> View:
        count = len(view.screen.tabs)
        return tab_chosen(view, (view.here.tab + by) % count)

    return move


def tab_chosen(view: View, tab: int) -> View:
    """Show another list of the place."""
    if not 0 <= tab < len(view.screen.tabs):
        return view
    return seen_by(view, view.here.on_tab(tab))


def _sorted(by: int) -> Move:
    def move(view: View) -> View:
        ordering = next_ordering(view.tab.listing, view.here.ordering, by)
        return seen_by(view, replace(view.here, ordering=ordering))

    return move


def sorted_by(view: View, column: str) -> View:
    """Sort by a column; reverse the order if it is sorted by it already."""
    now = view.here.ordering or view.tab.listing.order
    if now.column == column:
        return _reversed(view)
    ordering = ordering_by(view.tab.listing, column)
    return seen_by(view, replace(view.here, ordering=ordering))


def _reversed(view: View) -> View:
    now = view.here.ordering or view.tab.listing.order
    turned = Ordering(now.column, descending=not now.descending)
    return seen_by(view, replace(view.here, ordering=turned))


def _faults(view: View) -> View:
    return seen_by(view, replace(view.here, faults_only=not view.here.faults_only))


def _frozen(view: View) -> View:
    held = None if view.held else view.picture
    badge = view.badge._replace(frozen=held is not None)
    return looked(replace(view, held=held, badge=badge))


def _described(view: View) -> View:
    """Show all facts of the chosen row, on a page of its own."""
    spot = view.chosen
    if spot is None or spot.row is None:
        return view
    opened = view.tab.listing.opens(spot.place, spot.key, spot.row)
    if opened is not None and opened.noun in {"event", "operation", "session", "record"}:
        return gone_to(view, opened)
    facts = facts_of(view.tab.listing, spot.row, view.pen)
    width = view.size[0] - 4
    rows = tuple((row.label, row.text) for row in detail_rows(facts, width))
    return gone_to(view, Place("facts", spot.place.group, spot.place.stream, spot.key, lines=rows))


def _events(view: View) -> View:
    """Show the events of the chosen row."""
    spot = view.chosen
    if spot is None:
        return gone_to(view, Place("events"))
    if isinstance(spot.row, GroupRow):
        return gone_to(view, Place("events", group=spot.row.key))
    if isinstance(spot.row, MemberRow):
        return gone_to(view, Place("events", name=spot.row.member.client_id))
    if isinstance(spot.row, JobRow) or spot.place.noun == "job":
        name = spot.row.job.name if isinstance(spot.row, JobRow) else spot.place.name
        return gone_to(view, Place("events", name=name))
    if spot.stream:
        return gone_to(view, Place("events", group=spot.group, stream=spot.stream))
    return gone_to(view, Place("events", group=spot.group))


def _menu(view: View) -> View:
    if view.here.place.noun == "actions" or view.badge.read_only:
        return view
    spot = view.chosen
    return gone_to(replace(view, spot=spot), Place("actions"))


def _records_from(by: int) -> Move:
    """Show the records of a stream so much further on."""

    def move(view: View) -> View:
        place = view.here.place
        records = view.answer.records if view.answer else ()
        if place.noun != "stream" or not records:
            return view
        first = records[0].offset
        start = max(0, first + by) if by < 0 else records[-1].offset + 1
        here = Visit(replace(place, offset=start))
        return looked(replace(view, way=view.way.seeing(here)))

    return move


MOVES: Mapping[str, Move] = {
    "up": moved(-1),
    "down": moved(1),
    "page_up": _paged(-1),
    "page_down": _paged(1),
    "top": _top,
    "bottom": _bottom,
    "open": _opened,
    "back": _back,
    "next_tab": _tabbed(1),
    "previous_tab": _tabbed(-1),
    "sort_left": _sorted(-1),
    "sort_right": _sorted(1),
    "reverse": _reversed,
    "faults": _faults,
    "freeze": _frozen,
    "describe": _described,
    "events": _events,
    "actions": _menu,
    "help": lambda view: gone_to(view, Place("help")),
    "later_records": _records_from(1),
    "earlier_records": _records_from(-RECORDS_PAGE),
}
"""The moves, by the names in the table of keys."""
