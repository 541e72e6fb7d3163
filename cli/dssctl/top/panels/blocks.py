"""Blocks that panels are built from.

Invariant: a block is exactly as high and as wide as it was asked to be.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from dssctl.top.lists.details import fact_lines
from dssctl.top.lists.listing import Listing, Pen, Scene, layout, row_line, shown
from dssctl.top.model.places import Visit
from dssctl.top.model.trends import Trend
from dssctl.top.paint import amounts
from dssctl.top.paint.charts import chart
from dssctl.top.paint.spans import EMPTY, Line, Span, boxed, fitted, line

Panel: TypeAlias = Callable[[Scene, int, int], Sequence[Line]]
"""Called with the scene, a width and a height."""


def filled(lines: Sequence[Line], width: int, height: int, pen: Pen) -> list[Line]:
    """Lines cut and padded to a block."""
    more = pen.glyphs.more
    block = [fitted(each, width, more) for each in lines[:height]]
    return block + [fitted(EMPTY, width, more)] * (height - len(block))


def rates_block(trend: Trend, width: int, height: int, pen: Pen) -> list[Line]:
    """A chart of arrivals against acknowledgements, with a title that names both."""
    last = trend[-1] if trend else None
    area, drawn = pen.glyphs.area, pen.glyphs.line
    title = line(
        Span(f"{area} acked ", "dim"),
        f"{amounts.rate(last.acks if last else 0)}/s",
        Span(f"  {drawn} arriving ", "dim"),
        f"{amounts.rate(last.arrivals if last else 0)}/s",
    )
    acks, arrivals = [each.acks for each in trend], [each.arrivals for each in trend]
    rows = chart(acks, arrivals, width, height - 1, pen.glyphs)
    return filled([title, *(line(Span(row, "accent")) for row in rows)], width, height, pen)


def lag_block(trend: Trend, width: int, height: int, pen: Pen) -> list[Line]:
    """A chart of the lag."""
    lags = [float(each.lag) for each in trend]
    now, top = (lags[-1] if lags else 0), max(lags, default=0)
    title = line(
        Span("lag ", "dim"), amounts.count(now), Span(f"  most {amounts.count(top)}", "dim")
    )
    rows = chart(lags, (), width, height - 1, pen.glyphs)
    return filled([title, *(line(Span(row, "warn")) for row in rows)], width, height, pen)


def facts_block(facts: Sequence[tuple[str, str]], width: int, height: int, pen: Pen) -> list[Line]:
    """Names and texts, one pair below the other."""
    rows = fact_lines(facts, width)
    lines = [line(Span(row.label, "dim"), row.text) for row in rows]
    if len(lines) > height > 0:
        lines[height - 1] = line(Span(f"{len(lines) - height + 1} lines more: press d", "dim"))
    return filled(lines, width, height, pen)


def facts_in_two(facts: Sequence[tuple[str, str]], width: int, height: int, pen: Pen) -> list[Line]:
    """The same, in two columns if one is too short."""
    if len(fact_lines(facts, width)) <= height or width < 60:
        return facts_block(facts, width, height, pen)
    left = (width - 1) // 2
    half = (len(facts) + 1) // 2
    first = facts_block(facts[:half], left, height, pen)
    second = facts_block(facts[half:], width - 1 - left, height, pen)
    return [(*one, Span(" "), *other) for one, other in zip(first, second, strict=True)]


def rows_block(listing: Listing[Any], scene: Scene, width: int, height: int) -> list[Line]:
    """The first rows of a list, without a chosen one."""
    found = shown(listing, scene, Visit(scene.place))
    placed = layout(listing, width)
    lines = [row_line(placed, found.rows[key], scene.pen) for key in found.keys[:height]]
    if not lines:
        lines = [line(Span(listing.empty, "dim"))]
    return filled(lines, width, height, scene.pen)


def indented(lines: Sequence[Line]) -> list[Line]:
    """Lines with a blank on either side, like those above and below them."""
    return [(Span(" "), *each, Span(" ")) for each in lines]


def box(title: Line, lines: Sequence[Line], width: int, height: int, pen: Pen) -> list[Line]:
    """A block in a frame."""
    return list(boxed(title, lines, width, height, pen.glyphs.box))
