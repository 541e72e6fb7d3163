"""The newest frames of all streams, in memory, so that readers at the tail touch no file.

The frames of one stream in one batch are one entry. Once all entries exceed the bound, the oldest
are dropped, whatever readers use. Entries of a removed stream are dropped in the same order, so
removing a stream costs nothing, however many others there are.

Invariant: the entries of a stream are consecutive and reach up to its end.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from dss_core.ids import StreamId
from dssd.log.writer_messages import Pieces, StoredFrames

TAIL_ENTRIES_AT_ONCE = 256
"""How many batches of frames in memory a read takes between two looks at the clock: some 60 us."""


TAIL_CACHE_OVERHEAD_BYTES = 512
"""What a cached run costs beside its bytes; keeps many small ones within the bound."""

TAIL_COMPACT_ENTRIES = 64
"""How many dropped entries the list of a stream may have before it is shortened."""


@dataclass(frozen=True, slots=True)
class CachedFrames:
    """Consecutive frames of a stream."""

    base: int
    end: int
    time_us: int
    """All of them were appended at this time."""
    bases: Sequence[int]
    pieces: Pieces
    bytes: int

    def frame_at(self, offset: int) -> int:
        """Index of the frame that holds the offset."""
        return bisect_right(self.bases, offset) - 1


class _StreamTail:
    """The entries of one stream, and their offsets for searching."""

    __slots__ = ("bases", "entries", "gone", "stream")

    def __init__(self, stream: StreamId) -> None:
        self.stream = stream
        self.bases: list[int] = []
        self.entries: list[CachedFrames | None] = []
        self.gone = 0

    def drop_first(self) -> None:
        self.entries[self.gone] = None
        self.gone += 1
        if self.gone >= TAIL_COMPACT_ENTRIES and self.gone * 2 >= len(self.entries):
            del self.bases[: self.gone]
            del self.entries[: self.gone]
            self.gone = 0


class TailCache:
    """Frames of many streams within one bound."""

    __slots__ = ("_bytes", "_bytes_max", "_order", "_streams")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._streams: dict[StreamId, _StreamTail] = {}
        self._order: deque[tuple[_StreamTail, int]] = deque()
        """The stream and the bytes of each entry, the oldest first."""

    @property
    def bytes(self) -> int:
        """The bytes that all entries take."""
        return self._bytes

    def add(self, stored: StoredFrames) -> None:
        """Add stored frames, and drop the oldest entries over the bound."""
        stream = StreamId(stored.segment.storage_topic_id, stored.partition)
        tail = self._streams.get(stream)
        if tail is None:
            tail = self._streams[stream] = _StreamTail(stream)
        entry = CachedFrames(
            stored.base, stored.end, stored.time_us, stored.bases, stored.pieces, stored.bytes
        )
        tail.bases.append(stored.base)
        tail.entries.append(entry)
        cost = _cost(entry)
        self._order.append((tail, cost))
        self._bytes += cost
        while self._bytes > self._bytes_max and self._order:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        tail, cost = self._order.popleft()
        self._bytes -= cost
        tail.drop_first()
        if tail.gone == len(tail.entries) and self._streams.get(tail.stream) is tail:
            del self._streams[tail.stream]

    def at(self, stream: StreamId, offset: int) -> CachedFrames | None:
        """The entry that holds the offset, or None."""
        return next(iter(self.from_offset(stream, offset, 1)), None)

    def from_offset(
        self, stream: StreamId, offset: int, entries_max: int = TAIL_ENTRIES_AT_ONCE
    ) -> Sequence[CachedFrames]:
        """The entry that holds the offset and those behind it; none where none holds it."""
        tail = self._streams.get(stream)
        if tail is None:
            return ()
        number = bisect_right(tail.bases, offset, lo=tail.gone) - 1
        if number < tail.gone:
            return ()
        found = cast("list[CachedFrames]", tail.entries[number : number + entries_max])
        return found if offset < found[0].end else ()

    def start(self, stream: StreamId) -> int | None:
        """The first offset that an entry of the stream holds, or None."""
        tail = self._streams.get(stream)
        return None if tail is None else tail.bases[tail.gone]

    def forget(self, stream: StreamId) -> None:
        """Hide the entries of a removed stream."""
        self._streams.pop(stream, None)


def _cost(entry: CachedFrames) -> int:
    return entry.bytes + TAIL_CACHE_OVERHEAD_BYTES * len(entry.bases)
