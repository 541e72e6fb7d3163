"""The signs that are drawn with, in two sets: one for most terminals, one in plain ASCII.

Invariant: each sign takes one place, and says by its shape what it says by its colour.
"""

import sys
from dataclasses import dataclass

from dssctl.top.paint.spans import BoxGlyphs


@dataclass(frozen=True, slots=True)
class Glyphs:
    """What lines are drawn of."""

    box: BoxGlyphs
    bars: str
    """From nothing to all."""
    heat: str
    """Of a stream, from no lag to much."""
    up: str
    down: str
    level: str
    more: str
    """Ends a text that did not fit."""
    good: str
    bad: str
    live: str
    away: str
    pointer: str
    between: str
    """Between the places of the way."""
    dots: bool
    """Whether a chart may be drawn in dots."""
    area: str
    line: str
    """What the parts of a chart look like."""
    free: str
    """A stream that nobody holds."""
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
    """The set to draw with; plain where the terminal's encoding has nothing else."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    return ASCII if ascii_only or not encoding.startswith("utf") else FULL
