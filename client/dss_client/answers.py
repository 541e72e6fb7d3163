"""Answers of the daemon to what operators ask of groups.

Invariant: frozen values, whose fields are those of the messages in `groups.proto`.
"""

from dataclasses import dataclass

from dss_client.group_values import Borrower, Fates, Grant, Group
from dss_core.answers import DaemonStatus as DaemonStatus
from dss_core.answers import ErrorCount as ErrorCount
from dss_core.answers import Held as Held
from dss_core.answers import KeyCount as KeyCount
from dss_core.answers import PeerHeld as PeerHeld
from dss_core.answers import Quarantined as Quarantined
from dss_core.answers import Reason as Reason
from dss_core.answers import UnreadLoss as UnreadLoss
from dss_core.limits import RESTORE_OFFSETS_RAISED


@dataclass(frozen=True, slots=True)
class RecordStanding:
    """The state of a record in a group."""

    stream: str
    offset: int
    reason: Reason
    subject: str | None
    """None where the record is gone or cannot be read."""
    key: bytes | None
    appended_at_us: int | None
    floor: int
    """The group's first offset that is not done."""
    end: int
    """The stream's next offset."""
    ahead: int
    """How many records before it the group is not done with."""


@dataclass(frozen=True, slots=True)
class Looked:
    """Where a key was looked for."""

    stream: str
    start: int
    end: int
    """Nothing from here on was looked at."""
    to: int
    """Where the look would have ended without a bound."""


@dataclass(frozen=True, slots=True)
class WhyAnswer:
    """The states of the records that were asked for."""

    records: tuple[RecordStanding, ...]
    """Of a key: the oldest that are not done, else the newest one."""
    looked: tuple[Looked, ...]
    next_command: str
    """How to continue if a bound ended the search for a key; else empty."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A group, or a stream of it, that does not move."""

    group: str
    """NAME@FILTER."""
    stream: str
    """Empty: all of the group."""
    reason: Reason
    lag: int
    """Records that it is not done with."""
    still_ms: int | None
    """For how long nothing moved; None where that is not known."""
    level: str = "problem"
    """``attention`` where an operator paused it, else ``problem``."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How something is, and what helps."""

    level: str
    """``healthy``, ``attention`` or ``problem``."""
    code: str
    """A stable word."""
    sentence: str
    commands: tuple[str, ...]
    """Commands that help, or show more."""


@dataclass(frozen=True, slots=True)
class ScanFound:
    """What a scan found among the records that a group has finished."""

    matching: int
    filtered: int
    missing: int
    """Damaged or gone."""


@dataclass(frozen=True, slots=True)
class StreamSums:
    """The records of a stream that a group has finished, and the others, since it began there."""

    stream: str
    began: int
    """The first offset that is counted."""
    end: int
    fates: Fates
    out: int
    """Sent to a client and not settled."""
    waiting: int
    gone: int
    """Removed by retention, at a place that the group has not reached yet."""
    uncounted: int
    """Done and in no count; negative: counted and not done."""
    problem: str
    """Why it does not add up, as a sentence; empty where it does."""
    scanned: ScanFound | None

    @property
    def appended(self) -> int:
        """Offsets since the group began."""
        return (self.end - self.began) % RESTORE_OFFSETS_RAISED


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its streams and members."""

    group: Group
    grants: tuple[Grant, ...]
    borrowers: tuple[Borrower, ...]
    verdict: Verdict
    stuck: tuple[Stuck, ...]
    """Its streams without progress."""
