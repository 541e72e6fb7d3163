"""Finds the runs of a stream in a segment, in memory or through its index file.

Invariant: a lookup by offset or time in a sealed segment reads at most two index blocks, the
stream's root and one leaf, unless records were lost between two leaves. A damaged or missing index
is rebuilt from its segment, in memory if necessary, and the lookup is tried again. So a lookup
fails only if the segment itself is gone.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from dssd.log.read.file_reader import FileReader
from dssd.log.segment.file import SegmentId, SegmentPaths
from dssd.log.segment.index_file import (
    RUNS_PER_LEAF,
    BadIndex,
    Root,
    StreamEntry,
    Summary,
    decode_leaf,
    decode_root,
)
from dssd.log.segment.run_index import Run, StreamRuns
from dssd.log.topic_state import Segment

RUN_LOOKUPS_MAX = 4
"""How often a lookup is tried: it may fail at a damaged index, and once more while another reader
replaces that index; each time another try follows."""


_BlockKey = tuple[SegmentId, int, int]
T = TypeVar("T")


class Rebuild(Protocol):
    """Rebuilds the damaged index of a segment, unless that was done already."""

    async def __call__(self, segment: Segment, known: Summary, *, on_disk: bool) -> None:
        """``known`` is the summary of the index that was found damaged."""


@dataclass(frozen=True, slots=True)
class _Index:
    """An index on disk as it was when a lookup began, and one stream in it."""

    segment: SegmentId
    version: int
    entry: StreamEntry


_Lookup = Callable[[_Index, Root], Awaitable[T]]


class RunFinder:
    """Lookups in all segments, with a cache of the index blocks that were read last."""

    def __init__(
        self,
        paths: SegmentPaths,
        files: FileReader,
        rebuild: Rebuild,
        blocks_max: int,
    ) -> None:
        self._paths = paths
        self._files = files
        self._rebuild = rebuild
        self._blocks_max = blocks_max
        self._blocks: OrderedDict[_BlockKey, bytes] = OrderedDict()
        self.blocks_read = 0

    async def from_offset(self, segment: Segment, partition: int, offset: int) -> list[Run]:
        """The first runs that end above the offset; none if all end below it.

        Raises:
            BadIndex: the segment is gone.
        """

        def in_memory(runs: StreamRuns) -> list[Run]:
            found = runs.slice(runs.at_offset(offset), RUNS_PER_LEAF)
            return found[1:] if found and found[0].end <= offset else found

        return await self._look_up(segment, partition, in_memory, _from_offset(self, offset))

    async def before_time(self, segment: Segment, partition: int, time_us: int) -> Run:
        """The last run that starts before the time; the first run if none does.

        Raises:
            BadIndex: the segment is gone.
        """

        def in_memory(runs: StreamRuns) -> Run:
            return runs[runs.before_time(time_us)]

        return await self._look_up(segment, partition, in_memory, _before_time(self, time_us))

    def forget(self, segment: SegmentId) -> None:
        """Drop the cached blocks of a segment whose index changed or was removed."""
        for key in [key for key in self._blocks if key[0] == segment]:
            del self._blocks[key]

    async def _look_up(
        self,
        segment: Segment,
        partition: int,
        in_memory: Callable[[StreamRuns], T],
        on_disk: "_Lookup[T]",
    ) -> T:
        """Look up in memory or on disk; rebuild a damaged index and look again."""
        for attempt in range(RUN_LOOKUPS_MAX):
            if segment.runs is not None:
                return in_memory(segment.runs[partition])
            summary = segment.summary
            assert summary is not None
            entry = summary.streams[partition]
            index = _Index(segment.id, segment.index_version, entry)
            try:
                block = await self._block(index, entry.root, entry.root_bytes)
                return await on_disk(index, decode_root(block))
            except BadIndex:
                await self._rebuild(segment, summary, on_disk=attempt == 0)
        raise BadIndex("it is damaged again and again")

    async def leaf(self, index: "_Index", number: int, above: int = 0) -> list[Run]:
        """The runs of one leaf of a stream's index that end above an offset.

        Raises:
            BadIndex: it is damaged.
        """
        return decode_leaf(await self._block(index, *index.entry.leaf_span(number)), above)

    async def _block(self, index: "_Index", position: int, size: int) -> bytes:
        key = (index.segment, index.version, position)
        block = self._blocks.get(key)
        if block is not None:
            self._blocks.move_to_end(key)
            return block
        block = await self._files.read(self._paths.index(index.segment), position, size)
        self.blocks_read += 1
        self._blocks[key] = block
        while len(self._blocks) > self._blocks_max:
            self._blocks.popitem(last=False)
        return block


def _from_offset(finder: RunFinder, offset: int) -> "_Lookup[list[Run]]":
    async def lookup(index: _Index, root: Root) -> list[Run]:
        for number in range(root.at_offset(offset), index.entry.leaf_count):
            above = await finder.leaf(index, number, offset)
            if above:
                return above
        return []

    return lookup


def _before_time(finder: RunFinder, time_us: int) -> "_Lookup[Run]":
    async def lookup(index: _Index, root: Root) -> Run:
        leaf = await finder.leaf(index, root.before_time(time_us))
        number = bisect_left(leaf, time_us, key=lambda run: run.time_us) - 1
        return leaf[max(0, number)]

    return lookup
