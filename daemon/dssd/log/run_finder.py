"""Finding the runs of a stream in a segment, in memory or through its index file.

Invariant: a lookup by offset or time in a sealed segment reads at most two index blocks, the
stream's root and one leaf, unless records were lost between two leaves. A damaged or missing
index is rebuilt from its segment, once, and the lookup goes on.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dssd.log.files import FileReader
from dssd.log.index import Run
from dssd.log.index_file import (
    RUNS_PER_LEAF,
    BadIndex,
    Root,
    StreamEntry,
    decode_leaf,
    decode_root,
)
from dssd.log.segment_file import SegmentId, SegmentPaths
from dssd.log.streams import Segment

_BlockKey = tuple[SegmentId, int]
T = TypeVar("T")
_Lookup = Callable[[Segment, StreamEntry, Root], Awaitable[T]]


class RunFinder:
    """Lookups in all segments, with the index blocks they needed last."""

    def __init__(
        self,
        paths: SegmentPaths,
        files: FileReader,
        rebuild: Callable[[Segment], Awaitable[None]],
        blocks_max: int,
    ) -> None:
        self._paths = paths
        self._files = files
        self._rebuild = rebuild
        self._blocks_max = blocks_max
        self._blocks: OrderedDict[_BlockKey, bytes] = OrderedDict()
        self.blocks_read = 0

    async def from_offset(self, segment: Segment, partition: int, offset: int) -> list[Run]:
        """Runs that end above the offset, from the first on, some of them; none if all end below.

        Raises:
            BadIndex: the index could not be rebuilt.
        """
        if segment.runs is not None:
            runs = segment.runs[partition]
            found = runs.slice(runs.at_offset(offset), RUNS_PER_LEAF)
            return found[1:] if found[0].end <= offset else found
        return await self._with_index(segment, partition, _from_offset(self, offset))

    async def before_time(self, segment: Segment, partition: int, time_us: int) -> Run:
        """The last run that starts before the time, else the first.

        Raises:
            BadIndex: the index could not be rebuilt.
        """
        if segment.runs is not None:
            runs = segment.runs[partition]
            return runs[runs.before_time(time_us)]
        return await self._with_index(segment, partition, _before_time(self, time_us))

    def forget(self, segment: SegmentId) -> None:
        """Drop the blocks of a segment whose index changed or went."""
        for key in [key for key in self._blocks if key[0] == segment]:
            del self._blocks[key]

    async def _with_index(self, segment: Segment, partition: int, lookup: "_Lookup[T]") -> T:
        """Run a lookup; where the index turns out to be damaged, once more with a new one."""
        try:
            return await lookup(segment, *await self._root(segment, partition))
        except BadIndex:
            await self._rebuild(segment)
            self.forget(segment.id)
        return await lookup(segment, *await self._root(segment, partition))

    async def _root(self, segment: Segment, partition: int) -> tuple[StreamEntry, Root]:
        assert segment.summary is not None
        entry = segment.summary.streams[partition]
        return entry, decode_root(await self._block((segment.id, entry.root), entry.root_bytes))

    async def leaf(self, segment: Segment, entry: StreamEntry, number: int) -> list[Run]:
        """The runs of one leaf of a stream's index.

        Raises:
            BadIndex: it is damaged.
        """
        position, size = entry.leaf_span(number)
        return decode_leaf(await self._block((segment.id, position), size))

    async def _block(self, key: _BlockKey, size: int) -> bytes:
        block = self._blocks.get(key)
        if block is not None:
            self._blocks.move_to_end(key)
            return block
        segment, position = key
        block = await self._files.read(self._paths.index(segment), position, size)
        self.blocks_read += 1
        self._blocks[key] = block
        while len(self._blocks) > self._blocks_max:
            self._blocks.popitem(last=False)
        return block


def _from_offset(finder: RunFinder, offset: int) -> "_Lookup[list[Run]]":
    async def lookup(segment: Segment, entry: StreamEntry, root: Root) -> list[Run]:
        for number in range(root.at_offset(offset), entry.leaf_count):
            leaf = await finder.leaf(segment, entry, number)
            above = [run for run in leaf if run.end > offset]
            if above:
                return above
        return []

    return lookup


def _before_time(finder: RunFinder, time_us: int) -> "_Lookup[Run]":
    async def lookup(segment: Segment, entry: StreamEntry, root: Root) -> Run:
        leaf = await finder.leaf(segment, entry, root.before_time(time_us))
        number = bisect_left(leaf, time_us, key=lambda run: run.time_us) - 1
        return leaf[max(0, number)]

    return lookup
