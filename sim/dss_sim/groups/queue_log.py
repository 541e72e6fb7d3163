"""The log of a run for work on queues: the streams of queues, and the frames of all others.

::

    begin_append ─► under way ─► placed, told, readable ─► answered
                        │ the daemon dies: any prefix of its frames survives
                        └ no room: some of its frames are refused

Queues have real frames, which the real code builds and reads; frames of other streams are built for
each read from their stand-ins. Invariant: an append that was begun may be held back for as long as
grants last, and its entries are reported before anybody can read them. `topic_file` plays disks
that lose synced data.
"""

from collections.abc import Sequence
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import DiskFull, LogUnreadable, StreamNotFound
from dss_core.frame import stamped
from dss_core.ids import StreamId
from dss_core.lane import ENTRIES, MAIN, LaneEntry
from dss_core.producer_ids import NO_PRODUCER
from dss_core.progress import Range, Ranges, normalised
from dss_sim.groups.history import Key, Queued
from dss_sim.groups.log import FRAMES_A_READ, cut_frames, keys_in
from dss_sim.groups.log_writer import SYNC_US
from dss_sim.groups.queue_plans import HELD_BACK_US
from dssd.log.port import Answered, Append, Appended, Bounds, Chunk
from dssd.machines.delivery.events import Read, ReadFailed
from dssd.queues.entries import error_of, lane_of

if TYPE_CHECKING:
    from dss_sim.groups.world import World

STAND_IN_RECORDS = 6
"""How many records a frame has that sessions read: those of the largest frame that producers
send."""


class Placed(NamedTuple):
    """A frame of a queue."""

    base: int
    end: int
    frame: bytes


class Queue(NamedTuple):
    """The stream whose queue it is."""

    group: str
    level: int
    levels: tuple[StreamId, ...]
    """The levels of its lane."""


