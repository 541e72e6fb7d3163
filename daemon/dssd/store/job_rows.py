"""Rows of bulk jobs and of their chunks. See `dssd.store.rows`."""

from dataclasses import dataclass

from dssd.store.row import Row


@dataclass(frozen=True, slots=True)
class JobRow(Row):
    """A bulk job: its definition and state. Operators write it, and so does the end of the job."""

    KEY = ("job_id",)
    TABLE = "jobs"
    job_id: int
    name: str
    kind: str
    """replay, export, backfill, audit or transform."""
    engine: str
    """The engine of its driver; the daemon ignores it."""
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
    """Limit of published bytes a second; 0: none."""
    created_at_ms: int
    ended_at_ms: int | None
    failure: str
    """Why it failed or was cancelled; empty where it did not."""
    revision: int
    """Rises with each operation on it."""
    principal: str = ""
    """Its owner, whose permissions it uses; empty: created before owners were stored."""


@dataclass(frozen=True, slots=True)
class JobProgressRow(Row):
    """The progress of a job, and the newest epoch of its drivers. Its drivers write it."""

    KEY = ("job_id",)
    TABLE = "job_progress"
    job_id: int
    published: int
    """The number of chunks; the next one gets this number."""
    records: int
    """How many chunks were published."""
    bytes: int
    epoch: int
    """Rises with each driver that takes the job; a lower one publishes nothing."""
    driver: str
    """Description of its newest driver, by itself; empty: none since a restore."""


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
    """The epoch of the driver that published it; 0: it is not published."""
    result: str
    """The answer to that driver: JSON; empty until then."""
    published_at_ms: int | None
