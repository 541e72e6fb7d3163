"""The facts of a run (what it asked for, was told and has seen), and what they promise.

A producer may be forgotten once none of its frames was appended for `FORGOTTEN_AFTER_US`, by any
reading of the wall clock. If it then sends an earlier frame again, that is refused as forgotten or
gets its earlier answer; it is never stored again. Nothing else is forgotten because time passed,
whatever the clock does. A producer that is told so goes on as another producer.

Invariant: facts are only added; the ledger of a crash is that of the facts before it. It must not
know how the log works.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dss_core.frame import HEADER_BYTES
from dss_core.ids import StreamId
from dss_core.limits import PRODUCER_WINDOW_SEQUENCES
from dss_sim.power_loss.promises import (
    RemovalAsked,
    TopicAsked,
    TopicMade,
    TopicRemoved,
    TrimAsked,
    Trimmed,
)
from dssd.log.segment.file import PRODUCERS_SUFFIX

Key = tuple[StreamId, int]
"""A stream and a producer's number."""
GONE = "a start did not find it"
FORGOTTEN = "its producer was forgotten"
PRODUCERS = 3
"""How many producers have a stream at a time."""
FORGOTTEN_AFTER_US = 24 * 3_600 * 1_000_000
"""How long after its last append a producer is remembered, as decision 7 promises."""
BETWEEN_READS_US = 60_000_000
"""More time than passes between two `ClockRead` facts."""
ANONYMOUS = -1
"""The number that stands for no producer; its frames are not followed."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as it was sent. No two frames have the same body."""

    number: int
    stream: StreamId
    producer: int
    sequence: int
    records: int
    content: bytes = field(repr=False)
    keys: tuple[bytes | None, ...] = field(repr=False)
    """Of its records."""
    durability: str = "sync"

    @property
    def body(self) -> bytes:
        """The part that the log does not change."""
        return self.content[HEADER_BYTES:]


class Place(NamedTuple):
    """Where a frame lies, and since when."""

    base: int
    time_us: int


@dataclass(frozen=True, slots=True)
class FrameSent:
    """A frame was sent: it may be in its stream from now on."""

    frame: Frame


@dataclass(frozen=True, slots=True)
class SentTogether:
    """Frames were sent that become visible all at once, or not at all."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FrameStored:
    """A frame is stored: an append was answered so, or somebody has read it."""

    number: int
    place: Place


@dataclass(frozen=True, slots=True)
class FrameRefused:
    """A frame is not stored: an append was answered so, or a start has not found it."""

    number: int
    why: str


@dataclass(frozen=True, slots=True)
class FrameHit:
    """Bit rot changed a frame's bytes: it may be unreadable."""

    number: int
    in_header: bool = False
    """Its header is hit, so nothing tells its offsets any more."""


@dataclass(frozen=True, slots=True)
class Rotten:
    """Bit rot hit some file: a start may report that."""

    path: str


@dataclass(frozen=True, slots=True)
class DamageSeen:
    """A start gave up offsets of a stream, with reason."""

    stream: StreamId


@dataclass(frozen=True, slots=True)
class PowerLost:
    """Frames that were not synced may be gone."""


@dataclass(frozen=True, slots=True)
class ClockRead:
    """The wall clock shows this, or will soon: producers that were silent for long may be
    forgotten."""

    now_us: int


@dataclass(frozen=True, slots=True)
class EndSeen:
    """All offsets of the stream below this one were given."""

    stream: StreamId
    end: int


@dataclass(frozen=True, slots=True)
class SealAsked:
    """A seal was asked for: a storage topic may take no more frames from now on."""

    storage_topic_id: int


@dataclass(frozen=True, slots=True)
class Sealed:
    """A storage topic takes no more frames."""

    storage_topic_id: int


Fact = (
    TopicAsked
    | TopicMade
    | RemovalAsked
    | TopicRemoved
    | TrimAsked
    | Trimmed
    | FrameSent
    | SentTogether
    | FrameStored
    | FrameRefused
    | FrameHit
    | Rotten
    | DamageSeen
    | PowerLost
    | ClockRead
    | EndSeen
    | SealAsked
    | Sealed
)


