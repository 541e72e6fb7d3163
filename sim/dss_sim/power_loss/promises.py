"""What a daemon's clients were told and what they asked for, and what must hold from then on.

A script tells facts, one line each. `Promises` learns them in order; `recovery_check` holds a
daemon that came back to them. Invariant: pure; a fact about an answer never makes a promise weaker,
a fact about a request may.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from dss_core.ids import StreamId


@dataclass(frozen=True, slots=True)
class TopicAsked:
    """A topic was asked for: it may exist from now on."""

    name: str


@dataclass(frozen=True, slots=True)
class TopicMade:
    """A topic exists."""

    name: str
    topic_id: int
    storage_topic_id: int
    partitions: int
    durability: str = "sync"


@dataclass(frozen=True, slots=True)
class RemovalAsked:
    """A removal was asked for: a topic may be gone from now on."""

    name: str


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """A topic is gone."""

    name: str


@dataclass(frozen=True, slots=True)
class Sent:
    """Records were sent: these payloads, in one frame, may be in a stream from now on."""

    storage_topic_id: int
    partition: int
    payloads: list[str]


@dataclass(frozen=True, slots=True)
class SentTogether:
    """These records, each sent too, become visible at once with the row of this number, or not at
    all."""

    number: int
    payloads: list[str]


@dataclass(frozen=True, slots=True)
class Stored:
    """Records are stored from this offset on, as durably as their topic says."""

    storage_topic_id: int
    partition: int
    base_offset: int
    payloads: list[str]


@dataclass(frozen=True, slots=True)
class Synced:
    """Everything that was stored below the offset is durable, whatever the topic says."""

    storage_topic_id: int
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class TrimAsked:
    """A trim was asked for: records below the offset may be gone from now on."""

    storage_topic_id: int
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The stream starts at the offset."""

    storage_topic_id: int
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class GroupMade:
    """A group exists."""

    name: str
    filter: str


@dataclass(frozen=True, slots=True)
class AckAsked:
    """An ack was asked for: a group's progress in a stream may be as far as this."""

    group: str
    storage_topic_id: int
    partition: int
    floor: int


@dataclass(frozen=True, slots=True)
class Acked:
    """An ack was answered: the progress is at least as far as this."""

    group: str
    storage_topic_id: int
    partition: int
    floor: int


@dataclass(frozen=True, slots=True)
class Granted:
    """A stream was lent under this epoch: no later loan has a lower one."""

    group: str
    storage_topic_id: int
    partition: int
    grant_epoch: int


@dataclass(frozen=True, slots=True)
class SessionMade:
    """A session exists."""

    client_id: str
    session_epoch: int


Fact = (
    TopicAsked
    | TopicMade
    | RemovalAsked
    | TopicRemoved
    | Sent
    | SentTogether
    | Stored
    | Synced
    | TrimAsked
    | Trimmed
    | GroupMade
    | AckAsked
    | Acked
    | Granted
    | SessionMade
)
_KINDS: dict[str, type[Fact]] = {
    kind.__name__: kind
    for kind in (
        *(TopicAsked, TopicMade, RemovalAsked, TopicRemoved, Sent, SentTogether),
        *(Stored, Synced),
        *(TrimAsked, Trimmed, GroupMade, AckAsked, Acked, Granted, SessionMade),
    )
}


def encode(fact: Fact) -> str:
    """The fact as a line."""
    return json.dumps([type(fact).__name__, asdict(fact)])


def decode(line: str) -> Fact:
    """The fact of a line."""
    name, fields = json.loads(line)
    return _KINDS[name](**fields)


@dataclass(slots=True)
class Promises:
    """What must hold, by what was told, and what may hold, by what was asked for."""

    topics: dict[str, TopicMade] = field(default_factory=dict)
    """Topics that exist."""
    maybe: set[str] = field(default_factory=set)
    """Topics that may or may not exist."""
    removed: set[str] = field(default_factory=set)
    """Topics that do not exist."""
    sent: defaultdict[StreamId, set[str]] = field(default_factory=lambda: defaultdict(set))
    together: dict[int, set[str]] = field(default_factory=dict)
    stored: defaultdict[StreamId, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    """Records that are stored."""
    unsynced: set[int] = field(default_factory=set)
    """Storage topics that answer before anything is durable."""
    seen: defaultdict[StreamId, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    """For those topics: each offset was given to this record, which may be lost."""
    ends_min: dict[StreamId, int] = field(default_factory=dict)
    """Every offset below was given."""
    starts_min: dict[StreamId, int] = field(default_factory=dict)
    starts_max: dict[StreamId, int] = field(default_factory=dict)
    groups: set[tuple[str, str]] = field(default_factory=set)
    floors_min: dict[tuple[str, StreamId], int] = field(default_factory=dict)
    floors_max: dict[tuple[str, StreamId], int] = field(default_factory=dict)
    epochs_min: dict[tuple[str, StreamId], int] = field(default_factory=dict)
    sessions: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[str]) -> "Promises":
        """The promises of these lines."""
        promises = cls()
        for line in lines:
            promises.learn(decode(line))
        return promises

    def learn(self, fact: Fact) -> None:
        """Add one fact."""
        match fact:
            case TopicAsked() | TopicMade() | RemovalAsked() | TopicRemoved():
                self._learn_topic(fact)
            case GroupMade(name, filter_):
                self.groups.add((name, filter_))
            case SentTogether(number, payloads):
                self.together[number] = set(payloads)
            case SessionMade(client_id, session_epoch):
                self.sessions[client_id] = session_epoch
            case AckAsked() | Acked() | Granted():
                self._learn_progress(fact)
            case _:
                self._learn_stream(fact)

    def _learn_topic(self, fact: TopicAsked | TopicMade | RemovalAsked | TopicRemoved) -> None:
        self.maybe.discard(fact.name)
        match fact:
            case TopicMade():
                self.topics[fact.name] = fact
                if fact.durability == "os":
                    self.unsynced.add(fact.storage_topic_id)
            case TopicAsked() | RemovalAsked():
                self.topics.pop(fact.name, None)
                self.maybe.add(fact.name)
            case TopicRemoved():
                self.removed.add(fact.name)

    def _learn_stream(self, fact: Sent | Stored | Synced | TrimAsked | Trimmed) -> None:
        stream = StreamId(fact.storage_topic_id, fact.partition)
        match fact:
            case Sent():
                self.sent[stream].update(fact.payloads)
            case Stored():
                at_risk = fact.storage_topic_id in self.unsynced
                told = (self.seen if at_risk else self.stored)[stream]
                told.update(enumerate(fact.payloads, fact.base_offset))
                self._given(stream, fact.base_offset + len(fact.payloads))
            case Synced():
                seen = self.seen[stream].items()
                self.stored[stream].update(item for item in seen if item[0] < fact.offset)
            case TrimAsked():
                self.starts_max[stream] = fact.offset
            case Trimmed():
                self.starts_min[stream] = fact.offset

    def _learn_progress(self, fact: AckAsked | Acked | Granted) -> None:
        key = (fact.group, StreamId(fact.storage_topic_id, fact.partition))
        match fact:
            case AckAsked():
                self.floors_max[key] = fact.floor
                self._given(key[1], fact.floor)
            case Acked():
                self.floors_min[key] = fact.floor
            case Granted():
                self.epochs_min[key] = fact.grant_epoch

    def _given(self, stream: StreamId, end: int) -> None:
        """Note that the offsets below the end were seen from outside."""
        self.ends_min[stream] = max(end, self.ends_min.get(stream, 0))
