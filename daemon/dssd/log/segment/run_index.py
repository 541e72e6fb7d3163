"""Where in a segment the frames of a stream lie: the run index, in memory.

A *run* is a stretch of a segment file that holds consecutive frames of one stream and nothing
else. Its entry has its offsets, its position in the file, the append time of its first frame, and
the checksum of its bytes, by which a reader checks all its frames at once::

    file   ║ run of stream 3 ║ run of 0 ║ run of 7 │ run of 7 ║ run of 3 ║
           └ one group commit ──────────────────────┘ └ the next ─────────┘

Runs of a stream rise in offset, position and time. Frames inside a run are found by walking over
their headers, so the length of a run is bounded.

Invariant: offsets inside a run are dense. If a run starts above the end of the one before, the
offsets between them are damaged. Pure: no file, no clock.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import xxhash


class Run(NamedTuple):
    """Consecutive frames of one stream, adjacent in the file."""

    base: int
    end: int
    """The next offset after the last record."""
    position: int
    length: int
    time_us: int
    """Append time of the first frame."""
    checksum: int
    """xxh3-64 of its bytes; `NOT_SUMMED` until it was computed."""


NOT_SUMMED = 0
"""A run that happens to have this checksum is read like one without: frame by frame, each by its
own checksums."""

RUN_BYTES = 8 * len(Run._fields)
"""The size of a run in a file."""

made_run: Callable[[tuple[int, ...]], Run] = partial(tuple.__new__, Run)
"""`Run._make` without a step in Python: a lookup makes some tens of runs."""


@dataclass(slots=True)
class Extent:
    """What a segment holds of one stream."""

    start: int
    """The first offset."""
    end: int
    """The next offset after the last one."""
    first_us: int
    last_us: int
    bytes: int


class OpenRun:
    """The last run of a stream, which further frames may join."""

    __slots__ = ("_hash", "run")

    def __init__(self) -> None:
        self._hash = xxhash.xxh3_64()
        self.run: Run | None = None

    def joins(self, base: int, position: int, bytes_max: int) -> bool:
        """Whether frames that start at this offset and position join the run."""
        last = self.run
        return (
            last is not None
            and last.end == base
            and last.position + last.length == position
            and last.length < bytes_max
        )

    def add(self, new: Run, pieces: Iterable[bytes | memoryview], bytes_max: int) -> Run:
        """Add frames, given as a run without a checksum; returns the run that ends with them.

        It is the open run, extended, if they join it; else a new one.
        """
        last = self.run
        if last is None or not self.joins(new.base, new.position, bytes_max):
            self._hash.reset()
            last, length = new, new.length
        else:
            length = last.length + new.length
        for piece in pieces:
            self._hash.update(piece)
        checksum = self._hash.intdigest()
        self.run = made_run((last.base, new.end, last.position, length, last.time_us, checksum))
        return self.run


class StreamRuns:
    """The runs of one stream in one segment. `extent` is valid once there is a run."""

    __slots__ = ("_columns", "extent")

    def __init__(self) -> None:
        self._columns = tuple(array("Q") for _ in Run._fields)
        self.extent: Extent | None = None

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self._columns[0])

    def __getitem__(self, number: int) -> Run:
        """A run by its number."""
        return Run._make(column[number] for column in self._columns)

    def put(self, run: Run, last_us: int) -> None:
        """Append a run, or replace the last one by its extended form.

        ``last_us`` is the append time of its last frame.
        """
        extent = self.extent
        if extent is None:
            self.extent = Extent(run.base, run.end, run.time_us, last_us, run.length)
            self.restore(run)
            return
        grows = self._columns[0][-1] == run.base
        assert grows or run.base >= extent.end
        extent.bytes += run.length - (self._columns[3][-1] if grows else 0)
        extent.end = run.end
        extent.last_us = last_us
        if grows:
            for column, value in zip(self._columns, run, strict=True):
                column[-1] = value
        else:
            self.restore(run)

    def claim(self, start: int, end: int) -> None:
        """Extend the extent over offsets that no run holds: their frames are damaged."""
        if self.extent is None:
            self.extent = Extent(start, end, 0, 0, 0)
        self.extent.end = end

    def restore(self, run: Run) -> None:
        """Append a run of an index file; the caller sets the extent."""
        for column, value in zip(self._columns, run, strict=True):
            column.append(value)

    def at_offset(self, offset: int) -> int:
        """Number of the last run that starts at or below the offset; 0 where none does."""
        return max(0, bisect_right(self._columns[0], offset) - 1)

    def holds(self, offset: int) -> bool:
        """Whether a run has the offset; those between runs are damaged."""
        number = self.at_offset(offset)
        bases, ends = self._columns[:2]
        return bool(bases) and bases[number] <= offset < ends[number]

    def before_time(self, time_us: int) -> int:
        """Number of the last run that starts before the time; 0 where none does.

        Whatever was appended at or after the time lies in that run or a later one.
        """
        return max(0, bisect_left(self._columns[4], time_us) - 1)

    def slice(self, first: int, count: int) -> list[Run]:
        """Runs from a number on, at most ``count``."""
        columns = (column[first : first + count] for column in self._columns)
        return list(map(made_run, zip(*columns, strict=True)))

    def between(self, start: int, end: int) -> tuple[int, int]:
        """Numbers of the runs that start in a part of the file: the first, and the last plus 1."""
        positions = self._columns[2]
        if not positions or positions[-1] < start:
            return 0, 0
        return bisect_left(positions, start), bisect_left(positions, end)

    def packed(self, first: int, behind: int) -> bytes:
        """Runs as they stand in files: the fields of each, 8 bytes little endian."""
        columns = [column[first:behind] for column in self._columns]
        mixed = array("Q", bytes(RUN_BYTES * len(columns[0])))
        for number, column in enumerate(columns):
            mixed[number :: len(columns)] = column
        return _little_endian(mixed).tobytes()

    def restore_packed(self, packed: bytes | memoryview) -> None:
        """Append runs that `packed` gave; the caller sets the extent."""
        mixed = array("Q")
        mixed.frombytes(packed)
        mixed = _little_endian(mixed)
        for number, column in enumerate(self._columns):
            column.extend(mixed[number :: len(self._columns)])

    def extend_packed(self, packed: bytes | memoryview, last_us: int) -> None:
        """Append runs that `packed` gave, and extend the extent.

        ``last_us`` is the append time of their last frame.
        """
        before = len(self)
        self.restore_packed(packed)
        first, last = self[before], self[-1]
        extent = self.extent
        if extent is None:
            extent = self.extent = Extent(first.base, last.end, first.time_us, last_us, 0)
        extent.end, extent.last_us = last.end, last_us
        extent.bytes += sum(self._columns[3][before:])

    def moved(self, position_of: Callable[[int], int]) -> "StreamRuns":
        """The same runs at their positions in another file."""
        moved = StreamRuns()
        moved.extent = self.extent
        positions = array("Q", map(position_of, self._columns[2]))
        moved._columns = (*self._columns[:2], positions, *self._columns[3:])
        return moved

    def joined(self, later: "StreamRuns") -> "StreamRuns":
        """These runs and those of a later part of the file."""
        for run in later.slice(0, len(later)):
            assert later.extent is not None
            self.put(run, later.extent.last_us)
        return self


Runs = dict[int, StreamRuns]
"""The runs of one segment, by partition."""


def _little_endian(numbers: "array[int]") -> "array[int]":
    """Convert numbers to or from little endian."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers
