"""Where the levels of a lent lane are, and how its failures are told.

Invariant: values only. Failed reads of its streams, and failed records, are told through `Trouble`.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dss_core.errors import LogUnreadable
from dss_core.ids import StreamId
from dss_core.lane import LaneEntry
from dss_core.progress import Ranges


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane, as one holder has it."""

    levels: tuple[StreamId, StreamId, StreamId]
    """The stream itself, its retry queue, its dead letters."""
    ordinal: int
    """The ordinal of the stream's storage topic in its topic."""
    grant_epoch: int
    cursor_generation: int
    client_id: str
    is_ordered: bool = False
    """The group is ordered: entries are given with the hashes of their keys."""


class Failure(NamedTuple):
    """A record that failed, whose entry is durable."""

    to: int
    """The level where it is now."""
    lane: LaneEntry
    key: bytes | None
    error: str


class Failed(NamedTuple):
    """The failures of one append."""

    retried: int
    """So many come again."""
    dead: int
    told: tuple[Failure, ...]
    """The failures that operators should know of."""


class Trouble(Protocol):
    """Takes reports of trouble with the streams of a lane."""

    def unreadable(self, level: int, error: LogUnreadable) -> None:
        """A read failed; nothing is skipped."""

    def readable(self, level: int) -> None:
        """A read succeeded."""

    async def damaged(self, level: int, damaged: Ranges) -> bool:
        """Records are confirmed damaged; returns whether they may be passed over."""

    def failed(self, failed: Failed) -> None:
        """Records failed, and are in the queues."""
