"""What an answer to a question holds.

Invariant: values only, times by the wall clock. A code is a stable word; the sentence and the
command are for people, and the facts beside them say the same to programs.
"""

from dataclasses import dataclass

from dss_core.answers import Reason
from dss_core.ids import StreamName


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """What the log has at an offset."""

    subject: str
    key: bytes | None
    appended_at_us: int


@dataclass(frozen=True, slots=True)
class RecordAnswer:
    """The state of a record in a group."""

    stream: StreamName
    offset: int
    reason: Reason
    record: FoundRecord | None
    """None where it cannot be read, or is gone."""
    floor: int
    """The group's first unfinished offset."""
    end: int
    ahead: int
    """Unfinished records before it."""


@dataclass(frozen=True, slots=True)
class StreamLooked:
    """Where a key was looked for."""

    stream: StreamName
    start: int
    end: int
    """The search stopped here."""
    to: int
    """Where the search would have ended without a bound."""


@dataclass(frozen=True, slots=True)
class WhyAnswer:
    """All that was asked for."""

    records: tuple[RecordAnswer, ...]
    looked: tuple[StreamLooked, ...] = ()
    """Where a key was looked for; empty for an offset."""
    next_command: str = ""
    """The command that continues the search, if a bound ended it."""
