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
    """A group begins: at these offsets, and at 0 in streams that are made later."""

    at_us: int
    group: str
    starts: tuple[tuple[str, int], ...]
    every: int
    """Its filter rejects offsets that are divisible by this; 0: none."""
    by_key: bool = False
    """Its members keep the order of each key, not that of the streams."""
    on_damage: str = "pass"
    """pass: it goes on behind records that are damaged; stall: it stays before them."""


class Born(NamedTuple):
    """A stream that a group selects is made after the group's declaration."""

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
    """The keys of the last records before the end; () if unknown."""


class Stored(NamedTuple):
    """The log has a frame, readers may see it, and the stream ends after it."""

    at_us: int
    stream: str
    base: int
    records: int
    producer: str
    sequence: int
    content: int
    """The number of the frame at its producer, whatever sequence it has."""
    durability: str
    """sync: only the disk itself can lose it; os: the machine can."""
    keys: tuple[Key, ...] = ()
    """The keys of the records; () if unknown."""


class Published(NamedTuple):
    """A producer was told where its frame is."""

    at_us: int
    stream: str
    producer: str
    sequence: int
    base: int
    records: int
    repeated: bool


class Unpublished(NamedTuple):
    """A producer was told that its frame is not stored or, by the code, that this is unknown."""

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
    """The machine lost the records at these offsets; offsets without a record are never
    assigned."""

    at_us: int
    stream: str
    start: int
    end: int


class Unreadable(NamedTuple):
    """Reads of these offsets fail from now on; whether they are damaged is unknown."""

    at_us: int
    stream: str
    start: int
    end: int


class Passed(NamedTuple):
    """An event tells operators durably that the group goes on after damaged records."""

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
    """Not 0: one batch with others of this number, which may have the same key."""


class Acked(NamedTuple):
    """User code acknowledged a record."""

    at_us: int
    group: str
    stream: str
    offset: int
    member: str
    grant_epoch: int = 0
    """The grant epoch of the hand-out; 0 if unknown."""


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
    """The user's error."""
    rejected: bool = False
    """It was rejected: it shall not come again."""


class OutOfTime(NamedTuple):
    """The ack wait of a record ended while user code still has it: in its own eyes only, like later
    records of the key that it was handed."""

    at_us: int
    group: str
    stream: str
    offset: int
    member: str


class AckDurable(NamedTuple):
    """User code was told that these acks of its own are durable."""

    at_us: int
    group: str
    stream: str
    acked: Ranges
    member: str
    grant_epoch: int = 0
    """As in `Acked`."""


class Moved(NamedTuple):
    """A move of a stream's cursor by an operator is durable."""

    at_us: int
    group: str
    stream: str
    number: int
    """The number of the operation; numbers rise."""
    undoes: int
    """The operation that it undoes; 0: none."""
    dropped: Ranges
    """Offsets that shall no longer be acknowledged."""
    added: Ranges
    """Offsets that shall count as acknowledged, after that."""
    floor_before: int
    ranges_before: Ranges
    floor: int
    ranges: Ranges
    grant_epoch: int
    """Reports under an older grant do not count from now on."""


class Committed(NamedTuple):
    """The store has this state of a stream; grant epoch -1 if only the progress changed."""

    at_us: int
    group: str
    stream: str
    floor: int
    ranges: Ranges
    grant_epoch: int
    applied_end: int = 0
    """For a queue: the sources of its entries below it are acknowledged."""
    stopped: bool = False
    """For dead letters: those that were to come back and have not, stay."""


class QueuesBorn(NamedTuple):
    """A stream has a retry queue and dead letters for the group."""

    at_us: int
    group: str
    stream: str
    retry: str
    dead: str
    max_deliver: int
    are_small: bool = False
    """They are full soon: records without room fail again and again in their place."""
    ordered: bool = False
    """Records of a key are handed out one at a time, in order."""
    blocks: bool = False
    """A dead letter holds up its key."""


class Queued(NamedTuple):
    """A queue has an entry: a failed record, with the offset where it was before."""

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
    """An operator's redrive and discard of dead letters are durable."""

    at_us: int
    group: str
    stream: str
    ranges: Ranges
    discarded: Ranges
    whole_keys: bool = False
    """Later records of their keys may come too."""


class Errand(NamedTuple):
    """An operator's errand for entries of a retry queue is durable."""

    at_us: int
    group: str
    stream: str
    what: str
    ranges: Ranges
    number: int = 0
    """The number of the operation."""


class ErrandEnded(NamedTuple):
    """An operation is called done, and was not cancelled."""

    at_us: int
    group: str
    number: int


class Led(NamedTuple):
    """A leader claimed the group."""

    at_us: int
    group: str
    leader_epoch: int


class Disturbed(NamedTuple):
    """A fault, or a member that vanished: records may come twice."""

    at_us: int
    what: str


class Ended(NamedTuple):
    """Long after the last fault: everything that should happen has happened."""

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
    """Write a history as JSON lines."""
    with path.open("w") as file:
        for event in events:
            file.write(json.dumps([type(event).__name__, *event]) + "\n")


def read_history(path: Path) -> Iterator[Event]:
    """Read what `write_history` wrote.

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
