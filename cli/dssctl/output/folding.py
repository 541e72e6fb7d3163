"""Fitting rows onto a terminal: broken between cells, and inside a cell between words only.

Invariant: no line is wider than the terminal, unless a single character is, and nothing is left
out. Knows cells by their text and their place; not what they mean.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest

TABLE_INDENT = 4
"""Before the rest of a row that a terminal's line does not hold."""

TABLE_TEXT_COLUMNS_MIN = 24
"""A text in the last column is broken between words there if so much room is left for it; four or
five words a line are still read as a text."""


GAP = "  "

Place = tuple[int, int]
"""A column, and its width in a line."""
Layout = tuple[tuple[Place, ...], ...]
"""The columns of each line that a row takes."""


def layout_of(widths: Sequence[int], columns: int | None, *, text_last: bool) -> Layout:
    """Where the cells of a row stand; ``columns`` is the terminal's width, None without one."""
    if columns is None or sum(widths) + len(GAP) * (len(widths) - 1) <= columns:
        return (tuple(enumerate(widths)),)
    room = columns - sum(width + len(GAP) for width in widths[:-1])
    if text_last and room >= min(widths[-1], TABLE_TEXT_COLUMNS_MIN):
        return (tuple(enumerate((*widths[:-1], room))),)
    lines: list[list[Place]] = []
    left = 0
    for index, width in enumerate(widths):
        if lines and width + len(GAP) <= left:
            lines[-1].append((index, width))
            left -= width + len(GAP)
            continue
        whole = columns - (TABLE_INDENT if lines else 0)
        placed = min(width, whole)
        lines.append([(index, placed)])
        left = whole - placed
    return tuple(map(tuple, lines))


def folded(cells: Sequence[str], layout: Layout) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """The lines of a row: an indent, and pieces of cells with their columns, not padded yet."""
    for number, line in enumerate(layout):
        indent = TABLE_INDENT if number else 0
        wrapped = [tuple(pieces_of(cells[column], width)) for column, width in line]
        for pieces in zip_longest(*wrapped, fillvalue=""):
            yield indent, [(column, piece) for (column, _), piece in zip(line, pieces, strict=True)]


def places(text: str) -> int:
    """How many places of a terminal the text takes."""
    return len(text) if text.isascii() else sum(map(_places_of, text))


@lru_cache(maxsize=4_096)
def _places_of(char: str) -> int:
    # A mark stands over the character before it; the one that makes that an emoji widens it.
    if unicodedata.category(char) in ("Mn", "Me") and char != "\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def pieces_of(text: str, width: int) -> Iterator[str]:
    """The text in pieces of at most that width, broken behind a blank where there is one."""
    while places(text) > width:
        end = used = 0
        while end < len(text) and used + _places_of(text[end]) <= width:
            used += _places_of(text[end])
            end += 1
        end = max(end, 1)
        blank = text.rfind(" ", 1, end + 1)
        if blank > 0:
            end = blank + 1
        yield text[:end].rstrip(" ")
        text = text[end:]
    yield text
