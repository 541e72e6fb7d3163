"""Where the levels of a lent lane are, and what its holder's entries say of it.

Invariant: values only. The reads of its streams that fail, and its records that do, are told
through `Trouble`.
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
    """Of the stream's storage topic in its topic."""
    grant_epoch: int
    cursor_generation: int
    client_id: str
    is_ordered: bool = False
    """The hash of a key is told with each entry."""


class Failure(NamedTuple):
    """A record that failed, whose entry is durable."""

    to: int
    """The level where it is now."""
    lane: LaneEntry
    key: bytes | None
    error: str


class Failed(NamedTuple):
    """What one append brought of records that failed."""

    retried: int
    """So many come again."""
    dead: int
    told: tuple[Failure, ...]
    """Those of which somebody should know."""


class Trouble(Protocol):
    """Is told what is wrong with the streams of a lane."""

    def unreadable(self, level: int, error: LogUnreadable) -> None:
        """A read failed; nothing is skipped."""

    def readable(self, level: int) -> None:
        """A read succeeded."""

    async def damaged(self, level: int, damaged: Ranges) -> bool:
        """Records are confirmed damaged; whether they may be passed over."""

    def failed(self, failed: Failed) -> None:
        """Records failed, and are in the queues."""
