"""The run index of a segment on disk: a cache that is rebuilt from the segment if damaged.

Little endian; every part carries its own xxh3-64 checksum::

    ┌ head, 40 bytes ──────────────────────────────────────────────────────────────────┐
    │ magic DSSIDX01 │ u32 version │ u32 storage topic │ u64 segment │ u64 segment bytes │
    │ u32 streams │ u32 frames                                                          │
    ├ one per stream, 64 bytes ────────────────────────────────────────────────────────┤
    │ u32 partition │ u32 runs │ u64 start │ u64 end │ u64 first time │ u64 last time    │
    │ u64 bytes │ u64 position of its root │ u64 position of its first leaf              │
    ├ u64 checksum of all above ───────────────────────────────────────────────────────┤
    │ leaves: each at most 85 runs of 48 bytes (fields of Run), checksum               │
    │ roots: one per stream: base and time of each leaf's first run, checksum            │
    └──────────────────────────────────────────────────────────────────────────────────┘

Finding an offset or a time in a stream reads its root and one leaf. "Segment bytes" is how much of
the segment the index covers: a longer file has an unreadable or unknown tail.

Invariant: what `decode_*` returns is what `encode` was given, or `BadIndex` is raised.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

import xxhash

from dssd.log.segment.file import SegmentId
from dssd.log.segment.run_index import RUN_BYTES, Extent, Run, StreamRuns, made_run

RUNS_PER_LEAF = 85
_RUN = struct.Struct("<QQQQQQ")
assert _RUN.size == RUN_BYTES
_CHECKSUM = struct.Struct("<Q")
LEAF_BYTES = RUNS_PER_LEAF * _RUN.size + _CHECKSUM.size
assert LEAF_BYTES <= 4096, "a leaf is one page"

_MAGIC = b"DSSIDX01"
_VERSION = 1
_HEAD = struct.Struct("<8sIIQQII")
_STREAM = struct.Struct("<IIQQQQQQQ")
_ROOT_ENTRY = struct.Struct("<QQ")
_U64 = struct.Struct("<Q")
_U64_AFTER = struct.Struct("<8xQ")
HEAD_BYTES = _HEAD.size


class BadIndex(Exception):
    """A part of an index file is damaged, cut short, or another segment's."""


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """The extent of one stream, and where its root and leaves lie in the index file."""

    extent: Extent
    runs: int
    root: int
    leaves: int

    @property
    def leaf_count(self) -> int:
        """How many leaves its runs fill."""
        return -(-self.runs // RUNS_PER_LEAF)

    @property
    def root_bytes(self) -> int:
        """Size of the root with its checksum."""
        return self.leaf_count * _ROOT_ENTRY.size + _CHECKSUM.size

    def leaf_span(self, leaf: int) -> tuple[int, int]:
        """Position and size of a leaf with its checksum."""
        runs = min(RUNS_PER_LEAF, self.runs - leaf * RUNS_PER_LEAF)
        return self.leaves + leaf * LEAF_BYTES, runs * _RUN.size + _CHECKSUM.size


@dataclass(frozen=True, slots=True)
class Summary:
    """The first part of an index: enough to know what a segment holds."""

    segment_bytes: int
    frames: int
    streams: dict[int, StreamEntry]


@dataclass(frozen=True, slots=True)
class Root:
    """Base offset and append time of the first run of each leaf, as they stand on disk."""

    entries: bytes

    def __len__(self) -> int:
        """How many leaves there are."""
        return len(self.entries) // _ROOT_ENTRY.size

    def at_offset(self, offset: int) -> int:
        """The leaf with the last run that starts at or below the offset."""
        return max(0, bisect_right(range(len(self)), offset, key=self._base) - 1)

    def before_time(self, time_us: int) -> int:
        """The leaf with the last run that starts before the time."""
        return max(0, bisect_left(range(len(self)), time_us, key=self._time_us) - 1)

    def _base(self, leaf: int) -> int:
        return int(_U64.unpack_from(self.entries, leaf * _ROOT_ENTRY.size)[0])

    def _time_us(self, leaf: int) -> int:
        return int(_U64_AFTER.unpack_from(self.entries, leaf * _ROOT_ENTRY.size)[0])


def encode(
    segment: SegmentId, segment_bytes: int, streams: Mapping[int, StreamRuns], frames: int
) -> bytes:
    """The index file of a segment."""
    at = HEAD_BYTES + len(streams) * _STREAM.size + _CHECKSUM.size
    leaves: list[bytes] = []
    placed: dict[int, int] = {}
    for partition, runs in streams.items():
        placed[partition] = at
        packed = runs.packed(0, len(runs))
        for first in range(0, len(packed), RUNS_PER_LEAF * RUN_BYTES):
            leaves.append(_with_checksum(packed[first : first + RUNS_PER_LEAF * RUN_BYTES]))
            at += len(leaves[-1])
    roots: list[bytes] = []
    entries: list[bytes] = []
    for partition, runs in streams.items():
        entries.append(_encoded_entry(partition, runs, at, placed[partition]))
        roots.append(_encoded_root(runs))
        at += len(roots[-1])
    head = _HEAD.pack(_MAGIC, _VERSION, *segment, segment_bytes, len(streams), frames)
    return b"".join((_with_checksum(head + b"".join(entries)), *leaves, *roots))


def _encoded_entry(partition: int, runs: StreamRuns, root: int, leaves: int) -> bytes:
    extent = runs.extent
    assert extent is not None, "a stream without runs has no entry"
    return _STREAM.pack(
        partition,
        len(runs),
        extent.start,
        extent.end,
        extent.first_us,
        extent.last_us,
        extent.bytes,
        root,
        leaves,
    )


def _encoded_root(runs: StreamRuns) -> bytes:
    firsts = (runs[first] for first in range(0, len(runs), RUNS_PER_LEAF))
    return _with_checksum(b"".join(_ROOT_ENTRY.pack(run.base, run.time_us) for run in firsts))


def summary_bytes(head: bytes) -> int:
    """Size of the summary whose first `HEAD_BYTES` these are.

    Raises:
        BadIndex: the head is too short.
    """
    if len(head) < HEAD_BYTES:
        raise BadIndex("cut short")
    streams = int(_HEAD.unpack_from(head)[5])
    return HEAD_BYTES + streams * _STREAM.size + _CHECKSUM.size


def decode_summary(buffer: bytes, segment: SegmentId) -> Summary:
    """Read the summary of a segment's index.

    Raises:
        BadIndex: damaged, of another version, or of another segment.
    """
    content = _without_checksum(buffer)
    magic, version, topic, number, segment_bytes, streams, frames = _HEAD.unpack_from(content)
    if (magic, version) != (_MAGIC, _VERSION) or SegmentId(topic, number) != segment:
        raise BadIndex("of another segment or version")
    entries: dict[int, StreamEntry] = {}
    for index in range(streams):
        partition, runs, *extent, root, leaves = _STREAM.unpack_from(
            content, HEAD_BYTES + index * _STREAM.size
        )
        entries[partition] = StreamEntry(Extent(*extent), runs, root, leaves)
    return Summary(segment_bytes, frames, entries)


def decode_root(buffer: bytes) -> Root:
    """Read the root of a stream.

    Raises:
        BadIndex: damaged.
    """
    return Root(_without_checksum(buffer))


def decode_leaf(buffer: bytes, above: int = 0) -> list[Run]:
    """Read the runs of one leaf that end above an offset.

    Raises:
        BadIndex: damaged.
    """
    content = _without_checksum(buffer)

    def end(run: int) -> int:
        return int(_U64_AFTER.unpack_from(content, run * _RUN.size)[0])

    first = bisect_right(range(len(content) // _RUN.size), above, key=end)
    return list(map(made_run, _RUN.iter_unpack(content[first * _RUN.size :])))


def decode_runs(buffer: bytes, summary: Summary) -> dict[int, StreamRuns]:
    """Read all runs of a whole index file, to go on appending to them.

    Raises:
        BadIndex: a leaf is damaged.
    """
    streams: dict[int, StreamRuns] = {}
    for partition, entry in summary.streams.items():
        runs = streams[partition] = StreamRuns()
        for leaf in range(entry.leaf_count):
            position, size = entry.leaf_span(leaf)
            runs.restore_packed(_without_checksum(buffer[position : position + size]))
        runs.extent = entry.extent
    return streams


def _with_checksum(content: bytes) -> bytes:
    return content + _CHECKSUM.pack(xxhash.xxh3_64_intdigest(content))


def _without_checksum(buffer: bytes) -> bytes:
    """The content in front of its checksum."""
    end = len(buffer) - _CHECKSUM.size
    if end < 0:
        raise BadIndex("cut short")
    content = buffer[:end]
    if xxhash.xxh3_64_intdigest(content) != _CHECKSUM.unpack_from(buffer, end)[0]:
        raise BadIndex("its checksum does not match")
    return content
