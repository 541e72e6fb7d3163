"""What a run does, as values, and how a seed draws it.

An act names a topic, producer or partition by a number, taken modulo how many there are when the
act is done; so a run stays valid if acts are left out. Invariant: a plan follows from its seed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from dss_sim.log.clock import ClockDraws
from dss_sim.log.faults import (
    CALLS,
    COMMIT,
    NEEDS_ROOM,
    SYNCS,
    WRITES,
    Kind,
)
from dss_sim.log.ledger import PRODUCERS
from dssd.log.settings import LogSettings


@dataclass(frozen=True, slots=True)
class MakeTopic:
    """Create a topic."""

    partitions: int
    durability: str = "sync"


@dataclass(frozen=True, slots=True)
class RemoveTopic:
    """Remove a topic."""

    topic: int


@dataclass(frozen=True, slots=True)
class Sending:
    """One frame; unanswered frames of its producer are sent before it."""

    topic: int
    partition: int
    producer: int
    records: int
    length: int
    """Bytes of a payload."""


@dataclass(frozen=True, slots=True)
class Send:
    """Frames in one call."""

    sendings: tuple[Sending, ...]


@dataclass(frozen=True, slots=True)
class Adopt:
    """Adopt frames of one topic, all at once, without a producer."""

    topic: int
    sendings: tuple[Sending, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Send a frame again that was answered."""

    topic: int
    partition: int
    producer: int
    back: int
    """How many later frames its producer has sent."""


@dataclass(frozen=True, slots=True)
class Roll:
    """Let a topic go on in a new file."""

    topic: int


@dataclass(frozen=True, slots=True)
class Seal:
    """Seal a topic: it takes no more frames."""

    topic: int


@dataclass(frozen=True, slots=True)
class Grow:
    """Give a topic another storage topic and switch to it."""

    topic: int
    partitions: int


@dataclass(frozen=True, slots=True)
class Trim:
    """Trim a share of what a stream has."""

    topic: int
    partition: int
    share: float


@dataclass(frozen=True, slots=True)
class Retain:
    """Set a topic's retention, by bytes or by age."""

    topic: int
    bytes: int | None
    age_ms: int | None


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Read a stream from a share of it on."""

    topic: int
    partition: int
    share: float
    bytes_max: int


@dataclass(frozen=True, slots=True)
class Probe:
    """Every producer sends its last frames once more, and every stream gets one more frame."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for a while, so that all that is due happens."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Jump:
    """Move the wall clock forward or back; needs no process."""

    by_us: int


@dataclass(frozen=True, slots=True)
class Together:
    """Do several acts at once."""

    acts: tuple["Act", ...]


@dataclass(frozen=True, slots=True)
class Arm:
    """Arm a fault: from now on it waits for its calls."""

    kind: Kind
    calls: frozenset[str]
    passing: int
    strikes: int


@dataclass(frozen=True, slots=True)
class MakeRoom:
    """Give the disk room again."""


@dataclass(frozen=True, slots=True)
class Rot:
    """Flip a bit in a file: the number of the file, a share of its bytes, the bit."""

    file: int
    share: float
    bit: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop the process in order."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill the process."""


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """Cut the power during the last acts: after a share of their steps."""

    share: float


