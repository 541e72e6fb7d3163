"""What operators can change of retry queues and dead letters: a part of `dss_core.changes`."""

from dataclasses import dataclass

from dss_core.progress import Ranges


@dataclass(frozen=True, slots=True)
class LaneRanges:
    """Entries of one queue of a stream."""

    stream: str
    storage_topic_id: int
    ranges: Ranges
    """Of offsets in the queue."""


@dataclass(frozen=True, slots=True)
class ChosenEntries:
    """Entries of the queues of a group; where nothing else is said, all of them."""

    group: str
    error: str = ""
    """Only of this fingerprint, or one that begins so; of those without an error, of this cause."""
    key: bytes | None = None
    """Only of this key."""
    stream: str = ""
    """Only of records of this stream."""
    offset: int | None = None
    """With the stream: only of the record there."""
    lanes: tuple[LaneRanges, ...] = ()
    """Which they are, where that is resolved."""
    client_id: str = ""
    """Only of this member: it had them last."""
    start_us: int | None = None
    end_us: int | None = None
    """Only what came to the queue then or later, and before then."""


@dataclass(frozen=True, slots=True)
class RedriveDeadLetters(ChosenEntries):
    """Brings dead letters of a group back: the first attempt again, due at once."""

    rate: int | None = None
    """At most so many records a second, of all its streams together; None: the usual rate."""
    unordered: bool = False
    """Only these, also where they are a part of a key that waits. Else, in an ordered group whose
    dead letters block, all that is dead of their keys comes back with them."""
    canary: int | None = None
    """So many go first, and the others only once these are done with."""
    canary_percent: int = 0
    """The operation stops itself where more than this share of those fails."""


@dataclass(frozen=True, slots=True)
class DiscardDeadLetters(ChosenEntries):
    """Gives dead letters of a group up for good."""

    everything: bool = False
    """All of them: nothing else is said."""


@dataclass(frozen=True, slots=True)
class RetryNow(ChosenEntries):
    """Records that failed and wait for their next attempt are due at once."""


@dataclass(frozen=True, slots=True)
class SkipRetries(ChosenEntries):
    """Records that failed and wait for their next attempt are passed over."""

    everything: bool = False
    """All of them: nothing else is said."""


@dataclass(frozen=True, slots=True)
class BuryRetries(ChosenEntries):
    """Records that failed and wait for their next attempt are dead letters without it."""

    everything: bool = False
    """All of them: nothing else is said."""
