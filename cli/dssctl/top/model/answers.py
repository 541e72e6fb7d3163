"""What was asked about a place, because no watch tells of it.

Invariant: an answer belongs to its place; one that came too late, for a place that was left, shows
nowhere.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from dss_client import Record, RecordStanding, StreamSums, Topic
    from dssctl.top.model.places import Place

Question: TypeAlias = Literal["out", "stream", "record", "topic"]
"""What is asked while a screen is open, because no watch tells of it."""


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
    failure: str = ""
    """Why there is no answer, or only a part."""
