"""Jobs as values, and their encoding as JSON in rows.

Invariant: decoding an encoded value gives the same value.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from dss_core.changes import SourceRange
from dss_core.progress import Range


class JobKind(StrEnum):
    """What a job is for."""

    REPLAY = "replay"
    EXPORT = "export"
    BACKFILL = "backfill"
    AUDIT = "audit"
    TRANSFORM = "transform"
    """A replay whose copies a function has changed."""

    @property
    def reads_topic(self) -> bool:
        """False: its planner defines each chunk."""
        return self is not JobKind.BACKFILL

    @property
    def writes_topic(self) -> bool:
        """False: only its driver knows the output."""
        return self in (JobKind.REPLAY, JobKind.BACKFILL, JobKind.TRANSFORM)


@dataclass(frozen=True, slots=True)
class Spec:
    """The request for a job, resolved."""

    source: str
    """A topic; empty where it reads none."""
    target: str
    filter: str
    hops_max: int
    params: str
    """What its driver is told besides: JSON."""
    ranges: tuple[SourceRange, ...]
    dead_letters: str = ""
    """A group: the job reads its dead letters of the source."""

    def to_json(self) -> str:
        """As its row keeps it."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Spec":
        """As `to_json` gave it."""
        fields = json.loads(text)
        ranges = tuple(SourceRange(**each) for each in fields.pop("ranges"))
        return cls(ranges=ranges, **fields)


@dataclass(frozen=True, slots=True)
class ChunkInput:
    """What a chunk reads."""

    ranges: tuple[SourceRange, ...] = ()
    text: str = ""

    def to_json(self) -> str:
        """As its row keeps it."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "ChunkInput":
        """As `to_json` gave it."""
        fields = json.loads(text)
        return cls(tuple(SourceRange(**each) for each in fields["ranges"]), fields["text"])


@dataclass(frozen=True, slots=True)
class PlannedChunk:
    """A chunk before it has a row."""

    input: ChunkInput
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """What became of a chunk that was published."""

    ranges: Mapping[int, Range]
    """By partition of the target: the offsets of its records."""
    records: int
    bytes: int
    append_time_us: int
    output: str
    """What its driver said of it."""

    def to_json(self) -> str:
        """As its row keeps it."""
        ranges = {str(partition): list(each) for partition, each in self.ranges.items()}
        return json.dumps({**_plain(self), "ranges": ranges}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "ChunkResult":
        """As `to_json` gave it."""
        fields = json.loads(text)
        ranges = {
            int(partition): (low, high) for partition, (low, high) in fields["ranges"].items()
        }
        return cls(**{**fields, "ranges": ranges})


def _plain(result: ChunkResult) -> dict[str, object]:
    return {
        "records": result.records,
        "bytes": result.bytes,
        "append_time_us": result.append_time_us,
        "output": result.output,
    }
