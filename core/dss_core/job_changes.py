"""Changes of bulk jobs by operators: a part of `dss_core.changes`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceRange:
    """A part of a stream that a job reads."""

    stream: str
    storage_topic_id: int
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class JobInput:
    """The planner's description of a chunk that reads no topic."""

    text: str
    records: int = 0
    """At most."""
    bytes: int = 0
    """About."""


@dataclass(frozen=True, slots=True)
class CreateJob:
    """Creates a bulk job, with its manifest and its holds on records."""

    name: str
    kind: str
    """replay, export, backfill, audit or transform."""
    engine: str = "local"
    source: str = ""
    """A topic; empty where it reads none."""
    start_us: int | None = None
    """Append times; all that is kept where they are None."""
    end_us: int | None = None
    filter: str = ""
    target: str = ""
    rate_bytes_s: int = 0
    """0: as much as comes."""
    chunk_bytes: int = 0
    """What a chunk reads; the usual size where 0."""
    hops_max: int = 0
    """The usual number where 0."""
    allow_loop: bool = False
    """Although it writes to the topic that it reads."""
    params: str = ""
    """What its driver is told besides: JSON."""
    inputs: tuple[JobInput, ...] = ()
    """The chunks of a job that reads no topic."""
    ranges: tuple[SourceRange, ...] = ()
    """Resolved: the times say nothing then."""
    dead_letters: str = ""
    """A group: the job reads its dead letters of the topic instead of the topic; the times are
    those at which they died."""


@dataclass(frozen=True, slots=True)
class PauseJob:
    """Pauses a job: it publishes nothing more."""

    job: str


@dataclass(frozen=True, slots=True)
class ResumeJob:
    """Ends a pause."""

    job: str


@dataclass(frozen=True, slots=True)
class CancelJob:
    """Ends a job; what it published stays."""

    job: str


@dataclass(frozen=True, slots=True)
class RemoveJob:
    """Forgets a job that has ended, with its manifest."""

    job: str
