"""The log as sessions and leaders see it: real frames in memory, durable at once.

How frames become durable is proved on real disks; here the log only has to answer as its port says.
Invariant: streams outlive every life of the daemon; watchers die with the life that watches.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.frame import stamped
from dss_core.ids import StreamId
from dss_core.progress import Range
from dss_sim.ordering_keys import OrderingKeys, keys_of_stream
from dss_sim.sessions.timeline import VirtualLoop
from dssd.log.port import Answered, Append, Appended, Bounds, Chunk, Ends

FRAMES_A_READ = 3
FILE_READ_SHARE = 0.5
LATE_READ_SHARE = 0.3
READ_S = 0.004
FRAMES_KEPT_MAX = 4_096
STREAM_APART = 17
"""The distance between the first keys of two streams, in records."""


@dataclass(slots=True)
class _Stream:
    keys: tuple[bytes, ...]
    """The keys that route to it."""
    frames: list[bytes] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)
    end: int = 0


class Records:
    """The records that every life of the daemon finds."""

    def __init__(self, seed: int) -> None:
        self.streams: dict[StreamId, _Stream] = {}
        self._keys = OrderingKeys(seed)

    def create(self, storage_topic_id: int, partitions: int) -> None:
        """Streams are born, empty."""
        for partition in range(partitions):
            stream = StreamId(storage_topic_id, partition)
            self.streams[stream] = _Stream(keys_of_stream(partition, partitions))

    def append(self, stream: StreamId, records: int) -> tuple[int, tuple[bytes | None, ...]]:
        """Append a durable frame of this many records; returns the new end, and their keys."""
        found = self.streams[stream]
        number = found.end + STREAM_APART * sum(stream)
        keys = self._keys.of_frame(found.keys, number, records)
        frame = _frame(stream.partition, keys)
        head = stamped(
            frame,
            base_offset=found.end,
            append_time_us=found.end + 1,
            topic_epoch=1,
            storage_topic_id=stream.storage_topic_id,
        )
        found.frames.append(head + frame[len(head) :])
        found.bases.append(found.end)
        found.end += records
        return found.end, keys


class MemoryLog:
    """Implements `dssd.log.port.Log` for one life of a daemon."""

    def __init__(self, records: Records, loop: VirtualLoop, chance: Random) -> None:
        self._records = records
        self._loop = loop
        self._chance = chance
        self._watchers: dict[StreamId, dict[int, Callable[[], None]]] = {}
        self._watched = 0

    def grown(self, stream: StreamId) -> None:
        """Wake those who watch."""
        for told in list(self._watchers.get(stream, {}).values()):
            self._loop.call_soon(told)

    def open_storage_topic(self, storage_topic_id: int, partitions: int) -> None:
        """See the port."""
        self._records.create(storage_topic_id, partitions)

    async def read(
        self, stream: StreamId, offset: int, *, bytes_max: int, matching: TopicFilter | None = None
    ) -> Chunk:
        """See the port. Every record matches every filter that selects its stream."""
        if self._chance.random() < LATE_READ_SHARE:
            await asyncio.sleep(self._chance.random() * READ_S)
        return self._chunk(stream, offset, bytes_max)

    def read_in_memory(
        self, stream: StreamId, offset: int, *, bytes_max: int, matching: TopicFilter | None = None
    ) -> Chunk | None:
        """See the port; by chance it reports that it needs a file."""
        if self._chance.random() < FILE_READ_SHARE:
            return None
        return self._chunk(stream, offset, bytes_max)

    def _chunk(self, stream: StreamId, offset: int, bytes_max: int) -> Chunk:
        found = self._of(stream)
        if offset >= found.end:
            return Chunk(b"", (), 0, offset, offset, (), at_end=True)
        first = bisect_right(found.bases, offset) - 1
        last = self._last(found.frames, first, bytes_max)
        base = found.bases[first]
        end = found.bases[last] if last < len(found.bases) else found.end
        mask = ((base, offset),) if base < offset else ()
        frames = b"".join(found.frames[first:last])
        return Chunk(frames, mask, end - base, base, end, (), at_end=end >= found.end)

    @staticmethod
    def _last(frames: Sequence[bytes], first: int, bytes_max: int) -> int:
        """The offset behind the last frame of a read, which has at least one frame."""
        last, size = first + 1, len(frames[first])
        while last < min(first + FRAMES_A_READ, len(frames)):
            size += len(frames[last])
            if size > bytes_max:
                break
            last += 1
        return last

    def bounds(self, stream: StreamId) -> Bounds:
        """See the port."""
        return Bounds(0, self._of(stream).end, 0)

    def span(self, stream: StreamId) -> Range:
        """See the port."""
        return 0, self._of(stream).end

    def watch(self, stream: StreamId, grown: Callable[[], None]) -> Callable[[], None]:
        """See the port."""
        self._watched += 1
        number, watchers = self._watched, self._watchers.setdefault(stream, {})
        watchers[number] = grown

        def stop() -> None:
            watchers.pop(number, None)

        return stop

    def watchers(self) -> int:
        """How many watchers there are."""
        return sum(map(len, self._watchers.values()))

    def count(self, stream: StreamId, start: int, end: int) -> tuple[int, bool]:
        """See the port."""
        return max(0, end - start), True

    async def time_at(self, stream: StreamId, offset: int) -> int | None:
        """No record here has a time."""
        return None

    async def close(self) -> None:
        """See the port."""

    # Parts of the port that these runs do not use

    def sealing(
        self, storage_topic_id: int, heir: int | None = None
    ) -> AbstractAsyncContextManager[Ends]:
        """No topic grows here."""
        raise NotImplementedError

    def producers_begin_us(self, storage_topic_id: int) -> int:
        """Unused: the world itself produces, with `Records.append`."""
        raise NotImplementedError

    async def append(self, appends: Sequence[Append]) -> list[Appended | BaseException]:
        """Unused: the world itself produces, with `Records.append`."""
        raise NotImplementedError

    def begin_append(self, appends: Sequence[Append], answered: Answered) -> None:
        """Unused, as `append`."""
        raise NotImplementedError

    async def locate(self, stream: StreamId, time_us: int) -> int:
        """No group here starts at a time."""
        raise NotImplementedError

    async def trim(self, stream: StreamId, offset: int) -> None:
        """Nothing is retained for a time here."""
        raise NotImplementedError

    async def remove_storage_topic(self, storage_topic_id: int) -> None:
        """Topics stay here."""
        raise NotImplementedError

    def _of(self, stream: StreamId) -> _Stream:
        found = self._records.streams.get(stream)
        if found is None:
            raise StreamNotFound(stream=stream)
        return found


@lru_cache(FRAMES_KEPT_MAX)
def _frame(partition: int, keys: tuple[bytes | None, ...]) -> bytes:
    """A frame as a producer builds it. A key replaces bytes of the payload, so all have one
    size."""
    columns = Columns([b"" if key else b"x" for key in keys], keys, "t", None, 1)
    return build_frame(columns, partition=partition, producer_id=bytes(16), sequence=0)
