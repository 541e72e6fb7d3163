"""What happened to records and groups, as producers, consumers, leaders and the log saw it.

A history is a sequence of events in true time. A run of the simulator tells it event by event; the
tests with real processes write one from what producers, consumers and operators recorded. It is
kept as JSON lines: ``["HandedOut", at_us, group, ...]``, fields in the order of their class.

Invariant: reading what was written gives equal events. A stream is named by its text, offsets are
half-open ranges, times are microseconds of one clock that all observers share. Ordering keys are
text; None is a record without a key, "" is a key.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from dss_core.progress import Ranges

Key = str | None
"""The ordering key of a record; None: it has none."""


class Declared(NamedTuple):
    """A group begins: at these offsets, and at 0 in streams that are born later."""

    at_us: int
    group: str
    starts: tuple[tuple[str, int], ...]
    every: int
    """Its filter rejects the offsets that this divides; 0: none."""
    by_key: bool = False
    """Its members keep the order of each key, not that of the streams."""
    on_damage: str = "pass"
    """pass: it goes on behind records that are damaged; stall: it stays before them."""


class Born(NamedTuple):
    """A stream that a group selects is born after the group's declaration."""

    at_us: int
    group: str
    stream: str


class Destroyed(NamedTuple):
    """A group was removed."""

    at_us: int
    group: str


class Gone(NamedTuple):
    """A stream was removed."""

    at_us: int
    stream: str


class Appended(NamedTuple):
    """The stream is durable up to this end."""

    at_us: int
    stream: str
    end: int
    keys: tuple[Key, ...] = ()
    """Of the last records before the end; () where they are not known."""


class Stored(NamedTuple):
    """The log has a frame, readers may see it, and the stream ends behind it."""

    at_us: int
    stream: str
    base: int
    records: int
    producer: str
    sequence: int
    content: int
    """Which of the producer's frames it is, whatever sequence it has."""
    durability: str
    """sync: nothing but the disk itself takes it back; os: the machine may."""
    keys: tuple[Key, ...] = ()
    """Of the records; () where they are not known."""


class Published(NamedTuple):
    """A producer was told where its frame lies."""

    at_us: int
    stream: str
    producer: str
    sequence: int
    base: int
    records: int
    repeated: bool


class Unpublished(NamedTuple):
    """A producer was told that its frame is not stored or, by the code, that this is not known."""

    at_us: int
    stream: str
    producer: str
    sequence: int
    error_code: str


class Damaged(NamedTuple):
    """The records at these offsets cannot be read any more, or bad bytes may have held them."""

    at_us: int
    stream: str
    start: int
    end: int


class Lost(NamedTuple):
    """The machine lost the records at these offsets; offsets that held none are never given."""

    at_us: int
    stream: str
    start: int
    end: int


class Unreadable(NamedTuple):
    """Reads of these offsets fail from now on; nobody can know whether they are damaged."""

    at_us: int
    stream: str
    start: int
    end: int


class Passed(NamedTuple):
    """Operators can read for good that the group goes on behind damaged records."""

    at_us: int
    group: str
    stream: str
    start: int
    end: int


class HandedOut(NamedTuple):
    """User code got a record."""

    at_us: int
    group: str
    stream: str
    offset: int
    member: str
    grant_epoch: int
    attempt: int
    redelivered: bool
    key: Key = None
    batch: int = 0
    """Not 0: together with others of this number, which may be of the same key."""


class Acked(NamedTuple):
    """User code acknowledged a record."""

    at_us: int
    group: str
    stream: str
    offset: int
    member: str
    grant_epoch: int = 0
    """Under which it got the record; 0 where that is not known."""


class Nakked(NamedTuple):
    """User code refused a record, or let its ack wait run out."""

    at_us: int
    group: str
    stream: str
    offset: int
    member: str
    until_us: int = 0
    """Not 0: it shall rest until then, and that is durable with the acks that follow."""
    error: str = ""
    """Why, as the user says it."""
    rejected: bool = False
    """It shall not come again."""


class OutOfTime(NamedTuple):
    """The ack wait of a record ran out, and user code has it still: in its own eyes only, as it has
    what it was handed of the key behind that."""

    at_us: int
    group: str
    stream: str
    offset: int
    member: str


class AckDurable(NamedTuple):
    """User code was told that these acks of its own survive anything."""

    at_us: int
    group: str
    stream: str
    acked: Ranges
    member: str
    grant_epoch: int = 0
    """As in `Acked`."""


