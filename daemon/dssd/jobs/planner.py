"""Cuts what a job reads into chunks. Pure.

::

    storage topic 0   p0 ├────┼────┼────┤      a chunk has a share of every partition, so the
                      p1 ├──┼──┼──┤            load is even, and chunks of one storage topic come
    storage topic 1   p0      ├───┼───┤        before those of the next one

Invariant: each offset is in one chunk. Of one stream, a later chunk has later offsets; so who
publishes the chunks in order keeps the order of each key.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from dss_core.changes import SourceRange
from dssd.jobs.model import ChunkInput, PlannedChunk


@dataclass(frozen=True, slots=True)
class Measured:
    """A range, and how large it is."""

    range: SourceRange
    bytes: int


def cut(measured: Sequence[Measured], chunk_bytes: int) -> Iterator[PlannedChunk]:
    """Chunks of about so many bytes; the ranges come in the order of their storage topics."""
    for _, group in groupby(measured, key=lambda one: one.range.storage_topic_id):
        own = [one for one in group if one.range.start < one.range.end]
        size = sum(one.bytes for one in own)
        pieces = max(1, -(-size // chunk_bytes))
        for piece in range(pieces if own else 0):
            ranges = [_share(one.range, piece, pieces) for one in own]
            kept = tuple(each for each in ranges if each.start < each.end)
            records = sum(each.end - each.start for each in kept)
            if kept:
                yield PlannedChunk(ChunkInput(kept), records, size // pieces)


def _share(whole: SourceRange, piece: int, pieces: int) -> SourceRange:
    length = whole.end - whole.start
    start = whole.start + length * piece // pieces
    return replace(whole, start=start, end=whole.start + length * (piece + 1) // pieces)
