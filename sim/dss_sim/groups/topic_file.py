"""What a disk holds of one storage topic, and what a start makes of it.

::

    begin          marked           watermark        synced           visible
      │ known by marks │ read by a start, │ durable, and   │ readable where  │ on their way
      │                │ promised durable │ not promised   │ the topic is os │ to the disk
      ├────────────────┴──────────────────┴────────────────┴─────────────────┴──────────────
      frames of the active segment; those of sealed ones lie before

Frames are numbered in the order in which they were written, whatever their stream. The state of the
producers is the real one, `dssd.log.sequences`, and so is its way through a crash: snapshot, marks,
frames, doubt. So are the offsets that damage takes along (`dssd.log.recovery.claimed_offsets`).

Invariant: what was synced survives everything but rot. Rot strikes below the watermark only:
above it, at the end of a file, rot cannot be told from a torn write. This module knows no readers,
no writers and no time.
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
"""A record takes at least one, so bad bytes count as at least as many records as they held."""

_SEGMENT = 1


class Frame(NamedTuple):
    """One frame as it was stored."""

    partition: int
    base: int
    records: int
    producer_id: bytes
    sequence: int
    content: int
    """Which of its producer's frames it is: a refused one gives its sequence to another."""
    keys: tuple[Key, ...]
    """Of its records."""
    time_us: int

    @property
    def end(self) -> int:
        """Behind its last record."""
        return self.base + self.records

    def header(self) -> Header:
        """As it can be read where only the body is bad."""
        return Header(
            0, 0, 0, 0, self.records, self.partition, 0, self.producer_id, self.sequence, 0,
            self.base, self.time_us, 0, 0, 0,
        )  # fmt: skip


class Jump(NamedTuple):
    """Offsets of a partition that hold nothing."""

    partition: int
    start: int
    end: int


class Found(NamedTuple):
    """What a start found."""

    survived: Sequence[Frame]
    """Frames that could not be read before."""
    damaged: Sequence[Jump]
    """Offsets that are never given, because bad bytes may have held them."""
    lost: Sequence[Jump]
    """Offsets that went with the machine or were never given, up to where the stream goes on."""


class TopicFile:
    """One storage topic on its disk, and its producers in memory."""

    def __init__(self, storage_topic_id: int, partitions: int, durability: str) -> None:
        self.storage_topic_id = storage_topic_id
        self.durability = durability
        self.frames: list[Frame] = []
        self.ends = [0] * partitions
        """Where each stream goes on."""
        self.producers = Producers(storage_topic_id)
        self.sealed_ends: list[int] | None = None
        """Where its streams end for good, once it is sealed."""
        self.visible = 0
        """So many frames can be read."""
        self.ceilings = [0] * partitions
        """Durable. What an os topic shows above its ceilings is synced first."""
        self._synced = 0
        self._watermark = 0
        self._begin = 0
        self._marked = 0
        self._marks: list[tuple[int, bytes]] = []
        self._marks_whole = True
        """None is missing, so more may follow."""
        self._snapshot = self.producers.encode(self._covered())
        self._snapshot_at = 0
        self._begin_ends = [0] * partitions
        """Where the streams went on when the active segment began."""
        self._bad: dict[int, bool] = {}
        """Frames that cannot be read, by number, and whether their headers can."""
        self._gone_from: dict[int, int] = {}
        """The first readable frame that each stream lost, by its offset."""

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
        """All is durable, and nothing follows."""
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
        """All that was written is on the disk."""
        self._synced = len(self.frames)

    def wants_sync(self) -> bool:
        """Whether what was written may not be shown before it is synced."""
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
        """They are durable."""
        for partition, ceiling in ceilings.items():
            self.ceilings[partition] = max(self.ceilings[partition], ceiling)

    def show(self) -> Sequence[Frame]:
        """All that was written can be read from now on; returns what could not before."""
        fresh = self.frames[self.visible :]
        self.visible = len(self.frames)
        return fresh

    # Housekeeping

    def mark(self) -> None:
        """Store how far the file is durable, and what a start need not read."""
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
        """All is durable and known: the next start has no doubt."""
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

    # What goes wrong

    def rot(self, partition: int, at: int, count: int, *, heads: bool) -> list[Frame]:
        """So many frames of a stream from the n-th on become unreadable; returns them.

        With ``heads`` not even the headers of these can be read.
        """
        chosen = self._durable(partition, at, count)
        self._bad |= dict.fromkeys(chosen, not heads)
        return [self.frames[number] for number in chosen]

    def durable(self, partition: int, at: int, count: int) -> list[Frame]:
        """So many frames of a stream from the n-th on, of those that are durable and whole."""
        return [self.frames[number] for number in self._durable(partition, at, count)]

    def _durable(self, partition: int, at: int, count: int) -> list[int]:
        numbers = [
            number
            for number, frame in enumerate(self.frames[: self._watermark])
            if frame.partition == partition and number not in self._bad
        ]
        return numbers[at % len(numbers) :][:count] if numbers else []

    def lose_marks(self) -> None:
        """They are only a cache; the next start reads the frames instead."""
        self._marks.clear()
        self._marked = self._begin
        self._marks_whole = False

    def crash(self, chance: Random, *, power: bool) -> None:
        """The process dies, or the machine: what is not safe survives up to some frame."""
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
        """Go on with what is there; the streams of an os topic at their ceilings."""
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
            # A gap lies between two segments, for within one it would count as damage.
            self.roll()
        self.visible = len(self.frames)
        return Found(survived, damaged, lost)

    def _read(self) -> tuple[list[LostBytes], list[Claim]]:
        """Know again what the frames tell: by marks, then frame by frame."""
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
        """Whether a frame is readable, where only the active segment was found damaged."""
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
        """Make durable what was found, as the real start does."""
        tail, self._synced = self._watermark, len(self.frames)
        if damaged:
            self._begin_active(self._synced, self.ends)
        elif tail < self._synced:
            # What lies above the watermark is copied to a new segment.
            self._begin_active(tail, self._ends_at(tail))
        self._save_producers()

    def _ends_at(self, number: int) -> list[int]:
        ends = list(self._begin_ends)
        for frame in self.frames[self._begin : number]:
            ends[frame.partition] = frame.end
        return ends
