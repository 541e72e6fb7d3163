"""The signs of charts and frames in two sets: one for most terminals, one in plain ASCII.

Invariant: each sign takes one cell, and its shape says the same as its colour.
"""

import sys
from dataclasses import dataclass

from dssctl.top.paint.spans import BoxGlyphs


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The signs that lines are drawn of."""

    box: BoxGlyphs
    bars: str
    """Bars from nothing to all."""
    heat: str
    """Heat of a stream, from no lag to much."""
    up: str
    down: str
    level: str
    more: str
    """Ends a text that was cut."""
    good: str
    bad: str
    live: str
    away: str
    pointer: str
    between: str
    """Stands between the titles of the way."""
    dots: bool
    """Whether charts may be drawn in dots."""
    area: str
    line: str
    """The signs of a chart's parts."""
    free: str
    """A stream without a holder."""
    enter: str


FULL = Glyphs(
    box=BoxGlyphs("┌┐└┘", "─", "│", "…"),
    bars=" ▁▂▃▄▅▆▇█",
    heat="·░▒▓",
    up="↑",
    down="↓",
    level=" ",
    more="…",
    good="✓",
    bad="!",
    live="●",
    away="○",
    pointer="▶",
    between=" \u203a ",
    dots=True,
    area="⣿",
    line="⠒",
    free="○",
    enter="⏎",
)

ASCII = Glyphs(
    box=BoxGlyphs("++++", "-", "|", "~"),
    bars=" .:-=+*#",
    heat=".:+#",
    up="^",
    down="v",
    level=" ",
    more="~",
    good="ok",
    bad="!",
    live="*",
    away="x",
    pointer=">",
    between=" > ",
    dots=False,
    area=":",
    line="*",
    free="o",
    enter="enter",
)


def glyphs(*, ascii_only: bool) -> Glyphs:
    """The set to draw with; plain ASCII if the terminal's encoding has nothing else."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    return ASCII if ascii_only or not encoding.startswith("utf") else FULL
