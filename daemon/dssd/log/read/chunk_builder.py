"""Builds the answer of one read: consecutive frames, masked offsets, skipped offsets.

    asked          base                        held end         next
      │ skipped      │ frames, end to end         │ skipped       │
      ├──────────────┼────────────────────────────┼───────────────┤
      rejected, lost   masked in part: below asked  rejected
      or damaged       or rejected

Invariant: frames in an answer follow each other without a gap, so `base` and the number of records
say exactly which offsets they hold. An answer ends before a frame that would break that.
"""

from collections.abc import Iterable

from dss_core.progress import Range, Ranges, normalised
from dssd.log.port import Chunk

READ_BRIDGE_BYTES_MAX = 8 << 10
"""How many bytes of rejected frames go along, masked, between two frames with a match: cheaper than
an answer that ends before them."""


Piece = bytes | memoryview


class ChunkBuilder:
    """One answer while it grows. `at` is the next offset to look at."""

    __slots__ = (
        "_asked",
        "_base",
        "_bridge",
        "_bridge_bytes",
        "_bytes",
        "_bytes_max",
        "_damaged",
        "_held_end",
        "_lost",
        "_pieces",
        "_rejected",
        "at",
        "full",
    )

    def __init__(self, offset: int, bytes_max: int) -> None:
        self._asked = offset
        self._bytes_max = bytes_max
        self._pieces: list[Piece] = []
        self._bytes = 0
        self._base = 0
        self._held_end = 0
        self._rejected: list[Range] = []
        self._damaged: list[Range] = []
        self._lost: list[Range] = []
        self._bridge: list[Piece] = []
        self._bridge_bytes = 0
        self.at = offset
        self.full = False

    @property
    def holds_frames(self) -> bool:
        """Whether the answer holds frames."""
        return bool(self._pieces)

    @property
    def room_bytes(self) -> int:
        """How many more bytes fit; the first frame is taken whatever its size."""
        return self._bytes_max - self._bytes

    def take(
        self, pieces: Iterable[Piece], size: int, base: int, end: int, rejected: Ranges = ()
    ) -> None:
        """Take frames in, or end the answer before them."""
        if self._pieces and (self._bytes + self._bridge_bytes + size > self._bytes_max):
            self.full = True
            return
        if self._held_end != self.at and self._pieces and not self._take_bridge():
            self.full = True
            return
        if not self._pieces:
            self._base = base
        self._pieces += pieces
        self._bytes += size
        self._rejected += rejected
        self._held_end = self.at = end

    def _take_bridge(self) -> bool:
        """Take in the rejected frames since the last match, masked, if they are small."""
        if self._bridge_bytes > READ_BRIDGE_BYTES_MAX:
            return False
        self._pieces += self._bridge
        self._bytes += self._bridge_bytes
        self._rejected.append((self._held_end, self.at))
        self._bridge = []
        self._bridge_bytes = 0
        return True

    def reject(self, pieces: Iterable[Piece], size: int, end: int) -> None:
        """Pass over a frame that the filter rejects; ``pieces`` may be empty if it is large."""
        if self._pieces:
            self._bridge_bytes += size
            if self._bridge_bytes <= READ_BRIDGE_BYTES_MAX:
                self._bridge += pieces
        self.at = end

    def damage(self, end: int) -> None:
        """Pass over offsets that are unreadable, or end the answer before them."""
        if self._pieces:
            self.full = True
            return
        self._damaged.append((self.at, end))
        self.at = end

    def lose(self, end: int) -> None:
        """Pass over offsets that retention or a loss of power took, or end the answer before."""
        if self._pieces:
            self.full = True
            return
        self._lost.append((self.at, end))
        self._asked = self.at = end

    def chunk(self, end: int) -> Chunk:
        """The answer; ``end`` is the present end of the stream."""
        at_end = self.at >= end
        if not self._pieces:
            damaged, lost = normalised(self._damaged), normalised(self._lost)
            return Chunk(b"", (), 0, self.at, self.at, damaged, lost, at_end)
        frames = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        below_asked = (self._base, min(self._asked, self._held_end))
        return Chunk(
            frames=bytes(frames),
            mask=normalised((below_asked, *self._rejected)),
            records=self._held_end - self._base,
            base=self._base,
            next=self.at,
            damaged=normalised(self._damaged),
            lost=normalised(self._lost),
            at_end=at_end,
        )
