"""Lines on a terminal; only cells that changed are drawn again.

Invariant: what is drawn is the last sheet that was shown.
"""

from itertools import zip_longest
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from dssctl.output.folding import places
from dssctl.top.paint.spans import EMPTY, Line, width_of


class Canvas(Widget, can_focus=True):
    """Draws lines, one of them as the chosen one."""

    LOOKS: ClassVar[tuple[str, ...]] = (
        "dim", "strong", "head", "good", "warn", "bad", "accent", "key", "chosen",
    )  # fmt: skip
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"canvas--{look}" for look in LOOKS}
    DEFAULT_CSS = """
    Canvas { height: 1fr; width: 1fr; background: $background; color: $foreground; }
    Canvas > .canvas--dim { color: $foreground 60%; }
    Canvas > .canvas--strong { text-style: bold; }
    Canvas > .canvas--head { color: $foreground 70%; text-style: bold; }
    Canvas > .canvas--good { color: $text-success; }
    Canvas > .canvas--warn { color: $text-warning; }
    Canvas > .canvas--bad { color: $text-error; text-style: bold; }
    Canvas > .canvas--accent { color: $text-primary; }
    Canvas > .canvas--key { color: $text-primary; text-style: bold; }
    Canvas > .canvas--chosen { background: $primary 40%; text-style: bold; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._styles: dict[str, Style] = {}
        self._lines: tuple[Line, ...] = ()
        self._chosen: tuple[int, int, int] | None = None
        """The line of the chosen row, and its first and last column."""

    def show(self, lines: tuple[Line, ...], chosen: tuple[int, int, int] | None = None) -> None:
        """Draw these lines where they differ from the present ones."""
        regions = [
            Region(start, y, end - start, 1)
            for y, (before, now) in enumerate(zip_longest(self._lines, lines, fillvalue=EMPTY))
            if before != now
            for start, end in [changed(before, now)]
        ]
        if chosen != self._chosen:
            marked = (each for each in (self._chosen, chosen) if each is not None)
            regions += [Region(start, y, end - start, 1) for y, start, end in marked]
        self._lines, self._chosen = lines, chosen
        if regions:
            self.refresh(*regions)

    def render_line(self, y: int) -> Strip:
        """One line, in Textual's form."""
        style = self._styles.get
        spans = self._lines[y] if y < len(self._lines) else EMPTY
        segments = [Segment(text, style(look) or self._style(look)) for text, look in spans]
        base = self._style("")
        strip = Strip(segments).adjust_cell_length(self.size.width, base)
        if self._chosen is None or self._chosen[0] != y:
            return strip
        # The terminal has just become smaller, and the lines are not made anew yet.
        start, end = (min(at, self.size.width) for at in self._chosen[1:])
        if start >= end:
            return strip
        before, row, after = strip.divide((start, end, self.size.width))
        # Put over the cells, so that the row is visible whatever they look like.
        mark = self.get_component_rich_style("canvas--chosen")
        over = Style(bgcolor=mark.bgcolor, bold=True)
        marked = Strip([Segment(text, (style or base) + over) for text, style, _ in row])
        return Strip.join((before, marked, after))

    def notify_style_update(self) -> None:
        """The theme is another one."""
        self._styles.clear()
        super().notify_style_update()

    def _style(self, look: str) -> Style:
        """The style of a look in the present theme."""
        if look not in self._styles:
            style = self.rich_style
            if look:
                found = self.get_component_rich_style(f"canvas--{look}")
                style += Style(color=found.color, bold=found.bold)
            self._styles[look] = style
        return self._styles[look]


def changed(before: Line, now: Line) -> tuple[int, int]:
    """Between which columns two lines differ, by whole spans."""
    start = index = 0
    while index < min(len(before), len(now)) and before[index] == now[index]:
        start += places(now[index].text)
        index += 1
    width = max(width_of(before), width_of(now))
    if width_of(before) != width_of(now):
        return start, width
    end, back = width, 1
    while back <= min(len(before), len(now)) - index and before[-back] == now[-back]:
        end -= places(now[-back].text)
        back += 1
    return start, max(start, end)