Act = (
    MakeTopic
    | RemoveTopic
    | Send
    | Adopt
    | Repeat
    | Roll
    | Seal
    | Grow
    | Trim
    | Retain
    | ReadBack
    | Probe
    | Wait
    | Jump
    | Together
    | Arm
    | MakeRoom
    | Rot
    | Stop
    | Kill
    | PowerLoss
)
Befalling = Arm | MakeRoom | Rot | Jump
"""Acts that happen to a process, or need none."""
ENDS = (Stop, Kill, PowerLoss)
"""Acts that end a life."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """An act with its number, which seeds its randomness, so leaving out other acts does not change
    it."""

    number: int
    act: Act


@dataclass(frozen=True, slots=True)
class Plan:
    """A run."""

    seed: int
    settings: LogSettings
    acts: tuple[Numbered, ...]
    begins_us: int
    """The wall clock at its beginning."""


ACTS = (5, 60)
JUMPS_FROM = 1_000
"""The first number for jumps of the clock: other acts keep their numbers, however many jumps there
are."""
ADOPTS_FROM = 100_000
"""The first number of an adoption, for the same reason."""
READ_LOOP_US = 60_000_000
"""So long that the clock ends no read."""
KINDS = ("send", "make", "repeat", "roll", "seal", "trim", "retain", "read", "remove", "wait")
KIND_WEIGHTS = (60, 4, 6, 7, 1, 6, 5, 8, 2, 2)
UNSYNCED = 0.25
"""The share of topics of durability ``os``."""
FAULTY = 0.6
"""The share of runs with faults other than the ends of lives."""
ROTTEN = 0.3
"""The share of these that have bit rot."""


def drawn(seed: int) -> Plan:
    """The plan that the seed draws, without adoptions."""
    chance = Random(seed)
    draws = _Draws(chance)
    acts: list[Act] = [draws.topic()]
    for _ in range(chance.randint(*ACTS)):
        acts += draws.acts()
    settings, clock = settings_of(chance), ClockDraws(seed)
    return Plan(seed, settings, tuple(_timed(acts, clock)), clock.begins_us)


def _timed(acts: Sequence[Act], clock: ClockDraws) -> Iterator[Numbered]:
    """The acts, with the moves of the clock between them."""
    for number, act in enumerate(acts):
        if isinstance(act, Retain) and act.age_ms is not None:
            act = replace(act, age_ms=clock.age_ms(act.age_ms))
        yield Numbered(number, act)
        by_us = clock.jump_us()
        if by_us is not None:
            yield Numbered(JUMPS_FROM + number, Jump(by_us))


def settings_of(chance: Random) -> LogSettings:
    """Small bounds, so that a few frames reach what otherwise only many do."""
    return LogSettings(
        segment_bytes_max=chance.choice((2 << 10, 6 << 10, 16 << 10)),
        segment_frames_max=chance.choice((6, 50, 1_000)),
        run_bytes_max=chance.choice((1, 1 << 10, 8 << 10)),
        watermark_bytes=chance.choice((1, 1 << 10, 4 << 10, 1 << 20)),
        tail_cache_bytes_max=chance.choice((0, 4 << 10, 1 << 20)),
        descriptors_max=chance.choice((1, 4, 64)),
        active_descriptors_max=chance.choice((1, 2, 64)),
        index_blocks_max=chance.choice((1, 64)),
        read_loop_us=READ_LOOP_US,
    )


class _Draws:
    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._is_faulty = chance.random() < FAULTY
        self._is_rotten = self._is_faulty and chance.random() < ROTTEN
        self._lengths = chance.choice(((5, 60), (5, 60), (200, 700), (400, 1_700)))
        self._ends = chance.uniform(0.02, 0.2)
        """How likely a life ends."""

    def topic(self) -> MakeTopic:
        """A new topic."""
        durability = "os" if self._chance.random() < UNSYNCED else "sync"
        return MakeTopic(self._chance.randint(1, 4), durability)

    def acts(self) -> list[Act]:
        """Any act, or several that belong together."""
        drawn = self._chance.random()
        if drawn < self._ends:
            return self._end()
        if self._is_faulty and drawn < self._ends + 0.08:
            return [self._fault()]
        if drawn > 0.9:
            return [Together(tuple(self._plain() for _ in range(self._chance.randint(2, 4))))]
        return [self._plain()]

    def _end(self) -> list[Act]:
        chance = self._chance
        match chance.choice(("power", "power", "power", "stop", "kill", "kill in a call")):
            case "power":
                return [PowerLoss(chance.random())]
            case "stop":
                return [Stop()]
            case "kill":
                return [Kill()]
        killing = Arm("kill", CALLS | {COMMIT}, chance.randrange(4), 1)
        return [killing, Send((self._sending(),)), Kill()]

    def _plain(self) -> Act:
        chance = self._chance
        match chance.choices(KINDS, KIND_WEIGHTS)[0]:
            case "send":
                return Send(tuple(self._sending() for _ in range(chance.choice((1, 1, 2, 5)))))
            case "make":
                return self.topic()
            case "wait":
                return Wait(chance.choice((0.1, 1.5)))
            case kind:
                return self._on_topic(kind, chance.randrange(8), chance.randrange(4))

    def _on_topic(self, kind: str, topic: int, partition: int) -> Act:
        chance = self._chance
        by_bytes = chance.random() < 0.7
        size, age_ms = chance.choice((1, 1 << 10, 4 << 10)), chance.choice((0, 50))
        acts: dict[str, Act] = {
            "repeat": Repeat(topic, partition, chance.randrange(PRODUCERS), chance.randrange(7)),
            "roll": Roll(topic),
            "seal": Grow(topic, 1 + partition) if by_bytes else Seal(topic),
            "trim": Trim(topic, partition, chance.choice((0.3, 0.7, 1.0))),
            "retain": Retain(topic, size if by_bytes else None, None if by_bytes else age_ms),
            "read": ReadBack(topic, partition, chance.random(), chance.choice((1, 1 << 20))),
            "remove": RemoveTopic(topic),
        }
        return acts[kind]

    def _sending(self) -> Sending:
        chance = self._chance
        producer = chance.randrange(-1, PRODUCERS)
        records = chance.choice((1, 1, 2, 3, 40))
        length = chance.randint(*self._lengths) if records < 40 else 5
        return Sending(chance.randrange(8), chance.randrange(4), producer, records, length)

    def _fault(self) -> Act:
        chance = self._chance
        passing = chance.randrange(12)
        kinds = "full room kill eio short" + " rot" * self._is_rotten
        match chance.choice(kinds.split()):
            case "full":
                return Arm("full", NEEDS_ROOM, passing, chance.choice((1, 2, 8, 40)))
            case "room":
                return MakeRoom()
            case "kill":
                return Arm("kill", CALLS | {COMMIT}, passing, 1)
            case "eio":
                return Arm("eio", chance.choice((CALLS, SYNCS, WRITES)), passing, 1)
            case "short":
                return Arm("short", WRITES, passing, chance.choice((1, 3)))
        return Rot(chance.randrange(64), chance.random(), chance.randrange(8))