class Moved(NamedTuple):
    """It is durable that an operator moved the cursor of a stream."""

    at_us: int
    group: str
    stream: str
    number: int
    """Of the operation; they rise."""
    undoes: int
    """The operation that it takes back; 0: none."""
    dropped: Ranges
    """What the operator wanted to be acknowledged no longer."""
    added: Ranges
    """What the operator wanted to count as acknowledged, after that."""
    floor_before: int
    ranges_before: Ranges
    floor: int
    ranges: Ranges
    grant_epoch: int
    """Nothing that is said under an older grant counts from now on."""


class Committed(NamedTuple):
    """The store has this of a stream; grant epoch -1 where only the progress changed."""

    at_us: int
    group: str
    stream: str
    floor: int
    ranges: Ranges
    grant_epoch: int
    applied_end: int = 0
    """Of a queue: the sources of its entries below it are acknowledged."""
    stopped: bool = False
    """Of a queue: what an operation asked of its entries, and nobody did, is not done any more."""


class QueuesBorn(NamedTuple):
    """A stream has a retry queue and dead letters for the group."""

    at_us: int
    group: str
    stream: str
    retry: str
    dead: str
    max_deliver: int
    are_small: bool = False
    """They are full soon: what they cannot take fails on where it is."""
    ordered: bool = False
    """Of each key one record is handed out at a time, in order."""
    blocks: bool = False
    """A dead letter holds up its key."""


class Queued(NamedTuple):
    """A queue has an entry: a record that failed, of the offset where it was until then."""

    at_us: int
    group: str
    stream: str
    offset: int
    source: str
    source_offset: int
    attempt: int
    due_us: int
    cause: str
    error: str
    grant_epoch: int
    key: Key


class LaneTaken(NamedTuple):
    """The holder of a grant has the queues of its stream: nobody else appends to them."""

    at_us: int
    group: str
    stream: str
    grant_epoch: int


class Redriven(NamedTuple):
    """It is durable that an operator brings back dead letters, and gives up others."""

    at_us: int
    group: str
    stream: str
    ranges: Ranges
    discarded: Ranges
    whole_keys: bool = False
    """What follows them of their keys may come too."""


class Errand(NamedTuple):
    """It is durable that an operator asks for something with entries of a retry queue."""

    at_us: int
    group: str
    stream: str
    what: str
    ranges: Ranges
    number: int = 0
    """Of the operation."""


class ErrandEnded(NamedTuple):
    """An operation is called done, and nobody had cancelled it."""

    at_us: int
    group: str
    number: int


class Led(NamedTuple):
    """A leader claimed the group."""

    at_us: int
    group: str
    leader_epoch: int


class Disturbed(NamedTuple):
    """Something happened that may make records come twice: a fault, or a member that vanished."""

    at_us: int
    what: str


class Ended(NamedTuple):
    """Long after the last fault: whatever should happen has happened."""

    at_us: int


Event = (
    Declared
    | Born
    | Destroyed
    | Gone
    | Appended
    | Stored
    | Published
    | Unpublished
    | Damaged
    | Lost
    | Unreadable
    | Passed
    | HandedOut
    | Acked
    | Nakked
    | OutOfTime
    | AckDurable
    | Moved
    | Committed
    | QueuesBorn
    | Queued
    | LaneTaken
    | Redriven
    | Errand
    | ErrandEnded
    | Led
    | Disturbed
    | Ended
)

_KINDS: Mapping[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        Declared, Born, Destroyed, Gone, Appended, Stored, Published, Unpublished, Damaged, Lost,
        Unreadable, Passed, HandedOut, Acked, Nakked, OutOfTime, AckDurable, Moved, Committed,
        QueuesBorn, Queued, LaneTaken, Redriven, Errand, Led, Disturbed, Ended,
    )
}  # fmt: skip


def write_history(path: Path, events: Iterable[Event]) -> None:
    """Keep a history as JSON lines."""
    with path.open("w") as file:
        for event in events:
            file.write(json.dumps([type(event).__name__, *event]) + "\n")


def read_history(path: Path) -> Iterator[Event]:
    """What `write_history` kept.

    Raises:
        ValueError: a line is not an event.
    """
    with path.open() as file:
        for line in file:
            name, *fields = json.loads(line)
            if name not in _KINDS:
                raise ValueError(f"not an event: {line[:80]!r}")
            yield _KINDS[name]._make(_frozen(field) for field in fields)


def _frozen(value: object) -> object:
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value
