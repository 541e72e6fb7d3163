"""What was asked about a place, because no watch tells of it.

Invariant: an answer belongs to its place; one that came too late, for a place that was left, shows
nowhere.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from dss_client import (
        ErrorCount,
        JobChunk,
        KeyCount,
        QueueEntry,
        Record,
        RecordStanding,
        StreamSums,
        Topic,
    )
    from dssctl.top.model.places import Place

Question: TypeAlias = Literal[
    "out", "stream", "record", "topic", "job", "dead", "dead-records", "dead-letter", "waiting"
]
"""What is asked while a screen is open, because no watch tells of it."""


class LogLine(NamedTuple):
    """What a driver of a job said on this machine, or the daemon told of it."""

    at_ms: int
    by: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the daemon said when a place was looked at."""

    place: "Place"
    sums: "tuple[StreamSums, ...]" = ()
    """Of a group: what is out, by stream."""
    standings: "tuple[RecordStanding, ...]" = ()
    """Why the floors stand where they do."""
    records: "tuple[Record, ...]" = ()
    topic: "Topic | None" = None
    params: str = ""
    """Of a job: what its driver is told besides."""
    chunks: "tuple[JobChunk, ...]" = ()
    """Its manifest."""
    log: tuple[LogLine, ...] = ()
    """The newest last."""
    errors: "tuple[ErrorCount, ...]" = ()
    """Of the dead letters of a group, as far as they were counted."""
    keys: "tuple[KeyCount, ...]" = ()
    entries: "tuple[QueueEntry, ...]" = ()
    """Of a queue of a group."""
    failure: str = ""
    """Why there is no answer, or only a part."""
