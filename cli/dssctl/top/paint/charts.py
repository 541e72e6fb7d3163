"""Charts of characters: a line of bars, two rates against each other, streams by heat.

Invariant: a chart takes exactly the given cells, whatever its values are.
"""

from collections.abc import Sequence

from dssctl.top.limits import HEAT_FEW, HEAT_MANY, HEAT_SOME, TREND_SAMPLES
from dssctl.top.paint.glyphs import Glyphs

_FULL_LEFT = (0x40, 0x04, 0x02, 0x01)
_FULL_RIGHT = (0x80, 0x20, 0x10, 0x08)
_BRAILLE = 0x2800
_DOTS_DOWN = 4
_DOTS_ACROSS = 2


def bars(values: Sequence[float], width: int, glyphs: Glyphs) -> str:
    """The newest values as a line of bars, the newest at the right.

    If they differ little, the upper half of a bar shows only the difference: a line of bars shows
    the direction, and the amount stands beside it.
    """
    shown = values[-width:] if width > 0 else ()
    top, low = max(shown, default=0), min(shown, default=0)
    low = max(0, 2 * low - top) if low < top else 0
    levels = glyphs.bars
    steps = len(levels) - 1

    def bar(value: float) -> str:
        return levels[max(1, round((value - low) / (top - low) * steps)) if value > 0 else 1]

    return "".join(map(bar, shown)).rjust(max(0, width))


def gauge(share: float, width: int, glyphs: Glyphs) -> str:
    """A share of a whole as a bar."""
    full = round(min(1.0, max(0.0, share)) * width)
    return glyphs.bars[-1] * full + glyphs.heat[0] * (width - full)


def chart(
    filled: Sequence[float], drawn: Sequence[float], width: int, height: int, glyphs: Glyphs
) -> tuple[str, ...]:
    """One series as a filled area, and another as a line over it, cut out of it where it is below.

    So both can be told apart without a colour.
    """
    if width <= 0 or height <= 0:
        return ()
    if not glyphs.dots:
        return _in_letters(filled, drawn, width, height)
    down, across = height * _DOTS_DOWN, width * _DOTS_ACROSS
    top = max((*filled[-across:], *drawn[-across:]), default=0)
    areas, points = _levels(filled, across, down, top), _levels(drawn, across, down, top)
    cells = [[0] * width for _ in range(height)]
    for x in range(across):
        for y in _column(areas[x], points[x], points[max(0, x - 1)]):
            row, dot = height - 1 - y // _DOTS_DOWN, y % _DOTS_DOWN
            bits = _FULL_RIGHT if x % _DOTS_ACROSS else _FULL_LEFT
            cells[row][x // _DOTS_ACROSS] |= bits[dot]
    return tuple("".join(chr(_BRAILLE + bits) for bits in row) for row in cells)


def _levels(values: Sequence[float], count: int, steps: int, top: float) -> list[int]:
    """The newest values as heights in dots, from 0; -1 where there is no value."""
    each = max(1, count // TREND_SAMPLES)  # dots across for each sample
    heights = [
        round(value / top * (steps - 1)) if top > 0 else 0
        for value in values[-((count + each - 1) // each) :]
        for _ in range(each)
    ]
    return ([-1] * count + heights)[-count:]


def _column(area: int, point: int, before: int) -> set[int]:
    """The dots of one column that are set."""
    dots = set(range(area)) if area > 0 else set()
    if point < 0:
        return dots
    # From the last height of the line to this one, so that it has no gaps.
    low, high = (point, point) if before < 0 else sorted((point, before))
    drawn = {point} if low == high else set(range(low + (before == low), high + (before != high)))
    inside = {y for y in drawn if y < area}
    return (dots - inside) | (drawn - inside)


def _in_letters(
    filled: Sequence[float], drawn: Sequence[float], width: int, height: int
) -> tuple[str, ...]:
    top = max((*filled[-width:], *drawn[-width:]), default=0)
    areas, points = _levels(filled, width, height, top), _levels(drawn, width, height, top)
    rows = []
    for y in reversed(range(height)):
        signs = (
            "*" if points[x] == y else ":" if areas[x] > 0 and y <= areas[x] - 1 else " "
            for x in range(width)
        )
        rows.append("".join(signs))
    return tuple(rows)


def heat(lag: int) -> int:
    """How hot a lag is, from 0 to 3."""
    return sum(lag >= bound for bound in (HEAT_FEW, HEAT_SOME, HEAT_MANY))
