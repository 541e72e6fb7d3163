"""The contents of a disk for one storage topic, and what a start makes of them.

::

    begin          marked           watermark        synced           visible
      │ known by marks │ read by a start, │ durable, and   │ readable where  │ on their way
      │                │ promised durable │ not promised   │ the topic is os │ to the disk
      ├────────────────┴──────────────────┴────────────────┴─────────────────┴──────────────
      frames of the active segment; those of sealed ones lie before

Frames are numbered in the order in which they were written, whatever their stream. The state of the
producers is the real one, `dssd.log.sequences`, and so is its way through a crash: snapshot, marks,
frames, doubt. So are the offsets that damage claims (`dssd.log.recovery.claimed_offsets`).

Invariant: synced frames survive everything except rot. Rot strikes only below the watermark: above
it, at the end of a file, rot cannot be told from a torn write. This module knows no readers, no
writers and no time.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from dss_core.frame import Header
from dss_sim.groups.history import Key
from dssd.log.recent_sequences import FirstAnswer
from dssd.log.recovery.claimed_offsets import Claim, LogPosition, LostBytes, claims_of
from dssd.log.sequences import Producers, SnapshotPosition

CEILING_OFFSETS = 24
"""How far above its stream's end a ceiling is raised, so that most frames find it high enough."""

BYTES_A_RECORD = 2
"""The least bytes of a record, so bad bytes count as at least as many records as they held."""

_SEGMENT = 1


class Frame(NamedTuple):
    """One frame as it was stored."""

    partition: int
    base: int
    records: int
    producer_id: bytes
    sequence: int
    content: int
    """The number of the frame at its producer: a refused frame gives its sequence to another."""
    keys: tuple[Key, ...]
    """The keys of its records."""
    time_us: int

    @property
    def end(self) -> int:
        """The offset after its last record."""
        return self.base + self.records

    def header(self) -> Header:
        """The header, which can be read if only the body is bad."""
        return Header(
            0, 0, 0, 0, self.records, self.partition, 0, self.producer_id, self.sequence, 0,
            self.base, self.time_us, 0, 0, 0,
        )  # fmt: skip


class Jump(NamedTuple):
    """Offsets of a partition without records."""

    partition: int
    start: int
    end: int


class Found(NamedTuple):
    """The findings of a start."""

    survived: Sequence[Frame]
    """Frames that could not be read before."""
    damaged: Sequence[Jump]
    """Offsets that are never assigned, because bad bytes may have held them."""
    lost: Sequence[Jump]
    """Offsets lost with the machine or never assigned, up to where the stream goes on."""


