"""The log of a run as its readers see it; part of `dssd.log.port.Log`.

For each stream it keeps the readable frames. A frame is here once it is as durable as its topic
asks. Damaged frames are left out, so offsets between two frames are damaged, as in the real index,
unless they are known to be *lost*: the machine lost them, or they were never assigned. A frame on
bad *sectors* cannot be judged: a read ends before it, and one that begins at it fails. The real
`ChunkBuilder` gathers a read. `log_writer` and `topic_file` play what disks and producers do to the
log.

The content of a frame is a stand-in of 12 bytes, with the keys of its records::

    u32 base offset << 4 | records, little-endian    8 bytes, one a record: its key

    a key is its one character, 0 is the empty key, 255 no key and no record
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence

from dss_core.ids import StreamId
from dss_core.progress import Range, Ranges
from dss_sim.groups.history import Key
from dssd.log.port import Bounds
from dssd.log.read.chunk_builder import ChunkBuilder
from dssd.machines.delivery.events import ChunkRead, Read, ReadFailed
from dssd.machines.delivery.frame_plan import FrameSpans

FRAMES_A_READ = 3

FRAME_RECORDS_MAX = 8
_FRAME = struct.Struct(f"<I{FRAME_RECORDS_MAX}s")
_RECORDS_BITS = 4
_NO_KEY = 0xFF
_KEYS: tuple[Key, ...] = ("", *map(chr, range(1, _NO_KEY)), None)
"""The keys, by code."""
_CODES: Mapping[Key, int] = {key: code for code, key in enumerate(_KEYS)}

_READ_BYTES = FRAMES_A_READ * _FRAME.size


class SimulatedStream:
    """One stream."""

    __slots__ = ("bases", "end", "frames", "lost", "sectors", "stand_ins", "watchers")

    def __init__(self) -> None:
        self.frames: list[Range] = []
        """The readable frames, in order."""
        self.bases: list[int] = []
        self.stand_ins: dict[int, bytes] = {}
        """The stand-in of each frame, by its base."""
        self.end = 0
        self.lost: list[Range] = []
        self.sectors: set[int] = set()
        """The bases of frames whose reads fail for good."""
        self.watchers: dict[int, Callable[[], None]] = {}

    def fill(self, chunk: ChunkBuilder, every: int) -> None:
        """Gather frames from the chunk's place on."""
        number = max(bisect_right(self.bases, chunk.at) - 1, 0)
        while not chunk.full and chunk.at < self.end:
            before = chunk.at
            if number == len(self.frames):
                self._pass(chunk, self.end)
            elif (base := self.bases[number]) > chunk.at:
                self._pass(chunk, base)
            else:
                end = self.frames[number][1]
                if end > chunk.at and base in self.sectors:
                    return
                if end > chunk.at:
                    _take(chunk, self.stand_ins[base], base, end, every)
                number += 1
                continue
            assert chunk.full or chunk.at > before, "a read stands still"

    def _pass(self, chunk: ChunkBuilder, to: int) -> None:
        """Pass over offsets without a frame, as far as they are of one kind."""
        for start, end in self.lost:
            if start <= chunk.at < end:
                chunk.lose(min(end, to))
                return
            if chunk.at < start:
                to = min(to, start)
        chunk.damage(to)


def _take(chunk: ChunkBuilder, packed: bytes, base: int, end: int, every: int) -> None:
    rejected = masked(every, base, end)
    if len(rejected) == end - base:
        chunk.reject((packed,), _FRAME.size, end)
    else:
        chunk.take((packed,), _FRAME.size, base, end, rejected)


