"""Text with a look, measured in terminal cells.

Invariant: a line that is fitted takes exactly the given cells.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from dssctl.output.escape import escaped
from dssctl.output.folding import pieces_of, places

Look: TypeAlias = Literal["", "dim", "strong", "head", "good", "warn", "bad", "accent", "key"]
"""The meaning of a span, not its colour."""


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    look: Look = ""


Line: TypeAlias = tuple[Span, ...]

EMPTY: Line = ()


def line(*parts: str | Span) -> Line:
    """A line of texts and spans, without empty ones."""
    spans = (part if isinstance(part, Span) else Span(part) for part in parts)
    return tuple(span for span in spans if span.text)


def said(text: str, look: Look = "") -> Span:
    """A span of a text from outside, made safe."""
    return Span(escaped(text), look)


def width_of(spans: Iterable[Span]) -> int:
    """The cells that it takes."""
    return sum(places(span.text) for span in spans)


def text_of(spans: Iterable[Span]) -> str:
    """The text without looks."""
    return "".join(span.text for span in spans)


def cut(text: str, width: int, mark: str) -> str:
    """The text in at most so many cells; the mark ends a text that is cut."""
    if places(text) <= width:
        return text
    kept, used = [], 0
    room = width - places(mark)
    for char in text:
        size = places(char)
        if used + size > room:
            break
        kept.append(char)
        used += size
    return ("".join(kept) + mark)[: max(0, width)] if width > 0 else ""


def cell(text: str, width: int, mark: str, *, right: bool = False) -> str:
    """The text in exactly so many cells."""
    text = cut(text, width, mark)
    blank = " " * (width - places(text))
    return blank + text if right else text + blank


def fitted(spans: Sequence[Span], width: int, mark: str) -> Line:
    """The line in exactly so many cells."""
    used = 0
    kept: list[Span] = []
    for span in spans:
        size = places(span.text)
        if used + size > width:
            kept.append(Span(cut(span.text, width - used, mark), span.look))
            used += places(kept[-1].text)
            break
        kept.append(span)
        used += size
    if used < width:
        kept.append(Span(" " * (width - used)))
    return tuple(span for span in kept if span.text)


def beside(left: Line, right: Line, width: int, mark: str) -> Line:
    """A line with one part at the left edge, which is cut if need be, and one at the right."""
    room = width - width_of(right)
    if room <= 0:
        return fitted(left, width, mark)
    return (*fitted(left, room, mark), *right)


def boxed(
    title: Line, lines: Sequence[Line], width: int, height: int, glyphs: "BoxGlyphs"
) -> tuple[Line, ...]:
    """Lines in a frame with a title, exactly so high and wide."""
    mark, inner = glyphs.more, width - 4
    shown = fitted(title, min(width_of(title), width - 5), mark)
    rule = glyphs.across * (width - width_of(shown) - 5)
    top: Line = (
        Span(glyphs.corners[0] + glyphs.across + " ", "dim"),
        *shown,
        Span(" " + rule + glyphs.corners[1], "dim"),
    )
    side = glyphs.down
    body = [*lines[: height - 2], *([EMPTY] * (height - 2 - len(lines)))]
    bottom = glyphs.corners[2] + glyphs.across * (width - 2) + glyphs.corners[3]
    return (
        top,
        *(
            (Span(side + " ", "dim"), *fitted(each, inner, mark), Span(" " + side, "dim"))
            for each in body
        ),
        (Span(bottom, "dim"),),
    )


class BoxGlyphs(NamedTuple):
    """The signs of a frame."""

    corners: str
    across: str
    down: str
    more: str


def joined(blocks: Sequence[Sequence[Line]], gap: str = "") -> tuple[Line, ...]:
    """Blocks of equal heights beside each other; each line of a block is as wide as the block."""
    rows = zip(*blocks, strict=True)
    found: list[Line] = []
    for row in rows:
        spans: list[Span] = []
        for index, part in enumerate(row):
            if index and gap:
                spans.append(Span(gap))
            spans += part
        found.append(tuple(spans))
    return tuple(found)


def wrapped(text: str, width: int) -> tuple[str, ...]:
    """A safe text in lines, broken between words where it can be."""
    return tuple(pieces_of(text, max(1, width)))
