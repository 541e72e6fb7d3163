"""The keys of sent records of a stream, for as long as the records may be out.

There is a piece of keys for each chunk that was read. Invariant: the key of each record that is out
is known; a piece of which no record is out is dropped in time, so this holds about as much as is
out. This module asks its owner what is out.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import compress

from dss_core.progress import Range

PIECES_MIN = 16
"""Up to so many pieces are kept without a check of which are needed."""


class SentKeys:
    """The keys of one stream; ``out`` gives the parts of a range that are out."""

    __slots__ = ("_bases", "_look_at", "_out", "_pieces")

    def __init__(self, out: Callable[[int, int], Sequence[Range]]) -> None:
        self._out = out
        self._bases: list[int] = []
        self._pieces: list[Sequence[int]] = []
        self._look_at = PIECES_MIN

    def note(self, base: int, keys: Sequence[int]) -> None:
        """Keep the keys of the records from ``base`` on."""
        at = bisect_right(self._bases, base)
        if at and self._bases[at - 1] == base:
            # The same place was read again: the longer piece contains the other.
            if len(keys) > len(self._pieces[at - 1]):
                self._pieces[at - 1] = keys
            return
        self._bases.insert(at, base)
        self._pieces.insert(at, keys)
        if len(self._bases) > self._look_at:
            self._forget(base)

    def _forget(self, newest: int) -> None:
        pairs = zip(self._bases, self._pieces, strict=True)
        kept = [
            (base, keys)
            for base, keys in pairs
            if base == newest or self._out(base, base + len(keys))
        ]
        self._bases = [base for base, _ in kept]
        self._pieces = [keys for _, keys in kept]
        self._look_at = max(PIECES_MIN, 2 * len(kept))

    def of(self, offset: int) -> int:
        """The key of a record that is out; 0: it has none."""
        at = bisect_right(self._bases, offset) - 1
        while at >= 0:
            # A piece that was read later may overlap an earlier one.
            row = offset - self._bases[at]
            if row < len(self._pieces[at]):
                return self._pieces[at][row]
            at -= 1
        raise KeyError(offset)

    def out_of(self, keys: Collection[int], start: int, end: int) -> list[tuple[int, int]]:
        """Offset and key of what is out in ``[start, end)`` and has one of the keys, in order."""
        spans = self._out(start, end)
        return [each for low, high in spans for each in self._among(keys, low, high)]

    def _among(self, keys: Collection[int], low: int, high: int) -> Iterator[tuple[int, int]]:
        while low < high:
            at = bisect_right(self._bases, low) - 1
            while at >= 0 and low - self._bases[at] >= len(self._pieces[at]):
                at -= 1
            if at < 0:
                raise KeyError(low)
            base, piece = self._bases[at], self._pieces[at]
            end = min(high, base + len(piece))
            row = low - base
            own = piece[row : end - base]
            found = compress(range(low, end), map(keys.__contains__, own))
            yield from ((offset, piece[offset - base]) for offset in found)
            low = end
