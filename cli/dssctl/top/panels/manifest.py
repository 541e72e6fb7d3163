"""The manifest of a job as a picture: one sign for each chunk, or for several if there are many.

Chunks are published in the order of their numbers, so a count tells which are. Invariant: the shape
of a sign says the same as its colour; a legend explains the shapes.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from dss_core.counted import counted
from dssctl.top.lists.listing import Pen
from dssctl.top.paint.spans import EMPTY, Line, Look, Span, line

if TYPE_CHECKING:
    from dss_client import Job, JobChunk

_EVERY = 8
"""How many signs stand between two blanks, so that they can be counted."""


def manifest_lines(
    job: "Job", chunks: "Sequence[JobChunk]", width: int, height: int, pen: Pen
) -> list[Line]:
    """All chunks in at most so many lines, and the legend."""
    across = max(_EVERY, (width + 1) // (_EVERY + 1) * _EVERY)
    room = max(1, across * (height - 1))
    each = max(1, -(-job.chunks // room))
    idle = {chunk.number for chunk in chunks if chunk.result and not chunk.result.records}
    signs = [
        _sign(job, idle, first, min(first + each, job.chunks), pen)
        for first in range(0, job.chunks, each)
    ]
    rows = [_row(signs[at : at + across]) for at in range(0, len(signs), across)]
    rows += [EMPTY] * (height - 1 - len(rows))
    return [*rows[: height - 1], legend(each, pen)] if height > 0 else []


def _row(signs: Sequence[Span]) -> Line:
    """Join signs of the same look into one span."""
    spans: list[Span] = []
    for index, sign in enumerate(signs):
        gap = " " if index and index % _EVERY == 0 else ""
        if spans and spans[-1].look == sign.look:
            spans[-1] = Span(spans[-1].text + gap + sign.text, sign.look)
        else:
            spans += [Span(gap), sign] if gap else [sign]
    return line(*spans)


def _sign(job: "Job", idle: Collection[int], first: int, end: int, pen: Pen) -> Span:
    """The sign for the chunks from ``first`` up to ``end``."""
    heat = pen.glyphs.heat
    if end <= job.published:
        without = all(number in idle for number in range(first, end))
        return Span(heat[1], "good") if without else Span(pen.glyphs.bars[-1], "good")
    if job.published < first or job.state in {"done", "cancelled"}:
        return Span(heat[0], "dim")
    if job.state == "failed":
        return Span(pen.glyphs.bad, "bad")
    look: Look = "accent" if job.driver_lives and job.state == "active" else "warn"
    return Span(heat[2], look)


def legend(each: int, pen: Pen) -> Line:
    """What the signs mean."""
    heat = pen.glyphs.heat
    text = (
        f"{pen.glyphs.bars[-1]} published {heat[1]} without records {heat[2]} next {heat[0]} open"
    )
    many = f", {counted(each, 'chunk')} a sign" if each > 1 else ""
    return line(Span(text + many, "dim"))