@dataclass(slots=True)
class Ledger:
    """What the facts so far promise together."""

    topics: dict[str, TopicMade] = field(default_factory=dict)
    maybe: set[str] = field(default_factory=set)
    """Topics that may or may not exist."""
    removals: int = 0
    """How many storage topics were asked for."""
    frames: dict[int, Frame] = field(default_factory=dict)
    places: dict[int, Place] = field(default_factory=dict)
    """The newest place of each frame that is stored."""
    at_risk: set[int] = field(default_factory=set)
    """Stored frames that a power loss may have taken: their topic answers before a sync."""
    asked: Counter[int] = field(default_factory=Counter)
    """How often a frame was sent and not refused: it may be in flight several times."""
    together: list[tuple[int, ...]] = field(default_factory=list)
    """Sets of frames of which all are stored, or none."""
    refused: dict[int, str] = field(default_factory=dict)
    """Frames that are not there, and why."""
    hit: set[int] = field(default_factory=set)
    nameless: set[int] = field(default_factory=set)
    """Hit frames whose headers are hit."""
    ever_hit: set[int] = field(default_factory=set)
    """Frames of which nobody knows which copy was hit."""
    rotten: set[str] = field(default_factory=set)
    damaged: set[StreamId] = field(default_factory=set)
    sent: defaultdict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Frames of a producer in a stream, by sequence."""
    starts_min: dict[StreamId, int] = field(default_factory=dict)
    starts_max: dict[StreamId, int] = field(default_factory=dict)
    ends_min: dict[StreamId, int] = field(default_factory=dict)
    unsynced: set[int] = field(default_factory=set)
    """Storage topics that answer before a sync."""
    sealing: set[int] = field(default_factory=set)
    """Storage topics that may take no more frames."""
    sealed: set[int] = field(default_factory=set)
    clock_us: int = 0
    """The wall clock at its last reading."""
    sent_us: dict[int, int] = field(default_factory=dict)
    """The wall clock when a frame was first sent."""
    lapsed: set[int] = field(default_factory=set)
    """Frames that the log may have forgotten: if they are sent again, they may be refused."""
    turns: Counter[Key] = field(default_factory=Counter)
    """How often a producer was told that a stream had forgotten it."""

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> "Ledger":
        """The ledger of these facts."""
        ledger = cls()
        for fact in facts:
            ledger.learn(fact)
        return ledger

    def learn(self, fact: Fact) -> None:
        """Add one fact."""
        match fact:
            case TopicAsked() | TopicMade() | RemovalAsked() | TopicRemoved():
                self._learn_topic(fact)
            case TrimAsked() | Trimmed():
                self._learn_start(fact)
            case FrameSent() | SentTogether() | FrameStored() | FrameRefused() | FrameHit():
                self._learn_frame(fact)
            case EndSeen(stream, end):
                self.ends_min[stream] = max(end, self.ends_min.get(stream, 0))
            case PowerLost():
                unsynced = (one.number for one in self.frames.values() if one.durability == "os")
                self.at_risk = {number for number in unsynced if number in self.places}
            case ClockRead(now_us):
                self.clock_us = now_us
                self._forget_silent(now_us + BETWEEN_READS_US)
            case DamageSeen(stream):
                self.damaged.add(stream)
            case SealAsked() | Sealed():
                own = self.sealing if isinstance(fact, SealAsked) else self.sealed
                own.add(fact.storage_topic_id)
            case Rotten(path):
                self.rotten.add(path)

    def _learn_topic(self, fact: TopicAsked | TopicMade | RemovalAsked | TopicRemoved) -> None:
        self.topics.pop(fact.name, None)
        self.maybe.discard(fact.name)
        match fact:
            case TopicAsked(name):
                self.maybe.add(name)
            case RemovalAsked(name):
                self.maybe.add(name)
                self.removals += 1
            case TopicMade(name):
                self.topics[name] = fact
                if fact.durability == "os":
                    self.unsynced.add(fact.storage_topic_id)

    def _learn_start(self, fact: TrimAsked | Trimmed) -> None:
        starts = self.starts_max if isinstance(fact, TrimAsked) else self.starts_min
        stream = StreamId(fact.storage_topic_id, fact.partition)
        starts[stream] = max(fact.offset, starts.get(stream, 0))

    def _learn_frame(
        self, fact: FrameSent | SentTogether | FrameStored | FrameRefused | FrameHit
    ) -> None:
        match fact:
            case SentTogether(numbers):
                self.together.append(numbers)
            case FrameSent(frame):
                if frame.number not in self.frames:
                    self.sent[frame.stream, frame.producer].append(frame.number)
                self.frames[frame.number] = frame
                self.sent_us.setdefault(frame.number, self.clock_us)
                if frame.durability == "os":
                    # A topic may be there although nobody was told so.
                    self.unsynced.add(frame.stream.storage_topic_id)
                self.asked[frame.number] += 1
                self.refused.pop(frame.number, None)
            case FrameStored(number, place):
                if self.places.get(number) != place:
                    self._learn_place(number, place)
                self.at_risk.discard(number)
                self.refused.pop(number, None)
                stream = self.frames[number].stream
                end = place.base + self.frames[number].records
                self.ends_min[stream] = max(end, self.ends_min.get(stream, 0))
            case FrameRefused(number, why):
                self._learn_refusal(number, why)
            case FrameHit(number, in_header):
                self.hit.add(number)
                if in_header:
                    self.nameless.add(number)
                self.ever_hit.add(number)

    def _learn_refusal(self, number: int, why: str) -> None:
        self.asked[number] -= 1
        if why == FORGOTTEN:
            self._learn_forgotten(self.frames[number])
        # The log may still know the answer for a frame that was hit, so its place is kept.
        if number in self.at_risk - self.hit and why == GONE:
            self.at_risk.discard(number)
            del self.places[number]
        if number not in self.places and (self.asked[number] <= 0 or why == GONE):
            self.asked[number] = 0
            self.refused[number] = why

    def _learn_place(self, number: int, place: Place) -> None:
        """Note a frame's new place: a frame that was hit was stored again."""
        self.lapsed.discard(number)
        self.places[number] = place
        self.hit.discard(number)
        self.nameless.discard(number)

    def _learn_forgotten(self, frame: Frame) -> None:
        named = frame.producer % PRODUCERS
        if frame.producer == self.current(frame.stream, named):
            self.turns[frame.stream, named] += 1

    def _forget_silent(self, now_us: int) -> None:
        """Producers whose last append is too long ago may be forgotten."""
        for (_, producer), numbers in self.sent.items():
            if producer == ANONYMOUS or self._last_us(numbers) + FORGOTTEN_AFTER_US >= now_us:
                continue
            self.lapsed.update(numbers)

    def _last_us(self, numbers: Sequence[int]) -> int:
        """The latest time at which a producer's frame may have been appended last."""
        stored = (self.frames[one] for one in numbers if one in self.places)
        sure = (one.number for one in stored if not self.may_be_forgotten(one))
        earliest = min(self.sent_us[one] for one in numbers)
        return max((self.places[one].time_us for one in sure), default=earliest)

    def current(self, stream: StreamId, producer: int) -> int:
        """The producer's present identity in a stream; it changes each time that it was
        forgotten."""
        return producer if producer == ANONYMOUS else self._turned(stream, producer)

    def _turned(self, stream: StreamId, producer: int) -> int:
        return producer + PRODUCERS * self.turns[stream, producer]

    def unanswered(self, stream: StreamId, producer: int) -> list[Frame]:
        """The frames that a producer sends again before anything newer, in order."""
        sent = self.sent.get((stream, producer), [])
        return [self.frames[number] for number in sent if number not in self.places]

    def next_sequence(self, stream: StreamId, producer: int) -> int:
        """The sequence after the last one that was sent."""
        sent = self.sent.get((stream, producer), [])
        return self.frames[sent[-1]].sequence + 1 if sent else 0

    def stored(self, stream: StreamId, producer: int) -> list[Frame]:
        """Frames of a producer that are there, in order."""
        sent = self.sent.get((stream, producer), [])
        return [self.frames[number] for number in sent if number in self.places]

    def is_answer_known(self, frame: Frame) -> bool:
        """Whether the log must still know where it stored a frame."""
        behind = self.next_sequence(frame.stream, frame.producer) - frame.sequence
        own = [frame.number, *self._after(frame)]
        if frame.number in self.lapsed or behind > PRODUCER_WINDOW_SEQUENCES:
            return False
        return not any(self.is_overtaken(self.frames[number]) for number in own)

    def may_be_forgotten(self, frame: Frame) -> bool:
        """Whether bit rot or a power loss may have taken all traces of a stored frame.

        After a trim only the snapshot of the producers has a trace.
        """
        is_rotten = any(path.endswith(PRODUCERS_SUFFIX) for path in self.rotten)
        start = self.starts_max.get(frame.stream, 0)
        return frame.number in self.hit | self.at_risk or (
            is_rotten and self.places[frame.number].base + frame.records <= start
        )

    def is_overtaken(self, frame: Frame) -> bool:
        """Whether it is not stored although a later frame of its producer is."""
        return not self._is_sure(frame.number) and any(
            number in self.places for number in self._after(frame)
        )

    def _is_sure(self, number: int) -> bool:
        return number in self.places and number not in self.at_risk

    def _after(self, frame: Frame) -> list[int]:
        sent = self.sent[frame.stream, frame.producer]
        return sent[sent.index(frame.number) + 1 :]
