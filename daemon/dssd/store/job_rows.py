"""Rows of bulk jobs and of their chunks. See `dssd.store.rows`."""

from dataclasses import dataclass

from dssd.store.row import Row


@dataclass(frozen=True, slots=True)
class JobRow(Row):
    """A bulk job: what it is, and how it stands. Operators change it, and its end."""

    KEY = ("job_id",)
    TABLE = "jobs"
    job_id: int
    name: str
    kind: str
    """replay, export, backfill, audit or transform."""
    engine: str
    """Which engine its driver is; the daemon does not look at it."""
    state: str
    """active, paused, done, failed or cancelled."""
    spec: str
    """What was asked for, resolved: JSON."""
    source_topic_id: int
    """0 where it reads no topic."""
    target_topic_id: int
    """0 where it writes to none."""
    target_storage_topic_id: int
    chunks: int
    rate_bytes_s: int
    """How much may be published a second; 0: as much as comes."""
    created_at_ms: int
    ended_at_ms: int | None
    failure: str
    """Why it failed or was cancelled; empty where it did not."""
    revision: int
    """Rises with each operation on it."""
    principal: str = ""
    """Whom it acts for; empty: whoever made it before that was kept."""


@dataclass(frozen=True, slots=True)
class JobProgressRow(Row):
    """How far a job came, and which epoch of its drivers counts. Its drivers change it."""

    KEY = ("job_id",)
    TABLE = "job_progress"
    job_id: int
    published: int
    """Chunks; the next one has this number."""
    records: int
    """That were published."""
    bytes: int
    epoch: int
    """Rises with each driver that takes the job; a lower one publishes nothing."""
    driver: str
    """Who took it last, in its own words; empty: nobody since a restore."""


@dataclass(frozen=True, slots=True)
class JobNameRow(Row):
    """Reserves the name of a job."""

    KEY = ("name",)
    TABLE = "job_names"
    name: str
    job_id: int


@dataclass(frozen=True, slots=True)
class ChunkRow(Row):
    """A part of a job that is published at once."""

    KEY = ("job_id", "chunk")
    TABLE = "chunks"
    job_id: int
    chunk: int
    input: str
    """What it reads: JSON."""
    records_planned: int
    bytes_planned: int
    epoch: int
    """Of the driver that published it; 0: it is not published."""
    result: str
    """What was answered to that driver: JSON; empty until then."""
    published_at_ms: int | None