class TopicFile:
    """One storage topic on its disk, and its producers in memory."""

    def __init__(self, storage_topic_id: int, partitions: int, durability: str) -> None:
        self.storage_topic_id = storage_topic_id
        self.durability = durability
        self.frames: list[Frame] = []
        self.ends = [0] * partitions
        """The next offset of each stream."""
        self.producers = Producers(storage_topic_id)
        self.sealed_ends: list[int] | None = None
        """The final end of each stream, once it is sealed."""
        self.visible = 0
        """How many frames can be read."""
        self.ceilings = [0] * partitions
        """How many are durable. A frame of an os topic above its ceiling is synced before it is
        shown."""
        self._synced = 0
        self._watermark = 0
        self._begin = 0
        self._marked = 0
        self._marks: list[tuple[int, bytes]] = []
        self._marks_whole = True
        """Whether no frame is missing, so more may follow."""
        self._snapshot = self.producers.encode(self._covered())
        self._snapshot_at = 0
        self._begin_ends = [0] * partitions
        """The next offset of each stream when the active segment began."""
        self._bad: dict[int, bool] = {}
        """Frames that cannot be read, by number, and whether their headers can."""
        self._gone_from: dict[int, int] = {}
        """The offset of the first readable frame that each stream lost."""

    # Writing

    def place(
        self,
        partition: int,
        producer_id: bytes,
        sequence: int,
        content: int,
        keys: tuple[Key, ...],
        now_us: int,
    ) -> Frame:
        """Write a frame of records with these keys behind the others."""
        base, records = self.ends[partition], len(keys)
        frame = Frame(partition, base, records, producer_id, sequence, content, keys, now_us)
        self.frames.append(frame)
        self.ends[partition] = frame.end
        answer = FirstAnswer(frame.base, records, now_us)
        self.producers.stored(partition, producer_id, sequence, answer)
        return frame

    def seal(self) -> None:
        """Everything is durable, and nothing follows."""
        self.sync()
        self.sealed_ends = list(self.ends)

    def take_back(self, first: int) -> list[Frame]:
        """The frames from this number on found no room; returns them."""
        refused = self.frames[first:]
        del self.frames[first:]
        for frame in reversed(refused):
            self.ends[frame.partition] = frame.base
            self.producers.taken_back(frame.partition, frame.producer_id, frame.sequence)
        return refused

    def sync(self) -> None:
        """Everything written is on the disk."""
        self._synced = len(self.frames)

    def wants_sync(self) -> bool:
        """Whether written frames must be synced before they are shown."""
        return self.visible < len(self.frames) and (
            self.durability == "sync"
            or any(end > ceiling for end, ceiling in zip(self.ends, self.ceilings, strict=True))
        )

    def low_ceilings(self) -> dict[int, int]:
        """The new values of ceilings that must be raised: less than half of their room is left."""
        if self.durability == "sync":
            return {}
        return {
            partition: end + CEILING_OFFSETS
            for partition, end in enumerate(self.ends)
            if end and end + CEILING_OFFSETS // 2 > self.ceilings[partition]
        }

    def store_ceilings(self, ceilings: Mapping[int, int]) -> None:
        """The ceilings are durable."""
        for partition, ceiling in ceilings.items():
            self.ceilings[partition] = max(self.ceilings[partition], ceiling)

    def show(self) -> Sequence[Frame]:
        """Everything written can be read from now on; returns the newly readable frames."""
        fresh = self.frames[self.visible :]
        self.visible = len(self.frames)
        return fresh

    # Housekeeping

    def mark(self) -> None:
        """Store how far the file is durable, and which part a start need not read."""
        self.sync()
        self._watermark = self._synced
        changes = self.producers.take_changes()
        if self._marks_whole:
            self._marked = self._synced
            self._marks.append((self._marked, changes))

    def roll(self) -> None:
        """Seal the active segment, and begin another."""
        self.sync()
        self._begin_active(self._synced, self.ends)
        self._save_producers()

    def close(self) -> None:
        """Everything is durable and known: the next start has no doubt."""
        self.mark()
        self._save_producers()
        self.ceilings = [
            end if ceiling else 0 for end, ceiling in zip(self.ends, self.ceilings, strict=True)
        ]

    def _begin_active(self, begin: int, ends: Sequence[int]) -> None:
        self._begin = self._marked = begin
        self._watermark = max(begin, self._synced)
        self._marks.clear()
        self._marks_whole = True
        self._begin_ends = list(ends)

    def _save_producers(self) -> None:
        self._snapshot_at = len(self.frames)
        self._snapshot = self.producers.encode(self._covered())

    def _covered(self) -> SnapshotPosition:
        return SnapshotPosition(self.storage_topic_id, _SEGMENT, len(self.frames))

    # Faults

    def rot(self, partition: int, at: int, count: int, *, heads: bool) -> list[Frame]:
        """Some frames of a stream, from the n-th on, become unreadable; returns them.

        With ``heads`` not even their headers can be read.
        """
        chosen = self._durable(partition, at, count)
        self._bad |= dict.fromkeys(chosen, not heads)
        return [self.frames[number] for number in chosen]

    def durable(self, partition: int, at: int, count: int) -> list[Frame]:
        """Some frames of a stream, from the n-th durable and whole one on."""
        return [self.frames[number] for number in self._durable(partition, at, count)]

    def _durable(self, partition: int, at: int, count: int) -> list[int]:
        numbers = [
            number
            for number, frame in enumerate(self.frames[: self._watermark])
            if frame.partition == partition and number not in self._bad
        ]
        return numbers[at % len(numbers) :][:count] if numbers else []

    def lose_marks(self) -> None:
        """Lose the marks, which are only a cache; the next start reads the frames instead."""
        self._marks.clear()
        self._marked = self._begin
        self._marks_whole = False

    def crash(self, chance: Random, *, power: bool) -> None:
        """The process dies, or the machine: unsafe frames survive up to a random one."""
        safe = self._synced if power else max(self._synced, self.visible)
        if safe < len(self.frames) and not (power and chance.random() < 0.5):
            safe = chance.randint(safe, len(self.frames))
        for frame in reversed(self.frames[safe : self.visible]):
            self._gone_from[frame.partition] = frame.base
        del self.frames[safe:]
        if power and chance.random() < 0.5:
            self.lose_marks()

    # Starting

    def restart(self, *, clean: bool) -> Found:
        """Continue with what is there; the streams of an os topic at their ceilings."""
        survived = self.frames[self.visible :]
        self._marks_whole = True
        losses, claims = self._read()
        damaged = [Jump(claim.partition, claim.start, claim.end) for claim in claims]
        lost = self._jumps()
        if not clean:
            self.producers.doubt()
        if losses or not clean:
            self._settle(damaged=bool(losses))
        if lost:
            # A gap lies between two segments, because within one it would count as damage.
            self.roll()
        self.visible = len(self.frames)
        return Found(survived, damaged, lost)

    def _read(self) -> tuple[list[LostBytes], list[Claim]]:
        """Learn the frames again: by marks, then frame by frame."""
        producers, _ = Producers.decode(self._snapshot)
        for end, changes in self._marks:
            if end > self._snapshot_at:
                producers.apply(changes)
        ends, places, losses = list(self._begin_ends), dict[int, LogPosition](), list[LostBytes]()
        for number in range(self._begin, len(self.frames)):
            frame, place = self.frames[number], LogPosition(_SEGMENT, number)
            if number >= self._marked:
                if number in self._bad:
                    losses.append(self._loss(number, place, producers))
                    continue
                answer = FirstAnswer(frame.base, frame.records, frame.time_us)
                producers.stored(frame.partition, frame.producer_id, frame.sequence, answer)
            ends[frame.partition], places[frame.partition] = frame.end, place
        claims = claims_of(losses, ends, places, self.sealed_ends)
        for claim in claims:
            ends[claim.partition] = claim.end
        if losses:
            producers.forget_gone(self._is_there)
        self.ends, self.producers = ends, producers
        return losses, claims

    def _loss(self, number: int, place: LogPosition, producers: Producers) -> LostBytes:
        frame = self.frames[number]
        header = frame.header() if self._bad[number] else None
        if header is not None and number < self._watermark:
            producers.lost(frame.partition, frame.producer_id, frame.sequence, frame.time_us)
        return LostBytes(place, BYTES_A_RECORD * frame.records, header)

    def _is_there(self, partition: int, offset: int) -> bool:
        """Whether a frame is readable, if only the active segment was found damaged."""
        frames = (self.frames[number] for number in self._bad if number >= self._begin)
        return (partition, offset) not in {(frame.partition, frame.base) for frame in frames}

    def _jumps(self) -> list[Jump]:
        lost: list[Jump] = []
        for partition, ceiling in enumerate(self.ceilings):
            end = self.ends[partition]
            if ceiling > end and self.sealed_ends is None:
                self.ends[partition] = ceiling
            start = self._gone_from.get(partition, end)
            if start < self.ends[partition] or partition in self._gone_from:
                lost.append(Jump(partition, start, self.ends[partition]))
        self._gone_from.clear()
        return lost

    def _settle(self, *, damaged: bool) -> None:
        """Make the found frames durable, as the real start does."""
        tail, self._synced = self._watermark, len(self.frames)
        if damaged:
            self._begin_active(self._synced, self.ends)
        elif tail < self._synced:
            # Frames above the watermark are copied to a new segment.
            self._begin_active(tail, self._ends_at(tail))
        self._save_producers()

    def _ends_at(self, number: int) -> list[int]:
        ends = list(self._begin_ends)
        for frame in self.frames[self._begin : number]:
            ends[frame.partition] = frame.end
        return ends
