"""What bulk jobs are to programs. Invariant: values alone; no wire message, no connection."""

from dataclasses import dataclass
from pathlib import Path

from dss_core.changes import JobInput, SourceRange
from dss_core.routing import Router
from dss_core.staged import StagedFor

__all__ = [
    "ChunkResult", "Granted", "Job", "JobChunk", "JobInput", "JobTarget", "SourceRange",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stands."""

    job_id: int
    name: str
    kind: str
    """``replay``, ``export``, ``backfill``, ``audit`` or ``transform``."""
    engine: str
    state: str
    """``active``, ``paused``, ``done``, ``failed`` or ``cancelled``."""
    source: str
    target: str
    filter: str
    hops_max: int
    params: str
    """Further parameters for its driver; empty in a list."""
    rate_bytes_s: int
    chunks: int
    published: int
    """Chunks."""
    records: int
    """That were published, written elsewhere or examined."""
    bytes: int
    epoch: int
    driver: str
    driver_lives: bool
    said: str
    """The last report of its driver."""
    said_at_ms: int | None
    created_at_ms: int
    ended_at_ms: int | None
    failure: str
    revision: int
    dead_letters: str = ""
    """A group: its dead letters of the source are read."""
    principal: str = ""
    """The principal that it acts for; empty for one from before that was stored."""

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.state in ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """What became of a chunk that was published."""

    ranges: dict[int, tuple[int, int]]
    """By partition of the target: the offsets of its records."""
    records: int
    bytes: int
    append_time_us: int
    output: str


@dataclass(frozen=True, slots=True)
class JobChunk:
    """A chunk of a manifest."""

    number: int
    ranges: tuple[SourceRange, ...]
    input: str
    records_planned: int
    bytes_planned: int
    result: ChunkResult | None
    """None until it is published."""
    published_at_ms: int | None


@dataclass(frozen=True, slots=True)
class JobTarget:
    """Where the records of a job go."""

    topic: str
    storage_topic_id: int
    partitions: int
    factor: int
    router: Router
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Granted:
    """The lease that a driver was given."""

    job: Job
    lease_ms: int
    staging: Path
    """Where it stages files."""
    target: JobTarget | None
    """None where the job writes to no topic."""
    is_remote: bool = False
    """That is a folder of its own host: a commit brings the files to the daemon first."""

    def staged_for(self, chunk: int) -> StagedFor:
        """What the head of a staged file of a chunk says."""
        assert self.target is not None, "the job writes to no topic"
        return StagedFor(self.job.job_id, chunk, self.target.storage_topic_id)
