"""The streams of a group, one sign each: their lag, and which are in trouble.

Invariant: the shape of a sign says the same as its colour; a legend explains the shapes.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from dssctl.output.escape import escaped
from dssctl.top.limits import HEAT_MANY, HEAT_SOME
from dssctl.top.lists.listing import Pen
from dssctl.top.lists.streams import StreamRow, stream_order
from dssctl.top.paint import amounts
from dssctl.top.paint.charts import heat
from dssctl.top.paint.spans import Line, Look, Span, cell, line

_LOOKS: tuple[Look, ...] = ("dim", "", "warn", "bad")
_LABEL_WIDTH = 14
_EVERY = 8
"""How many streams stand between two blanks, so that they can be counted."""


def heat_lines(rows: Sequence[StreamRow], width: int, height: int, pen: Pen) -> list[Line]:
    """The streams by storage topic, in lines; then the legend."""
    lines = list(_lines(rows, width, pen))
    room = max(0, height - 1)
    if len(lines) > room > 0:
        left = len(lines) - room + 1
        lines[room - 1 :] = [line(Span(f"{left} lines more", "dim"))]
    return [*lines[:room], legend(pen)] if height > 0 else []


def _lines(rows: Sequence[StreamRow], width: int, pen: Pen) -> Iterator[Line]:
    ordered = sorted(rows, key=lambda row: stream_order(row.stream))
    for name, streams in groupby(ordered, key=lambda row: row.stream.rpartition("/")[0]):
        signs = [sign_of(row, pen) for row in streams]
        across = max(_EVERY, (width - _LABEL_WIDTH) // (_EVERY + 1) * _EVERY)
        for at in range(0, len(signs), across):
            label = escaped(name) if at == 0 else ""
            spans = [Span(cell(label, _LABEL_WIDTH - 1, pen.glyphs.more) + " ", "dim")]
            for index, sign in enumerate(signs[at : at + across]):
                if index and index % _EVERY == 0:
                    spans.append(Span(" "))
                spans.append(sign)
            yield tuple(spans)


def sign_of(row: StreamRow, pen: Pen) -> Span:
    """The sign of a stream."""
    if row.state == "stalled":
        return Span(pen.glyphs.bad, "bad")
    if row.lagging and row.state in {"free", "revoked"}:
        return Span(pen.glyphs.free, "warn")
    degree = heat(row.lagging)
    return Span(pen.glyphs.heat[degree], _LOOKS[degree])


def legend(pen: Pen) -> Line:
    """What the signs mean."""
    signs = pen.glyphs.heat
    some, many = amounts.count(HEAT_SOME), amounts.count(HEAT_MANY)
    text = (
        f"{signs[0]} 0 {signs[1]} 1+ {signs[2]} {some}+ {signs[3]} {many}+ "
        f"{pen.glyphs.free} unread {pen.glyphs.bad} stalled"
    )
    return line(Span(text, "dim"))
