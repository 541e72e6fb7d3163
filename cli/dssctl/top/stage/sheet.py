"""A view as the lines of a terminal.

Invariant: exactly as many lines as the terminal has, each exactly as wide.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from dssctl.output.escape import escaped
from dssctl.top.lists.listing import (
    Column,
    Layout,
    facts_of,
    header_line,
    layout,
    row_line,
)
from dssctl.top.model.picture import Picture
from dssctl.top.paint import frame
from dssctl.top.paint.glyphs import Glyphs
from dssctl.top.paint.spans import EMPTY, Line, Span, fitted, joined, line
from dssctl.top.panels.blocks import box, facts_block
from dssctl.top.stage.keys import KEYS
from dssctl.top.stage.screens import title_of
from dssctl.top.stage.view import View

COLUMNS_MIN = 40
LINES_MIN = 12
"""A smaller terminal has no room for a list and its frame."""


class Sheet(NamedTuple):
    """The contents of a terminal."""

    lines: tuple[Line, ...]
    cursor: int | None
    """The line of the chosen row."""
    cursor_from: int
    cursor_to: int
    """The first and the last column of that row."""
    rows_from: int
    """The line of the first row that is shown."""
    rows: int
    headers: int | None
    """The line of the headers."""
    layout: Layout | None

    def column_at(self, x: int) -> "Column[object] | None":
        """The column whose header is at a cell."""
        from dssctl.top.lists.listing import column_at

        return None if self.layout is None else column_at(self.layout, x - 2)


def sheet(view: View) -> Sheet:
    """The lines of a view."""
    width, height = view.size
    if width < COLUMNS_MIN or height < LINES_MIN:
        return _too_small(view)
    glyphs, picture, badge = view.glyphs, view.seen, view.badge
    above = _strip(view, view.above_lines, below=False)
    listed, placed = _listed(view)
    lines = (
        *_once(view, badge, lambda: frame.heading(_with_away(view), badge, width, glyphs)),
        *above,
        *listed,
        *_strip(view, view.below_lines, below=True),
        frame.news(picture, width, glyphs),
        _hints(view),
        _trail(view),
    )
    headers = frame.HEADING_LINES + len(above) + 1
    rows_from = headers + bool(placed and _has_headers(placed))
    shown = min(view.rows_shown, len(view.found.keys) - view.here.first)
    return Sheet(
        lines,
        cursor=rows_from + view.index - view.here.first if view.found.keys else None,
        cursor_from=1,
        cursor_to=view.list_width - 2,
        rows_from=rows_from,
        rows=max(0, shown),
        headers=headers if placed and _has_headers(placed) else None,
        layout=placed,
    )


def _with_away(view: View) -> Picture:
    """A frozen picture with the present time, and with whether the daemon is away."""
    newest = view.picture
    return (
        view.seen
        if view.held is None
        else replace(view.held, away=newest.away, now_ms=newest.now_ms)
    )


def _too_small(view: View) -> Sheet:
    width, height = view.size
    said = line(f"{COLUMNS_MIN} by {LINES_MIN} at least")
    lines = [fitted(said, width, ""), *[fitted(EMPTY, width, "")] * (height - 1)]
    return Sheet(tuple(lines[:height]), None, 0, 0, 0, 0, None, None)


def _has_headers(placed: Layout) -> bool:
    return any(column.header for column, _ in placed.columns)


def _strip(view: View, height: int, *, below: bool) -> Sequence[Line]:
    strip = view.screen.below if below else view.screen.above
    if strip is None or not height:
        return ()
    width = view.size[0]
    return _once(view, (below, height), lambda: strip.panel(view.scene, width, height))


def _once(view: View, what: object, draw: Callable[[], Sequence[Line]]) -> Sequence[Line]:
    """A part that is drawn once for each look and terminal size."""
    key = (view.size, what)
    if key not in view.drawn:
        view.drawn[key] = tuple(draw())
    return view.drawn[key]


def _listed(view: View) -> tuple[Sequence[Line], Layout]:
    """The list in its frame, and the facts beside it."""
    listing, pen, found, here = view.tab.listing, view.pen, view.found, view.here
    placed = layout(listing, view.list_width - 4)
    lines: list[Line] = []
    if _has_headers(placed):
        lines.append(header_line(placed, here.ordering or listing.order, view.glyphs))
    keys = found.keys[here.first : here.first + view.rows_shown]
    first_row = len(lines)
    for key in keys:
        lines += _once(view, key, lambda row=found.rows[key]: [row_line(placed, row, pen)])  # type: ignore[misc]
    if not found.keys:
        lines.append(line(Span(_why_empty(view), "dim")))
    height = view.list_lines
    block = box(_title(view), lines, view.list_width, height, pen)
    if keys:
        # Below the frame's upper edge, and in the blank that begins every row.
        at = 1 + first_row + view.index - here.first
        block[at] = _pointed(block[at], view.glyphs)
    if not view.beside_width:
        return block, placed
    return joined([block, _beside(view, height)]), placed


def _pointed(row: Line, signs: Glyphs) -> Line:
    """The chosen row, marked by a sign too."""
    return (Span(signs.box.down, "dim"), Span(signs.pointer, "accent"), *row[1:])


def _why_empty(view: View) -> str:
    if not view.seen.complete:
        return "waiting for the daemon"
    if view.answer is not None and view.answer.failure:
        return escaped(view.answer.failure)
    if view.tab.question is not None and view.scene.answer is None:
        return "a recording has no daemon to ask" if view.badge.replayed else "asking the daemon"
    if view.found.of:
        return f"none of {view.found.of} is wanted: esc shows all"
    return view.tab.listing.empty


def _title(view: View) -> Line:
    """The lists of the screen, and how much of this one is shown."""
    here, found = view.here, view.found
    spans: list[str | Span] = []
    tabs = view.screen.tabs
    for index, tab in enumerate(tabs):
        title = f"{index + 1} {tab.listing.title}" if len(tabs) > 1 else tab.listing.title
        if index == here.tab:
            spans.append(Span(f"[{title}]" if len(tabs) > 1 else title, "strong"))
        else:
            spans.append(Span(f" {title} ", "dim"))
        spans.append(" ")
    if here.wanted or here.faults_only:
        spans.append(f" {len(found.keys)} of {found.of}")
        if here.wanted:
            spans.append(Span(f"  /{escaped(here.wanted.text)}", "accent"))
        if here.faults_only:
            spans.append(Span("  faults only", "warn"))
    elif found.of:
        spans.append(Span(f" {min(view.index + 1, found.of)}/{found.of}", "dim"))
    return line(*spans)


def _beside(view: View, height: int) -> Sequence[Line]:
    spot, pen, width = view.chosen, view.pen, view.beside_width
    if spot is None or spot.row is None:
        return box(EMPTY, (), width, height, pen)
    facts = facts_of(view.tab.listing, spot.row, pen)
    block = facts_block(facts, width - 4, height - 2, pen)
    return box(line(Span("Chosen", "strong")), block, width, height, pen)


def _hints(view: View) -> Line:
    if view.notice:
        return fitted(
            line(Span(f" {escaped(view.notice)}", "accent")), view.size[0], view.glyphs.more
        )
    pairs = [
        (key.shown, key.hint)
        for key in KEYS
        if key.hint and not (key.does == "next_tab" and len(view.screen.tabs) < 2)
    ]
    if view.badge.read_only:
        pairs = [pair for pair in pairs if pair[1] != "actions"]
    return frame.hints(pairs, view.size[0], view.glyphs)


def _trail(view: View) -> Line:
    titles = [title_of(visit.place) for visit in view.way.visits]
    return frame.trail(titles, "? help  ctrl+q quit", view.size[0], view.glyphs)
