"""The store and the log of a run.

The store is the dictionary adapter of `dssd.store`, which a differential test holds equal to the
SQLite adapter. A commit takes effect at one moment between its request and its answer; a daemon
that crashes in between may or may not have made it, and nobody is told.

The log keeps of each stream how long it is and how its frames lie. A record exists from the sync
that covers it; its producer hears of that later, or never. The real log is proved on real disks
(tests/scenarios), so here it only has to say what sessions and leaders may rely on.
"""

import struct
from bisect import bisect_right
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.progress import Ranges
from dss_core.routing import Router
from dssd.core.delivering import ChunkRead, Read
from dssd.core.run_plan import FrameSpans
from dssd.log.port import Bounds
from dssd.store.memory import MemoryStore
from dssd.store.port import Precondition, PreconditionFailed, Write
from dssd.testing.simulation.chance import Chance
from dssd.testing.simulation.schedule import Host, Schedule
from dssd.topics.model import StorageTopic, Topic

COMMIT_US = (300, 4_000)
SLOW_COMMIT_US = (50_000, 900_000)
FRAMES_A_READ = 3

_FRAME = struct.Struct("<QI")
"""A stand-in for a frame: its base offset and its records."""

T = TypeVar("T")


def at_once(awaited: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never has to wait, as those of the dictionary store."""
    try:
        awaited.send(None)
    except StopIteration as ended:
        value: T = ended.value
        return value
    raise AssertionError("it had to wait")


class AtOnce:
    """A turn that never ends: nobody else waits for the loop."""

    async def give_way(self) -> None:
        """Go on."""


class SimulatedStore:
    """Commits that take a while."""

    def __init__(self, schedule: Schedule, chance: Chance) -> None:
        self.rows = MemoryStore()
        self._schedule = schedule
        self._chance = chance
        self._latency = chance.of("commits")
        self._pending: dict[int, bool] = {}
        """Commits not yet made, by number; False: the daemon died before."""
        self._asked = 0
        self.committed: Callable[[Sequence[Write]], None] = lambda writes: None
        """Told of each commit at the moment at which it takes effect."""

    def commit(
        self,
        host: Host,
        writes: Sequence[Write],
        preconditions: Sequence[Precondition],
        answered: Callable[[list[int] | PreconditionFailed], None],
    ) -> None:
        """Commit within some milliseconds; the host hears of it some time later."""
        self._asked += 1
        self._pending[self._asked] = True
        low, high = COMMIT_US
        delay_us = low + int(self._latency.random() * (high - low))
        slow = self._chance.strike("slow_commit")
        if slow is not None:
            delay_us += slow.randint(*SLOW_COMMIT_US)
        answer = partial(self._make, self._asked, host, host.incarnation, writes, preconditions)
        self._schedule.after(delay_us, partial(answer, answered))

    def crash(self) -> None:
        """The daemon dies: of each commit under way it is open whether it was made."""
        for number in list(self._pending):
            self._pending[number] = self._latency.random() < 0.5

    def _make(
        self,
        number: int,
        host: Host,
        incarnation: int,
        writes: Sequence[Write],
        preconditions: Sequence[Precondition],
        answered: Callable[[list[int] | PreconditionFailed], None],
    ) -> None:
        if not self._pending.pop(number):
            return
        answer: list[int] | PreconditionFailed
        try:
            answer = at_once(self.rows.commit(writes, preconditions))
            self.committed(writes)
        except PreconditionFailed as failed:
            answer = failed
        if host.incarnation == incarnation:
            self._schedule.after(100, partial(answered, answer), host)


class SimulatedStream:
    """One stream: the frames that are durable."""

    __slots__ = ("bases", "end", "frames", "watchers")

    def __init__(self) -> None:
        self.frames: list[tuple[int, int]] = []
        self.bases: list[int] = []
        self.end = 0
        self.watchers: dict[int, Callable[[], None]] = {}


class SimulatedLog:
    """The streams, as leaders and sessions see them; part of `dssd.log.port.Log`."""

    def __init__(self) -> None:
        self._streams: dict[StreamId, SimulatedStream] = {}
        self._watched = 0

    def create(self, streams: Sequence[StreamId]) -> None:
        """Streams are born, empty."""
        for stream in streams:
            self._streams[stream] = SimulatedStream()

    def append(self, stream: StreamId, records: int) -> int:
        """A frame is durable; returns the new end."""
        found = self._streams[stream]
        found.frames.append((found.end, records))
        found.bases.append(found.end)
        found.end += records
        for grown in list(found.watchers.values()):
            grown()
        return found.end

    def remove(self, streams: Sequence[StreamId]) -> None:
        """The streams are gone, with their topic."""
        for stream in streams:
            del self._streams[stream]

    def __contains__(self, stream: StreamId) -> bool:
        """Whether there is such a stream."""
        return stream in self._streams

    def bounds(self, stream: StreamId) -> Bounds:
        """As the port says."""
        return Bounds(0, self._streams[stream].end, 0)

    def watch(self, stream: StreamId, grown: Callable[[], None]) -> Callable[[], None]:
        """As the port says."""
        self._watched += 1
        number = self._watched
        watchers = self._streams[stream].watchers
        watchers[number] = grown

        def stop() -> None:
            watchers.pop(number, None)

        return stop

    def read(self, asked: Read, every: int) -> ChunkRead:
        """Some frames from an offset on. Offsets that ``every`` divides are masked; 0: none."""
        found = self._streams.get(asked.stream)
        at = asked.offset
        if found is None or at >= found.end:
            return ChunkRead(asked.grant, at, b"", (), 0, at, at)
        first = bisect_right(found.bases, at) - 1
        frames = found.frames[first : first + FRAMES_A_READ]
        base, end = frames[0][0], frames[-1][0] + frames[-1][1]
        before = ((base, at),) if base < at else ()
        mask = (*before, *masked(every, at, end))
        packed = b"".join(_FRAME.pack(*frame) for frame in frames)
        return ChunkRead(asked.grant, at, packed, mask, end - base, base, end)


def masked(every: int, start: int, end: int) -> Ranges:
    """The offsets of ``[start, end)`` that a filter rejects, in these runs."""
    if not every:
        return ()
    first = -(-start // every) * every
    return tuple((offset, offset + 1) for offset in range(first, end, every))


def cut_frames(frames: bytes) -> FrameSpans:
    """Where consecutive stand-ins lie."""
    heads = list(_FRAME.iter_unpack(frames))
    at = list(range(0, len(frames) + 1, _FRAME.size))
    return FrameSpans(at, [*(base for base, _ in heads), heads[-1][0] + heads[-1][1]])


class SimulatedCatalogue:
    """The topics, as a leader's claim asks for them; part of `dssd.topics.catalogue.Catalogue`."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}

    def meeting(self, wanted: TopicFilter) -> tuple[Topic, ...]:
        """The topics whose patterns meet the filter."""
        return tuple(
            topic
            for topic in self.topics.values()
            if any(pattern.overlaps(wanted) for pattern in topic.patterns)
        )


def new_topic(topic_id: int, name: str, partitions: int) -> Topic:
    """A topic of one storage topic, whose id is the topic's."""
    pattern = TopicFilter.parse(f"{name}/#")
    part = StorageTopic(topic_id, 0, partitions, 1, None)
    return Topic(topic_id, name, (pattern,), Router.BLOCK, "sync", 1, 0, (part,), None, None, 0)