class SimulatedLog:
    """All streams."""

    def __init__(self) -> None:
        self._streams: dict[StreamId, SimulatedStream] = {}
        self._watched = 0
        self.unreadable_until_us: dict[StreamId, int] = {}
        """Reads of the stream fail before this time."""

    # Its writer's side

    def create(self, streams: Sequence[StreamId]) -> None:
        """Make empty streams."""
        for stream in streams:
            self._streams[stream] = SimulatedStream()

    def enter(self, stream: StreamId, base: int, keys: Sequence[Key]) -> None:
        """A frame of records with these keys can be read from now on."""
        found, end = self._streams[stream], base + len(keys)
        found.frames.append((base, end))
        found.bases.append(base)
        found.stand_ins[base] = _stand_in(base, keys)
        found.end = end
        for grown in list(found.watchers.values()):
            grown()

    def damage(self, stream: StreamId, frames: Iterable[Range]) -> None:
        """These frames can no longer be read."""
        found = self._streams[stream]
        gone = set(frames)
        found.frames = [frame for frame in found.frames if frame not in gone]
        found.bases = [base for base, _ in found.frames]

    def lose_sectors(self, stream: StreamId, frames: Iterable[Range]) -> None:
        """Reads of these frames fail from now on."""
        self._streams[stream].sectors.update(base for base, _ in frames)

    def lose(self, stream: StreamId, start: int, end: int) -> None:
        """Nothing is left from an offset on, and the stream goes on at another one."""
        found = self._streams[stream]
        kept = bisect_left(found.bases, start)
        del found.frames[kept:], found.bases[kept:]
        found.lost.append((start, end))
        found.end = end

    def claim(self, stream: StreamId, end: int) -> None:
        """The stream goes on at a higher offset, because bad bytes may have held those below it."""
        self._streams[stream].end = end

    def remove(self, streams: Sequence[StreamId]) -> None:
        """The streams are gone, with their topic."""
        for stream in streams:
            del self._streams[stream]

    # Its readers' side

    def __contains__(self, stream: StreamId) -> bool:
        """Whether there is such a stream."""
        return stream in self._streams

    def bounds(self, stream: StreamId) -> Bounds:
        """As the port says."""
        return Bounds(0, self._streams[stream].end, 0)

    def frames(self, stream: StreamId) -> Sequence[Range]:
        """The readable frames, in order."""
        return self._streams[stream].frames

    def watch(self, stream: StreamId, grown: Callable[[], None]) -> Callable[[], None]:
        """As the port says."""
        self._watched += 1
        number = self._watched
        watchers = self._streams[stream].watchers
        watchers[number] = grown

        def stop() -> None:
            watchers.pop(number, None)

        return stop

    def read(self, asked: Read, every: int) -> ChunkRead | ReadFailed:
        """Some frames from an offset on. Offsets divisible by ``every`` are masked; 0: none."""
        grant, at = asked.grant, asked.offset
        found = self._streams.get(asked.stream)
        if found is None or at >= found.end:
            return ChunkRead(grant, at, b"", (), 0, at, at)
        builder = ChunkBuilder(at, min(_READ_BYTES, asked.bytes_max))
        found.fill(builder, every)
        if builder.at == at:
            return ReadFailed(grant)
        chunk = builder.chunk(found.end)
        return ChunkRead(
            grant,
            at,
            chunk.frames,
            chunk.mask,
            chunk.records,
            chunk.base,
            chunk.next,
            chunk.lost,
            chunk.damaged,
            chunk.at_end,
        )


def masked(every: int, start: int, end: int) -> Ranges:
    """The offsets of ``[start, end)`` that a filter rejects, within these runs."""
    if not every:
        return ()
    first = -(-start // every) * every
    return tuple((offset, offset + 1) for offset in range(first, end, every))


def _stand_in(base: int, keys: Sequence[Key]) -> bytes:
    assert 0 < len(keys) <= FRAME_RECORDS_MAX
    codes = bytes([_CODES[key] for key in keys]).ljust(FRAME_RECORDS_MAX, bytes([_NO_KEY]))
    return _FRAME.pack(base << _RECORDS_BITS | len(keys), codes)


def cut_frames(frames: bytes) -> FrameSpans:
    """The places of consecutive stand-ins."""
    heads = [head for head, _ in _FRAME.iter_unpack(frames)]
    at = list(range(0, len(frames) + 1, _FRAME.size))
    bases = [head >> _RECORDS_BITS for head in heads]
    return FrameSpans(at, [*bases, bases[-1] + _records(heads[-1])])


def keys_in(frames: bytes) -> dict[int, Key]:
    """The keys of the records in consecutive stand-ins, by offset."""
    keys: dict[int, Key] = {}
    for head, codes in _FRAME.iter_unpack(frames):
        base = head >> _RECORDS_BITS
        keys.update(enumerate([_KEYS[code] for code in codes[: _records(head)]], base))
    return keys


def _records(head: int) -> int:
    return head & ((1 << _RECORDS_BITS) - 1)
