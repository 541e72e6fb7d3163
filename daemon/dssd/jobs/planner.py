"""Cuts what a job reads into chunks. Pure.

::

    storage topic 0   p0 ├────┼────┼────┤      a chunk has a share of every partition, so the
                      p1 ├──┼──┼──┤            load is even, and chunks of one storage topic come
    storage topic 1   p0      ├───┼───┤        before those of the next one

A stream may have several ranges, as with dead letters: then each chunk has a share of their total.
Invariant: each offset is in one chunk. A later chunk has later offsets of a stream, so publishing
the chunks in order keeps the order of each key.
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
    """Chunks of about so many bytes; the ranges come in the order of their streams."""
    for _, group in groupby(measured, key=lambda one: one.range.storage_topic_id):
        own = [one for one in group if one.range.start < one.range.end]
        size = sum(one.bytes for one in own)
        pieces = max(1, -(-size // chunk_bytes))
        streams = [
            [one.range for one in each]
            for _, each in groupby(own, key=lambda one: one.range.stream)
        ]
        shares = [_shares(each, pieces) for each in streams]
        for _ in range(pieces if own else 0):
            kept = tuple(part for share in shares for part in next(share))
            records = sum(each.end - each.start for each in kept)
            if kept:
                yield PlannedChunk(ChunkInput(kept), records, size // pieces)


def _shares(ranges: Sequence[SourceRange], pieces: int) -> Iterator[list[SourceRange]]:
    """Cut the ranges of one stream into equal pieces, in order."""
    length = sum(each.end - each.start for each in ranges)
    left = list(reversed(ranges))
    taken = 0
    for piece in range(1, pieces + 1):
        upto = length * piece // pieces
        share: list[SourceRange] = []
        while taken < upto:
            first = left.pop()
            end = min(first.end, first.start + upto - taken)
            share.append(replace(first, end=end))
            taken += end - first.start
            if end < first.end:
                left.append(replace(first, start=end))
        yield share