class QueueLog:
    """Part of `dssd.log.port.Log`."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._queues: dict[StreamId, Queue] = {}
        self._frames: dict[StreamId, list[Placed]] = {}
        self._lanes: dict[tuple[str, str], tuple[StreamId, ...]] = {}
        """The levels of each lane, by group and stream."""
        self._under_way: dict[int, Sequence[Append]] = {}
        self._begun = 0
        self._chance = world.chance.of("queues")

    def create(self, stream: StreamId, queue: Queue) -> None:
        """A queue is born, empty."""
        self._queues[stream] = queue
        self._lanes[queue.group, self._world.names[queue.levels[MAIN]]] = queue.levels
        self._frames[stream] = []

    def queue(self, stream: StreamId) -> Queue:
        """The stream whose queue it is.

        Raises:
            StreamNotFound: it was removed.
        """
        if stream not in self._queues:
            raise StreamNotFound(stream=stream)
        return self._queues[stream]

    def made_by(self, stream: StreamId, operation: int) -> Ranges:
        """The entries of a queue that an operation made."""
        return normalised(
            (row[0], row[0] + 1)
            for placed in self._frames.get(stream, ())
            for row in chain.from_iterable(decode(placed.frame).rows())
            if lane_of(row[4]).operation == operation
        )

    def remove(self, stream: StreamId) -> None:
        """A queue is gone."""
        del self._queues[stream], self._frames[stream]

    # Appending

    def begin_append(self, appends: Sequence[Append], answered: Answered) -> None:
        """As the port says."""
        self._begun += 1
        self._under_way[self._begun] = appends
        done = partial(self._append, self._begun, answered)
        held = self._world.chance.strike("hold_back_entries")
        if held is None:
            self._world.after(SYNC_US, done)
        else:
            self._world.schedule.after(held.randint(*HELD_BACK_US), done)

    def _append(self, number: int, answered: Answered) -> None:
        appends = self._under_way.pop(number, None)
        if appends is None:
            return
        full = self._world.schedule.now_us < self._world.writer.full_until_us
        refused = self._world.chance.strike("refuse_entries")
        results: list[Appended | BaseException] = []
        for append in appends:
            if append.stream not in self._queues:
                results.append(StreamNotFound(stream=append.stream))
            elif full or (refused is not None and refused.random() < 0.7):
                results.append(DiskFull())
            else:
                results.append(self._place(append))
        answered(results)
        self._world.queue_work.run()

    def _place(self, append: Append) -> Appended:
        world, stream, now_us = self._world, append.stream, self._world.schedule.now_us
        base = world.log.bounds(stream).end
        frame = _stamped(append.frame, stream, base, now_us)
        rows = [*chain.from_iterable(decode(frame).rows())]
        keys: list[Key] = [_key_of(row[2]) for row in rows]
        self._frames[stream].append(Placed(base, base + len(rows), frame))
        queue = self._queues[stream]
        for row, key in zip(rows, keys, strict=True):
            lane, error = lane_of(row[4]), error_of(row[4])
            source = world.names[self._source_lane(queue, lane)[lane.source_level]]
            world.tell(
                Queued(
                    now_us, queue.group, world.names[stream], row[0], source, lane.source_offset,
                    lane.attempt, lane.due_ms * 1_000, lane.cause, error, lane.grant_epoch, key,
                )
            )  # fmt: skip
        for at in range(0, len(keys), STAND_IN_RECORDS):
            world.log.enter(stream, base + at, keys[at : at + STAND_IN_RECORDS])
        return Appended(base, len(rows), now_us, False)

    def _source_lane(self, queue: Queue, entry: LaneEntry) -> tuple[StreamId, ...]:
        """The levels of the lane that an entry comes from."""
        if not entry.is_rehomed:
            return queue.levels
        topic = self._world.names[queue.levels[MAIN]].rsplit("/", 2)[0]
        name = f"{topic}/{entry.source_ordinal}/{entry.source_partition}"
        return self._lanes[queue.group, name]

    def crash(self) -> None:
        """The daemon dies: of each append under way a prefix survives."""
        for appends in self._under_way.values():
            for append in appends[: self._chance.randint(0, len(appends))]:
                if append.stream in self._queues:
                    self._place(append)
        self._under_way.clear()

    # Reading

    def span(self, stream: StreamId) -> Range:
        """As the port says."""
        if stream not in self._world.log:
            raise StreamNotFound(stream=stream)
        return 0, self._world.log.bounds(stream).end

    def bounds(self, stream: StreamId) -> Bounds:
        """As the port says."""
        size = sum(len(each.frame) for each in self._frames[stream])
        return Bounds(*self.span(stream), size)

    async def read(self, stream: StreamId, offset: int, *, bytes_max: int) -> Chunk:
        """As the port says."""
        await self._world.queue_work.rest()
        _, end = self.span(stream)
        if self._world.log.unreadable_until_us.get(stream, 0) > self._world.schedule.now_us:
            raise LogUnreadable(path="a file", reason="it fails")
        placed = self._frames.get(stream)
        if placed is None:
            return self._read_others(stream, offset, bytes_max)
        found = [each for each in placed if each.end > offset][:FRAMES_A_READ]
        if not found:
            return Chunk(b"", (), 0, end, end, ())
        base, next_ = found[0].base, found[-1].end
        frames = b"".join(each.frame for each in found)
        return Chunk(frames, (), next_ - base, base, next_, ())

    def _read_others(self, stream: StreamId, offset: int, bytes_max: int) -> Chunk:
        found = self._world.log.read(Read(0, stream, offset, bytes_max), 0)
        if isinstance(found, ReadFailed):
            raise LogUnreadable(path="a file", reason="its sectors are bad")
        frames = self._built(stream, found.frames) if found.frames else b""
        told = found.records, found.base, found.next, found.damaged, found.lost
        return Chunk(frames, found.mask, *told)

    def _built(self, stream: StreamId, stand_ins: bytes) -> bytes:
        bases, keys = cut_frames(stand_ins).base, keys_in(stand_ins)
        return b"".join(
            _stamped(_frame([keys[at] for at in range(*span)], stream), stream, span[0], 0)
            for span in pairwise(bases)
        )


def _frame(keys: Sequence[Key], stream: StreamId) -> bytes:
    records = len(keys)
    columns = Columns(
        payloads=[b""] * records,
        keys=[None if key is None else key.encode("latin-1") for key in keys],
        subjects=["t"] * records,
        headers=[()] * records,
        timestamps_us=[0] * records,
    )
    return build_frame(
        columns, partition=stream.partition, producer_id=NO_PRODUCER, sequence=0, limits=ENTRIES
    )


def _key_of(raw: bytes | None) -> Key:
    return None if raw is None else raw.decode("latin-1")


def _stamped(frame: bytes, stream: StreamId, base: int, now_us: int) -> bytes:
    head = stamped(
        frame,
        base_offset=base,
        append_time_us=now_us,
        topic_epoch=stream.storage_topic_id,
        storage_topic_id=stream.storage_topic_id,
    )
    return head + frame[len(head) :]
