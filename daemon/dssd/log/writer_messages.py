"""What the event loop and the writer thread hand to each other.

Invariant: an object that was handed over is not touched again by the side that gave it, except that
the loop answers an `AppendCall` once its batch came back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dssd.log.port import Answered, Append, Appended
from dssd.log.segment.file import SegmentId, SegmentWriter
from dssd.log.segment.run_index import OpenRun, Run
from dssd.log.sequences import Producers

Result = Appended | BaseException
Pieces = list[bytes | memoryview]
"""The buffers of frames, two each: the stamped header, and the rest."""


@dataclass(slots=True, eq=False)
class AppendCall:
    """Frames of one storage topic that one caller waits for; at least one."""

    appends: Sequence[Append]
    bytes: int
    answered: Answered
    results: list[Result] = field(default_factory=list)
    began_s: float = 0.0
    """When it was made, by the counter of performance."""

    @property
    def storage_topic_id(self) -> int:
        """All of its frames are of one storage topic."""
        return self.appends[0].stream.storage_topic_id


class StoredFrames(NamedTuple):
    """Adjacent frames of one stream that one batch stored."""

    segment: SegmentId
    partition: int
    base: int
    end: int
    time_us: int
    run: Run
    """The run that ends with these frames."""
    bases: list[int]
    pieces: Pieces
    bytes: int
    may_be_lost: bool = False
    """Whether some of them may be reported before they are durable."""


class WrittenFile(NamedTuple):
    """How far a file is written and, if this batch synced it, durable."""

    segment: SegmentId
    size: int
    synced: bool


@dataclass(slots=True, eq=False)
class Batch:
    """What one group commit did; handed to the event loop."""

    calls: list[AppendCall]
    stored: list[StoredFrames] = field(default_factory=list)
    files: list[WrittenFile] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Marked:
    """A file that is durable to its end, and the frames in it."""

    size: int
    frames: int
    last_us: int
    """Append time of the last one."""
    changes: bytes
    """Changes of producers since the mark before (`Producers.take_changes`)."""
    ends: tuple[int, ...] = ()
    """End of each stream, these frames included."""


@dataclass(slots=True, eq=False)
class WriterTopic:
    """A storage topic as the writer sees it; handed over once, then used by the writer alone."""

    storage_topic_id: int
    ends: list[int]
    producers: Producers
    last_us: int = 0
    """Append times never fall, whatever the clock does."""
    sealed: bool = False
    file: SegmentWriter | None = None
    frames: int = 0
    """How many frames are in the file."""
    open_runs: dict[int, OpenRun] = field(default_factory=dict)
    ceilings: dict[int, int] = field(default_factory=dict)
    """By partition, for the streams that have one in the store."""

    def begin_at(self, begins_us: int) -> None:
        """Append times are not below it, and producers that began no later are of another epoch."""
        self.last_us = max(self.last_us, begins_us)
        self.producers.forgotten_us = max(self.producers.forgotten_us, begins_us)


@dataclass(frozen=True, slots=True)
class Switched:
    """The writer closed one file and continues in another."""

    left: WrittenFile | None
    snapshot: bytes
    """The snapshot of producers up to there."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The writer closed its last file."""

    marked: Marked
    snapshot: bytes
    """The snapshot of producers up to there."""
