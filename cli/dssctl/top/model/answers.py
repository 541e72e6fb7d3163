"""Answers to questions about a place, for what no watch reports.

Invariant: an answer belongs to its place; one that comes after the place was left is not shown.
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
"""The questions that an open screen asks, because no watch reports the answer."""


class LogLine(NamedTuple):
    """A line of a job's log: of its driver on this machine, or of the daemon."""

    at_ms: int
    by: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The daemon's answer to the question of a place."""

    place: "Place"
    sums: "tuple[StreamSums, ...]" = ()
    """For a group: records in flight, by stream."""
    standings: "tuple[RecordStanding, ...]" = ()
    """Why the floors stand where they do."""
    records: "tuple[Record, ...]" = ()
    topic: "Topic | None" = None
    params: str = ""
    """For a job: further parameters for its driver."""
    chunks: "tuple[JobChunk, ...]" = ()
    """For a job: its manifest."""
    log: tuple[LogLine, ...] = ()
    """For a job: its log, the newest line last."""
    errors: "tuple[ErrorCount, ...]" = ()
    """For the dead letters of a group: counts, as far as they were counted."""
    keys: "tuple[KeyCount, ...]" = ()
    entries: "tuple[QueueEntry, ...]" = ()
    """For a queue of a group: its entries."""
    failure: str = ""
    """Why there is no answer, or only a part."""
