"""Rows of schedules and of their runs. See `dssd.store.rows`."""

from dataclasses import dataclass

from dssd.store.row import Row


@dataclass(frozen=True, slots=True)
class ScheduleRow(Row):
    """A schedule. Only operators write it."""

    KEY = ("name",)
    TABLE = "schedules"
    name: str
    schedule_id: int
    """A schedule that is created again under the name gets another id."""
    task: str
    arguments: str
    """Of the task: a JSON object of strings."""
    cron: str
    time_zone: str
    jitter_ms: int
    overlap: str
    """skip, queue or allow."""
    catch_up_ms: int
    timeout_ms: int
    retries: int
    backoff_ms: int
    paused: bool
    since_ms: int
    """Due times up to it do not count: the schedule was created, edited or resumed then."""
    created_at_ms: int
    revision: int = 0
    """Rises with each edit."""
    principal: str = ""
    """Its owner, whose permissions it uses; empty: created before owners were stored."""


@dataclass(frozen=True, slots=True)
class SchedulePositionRow(Row):
    """Up to where the due times of a schedule are decided."""

    KEY = ("schedule_id",)
    TABLE = "schedule_positions"
    schedule_id: int
    cursor_ms: int
    last_run: int
    """The number of its newest run."""


@dataclass(frozen=True, slots=True)
class ScheduleRunRow(Row):
    """A run of a schedule, or due times that were skipped."""

    KEY = ("schedule_id", "run")
    TABLE = "schedule_runs"
    schedule_id: int
    run: int
    due_ms: int
    cause: str
    """cron, catch-up or operator."""
    state: str
    """queued, running, retrying, done, failed, timed-out, interrupted, cancelled or skipped."""
    attempt: int
    started_at_ms: int | None
    ended_at_ms: int | None
    retry_at_ms: int | None
    """When the next attempt begins."""
    operation: int
    """The operation of the latest attempt; 0: none."""
    output: str
    """Its output, as far as it is kept."""
    failure: str
    """Why it failed, or was skipped; empty where it did not."""
    count: int
    """The number of due times that it covers."""
