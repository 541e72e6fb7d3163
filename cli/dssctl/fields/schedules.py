"""Fields of schedules, their runs, and tasks."""

from dssctl.fields.model import (
    Field,
    Fields,
    Type,
    anything,
    items,
    moment,
    number,
    span,
    text,
    texts,
    truth,
)

SCHEDULE: Fields = (
    text("name", "Its name."),
    text("task", "What it runs."),
    anything("arguments", "What the task is given."),
    text("cron", "When: minute, hour, day, month, day of the week."),
    text("time_zone", "Whose clock that is."),
    text("state", "running, retrying, queued; else paused, idle, or broken: its zone is gone."),
    truth("paused", "Whether due times pass without a run."),
    moment("next_at", "When the next run is due, its jitter included.", optional=True),
    items("unended", "ScheduleRun", "Runs that have not ended."),
    Field("last", Type.FIELDS, "The newest run that ended, as a ScheduleRun.", optional=True),
    span("jitter_ms", "A run begins later by up to so much."),
    text("overlap", "While a run has not ended: skip, queue or allow."),
    span("catch_up_ms", "How late a run may begin."),
    span("timeout_ms", "After it an attempt is stopped."),
    number("retries", "Further attempts of a run that failed."),
    span("backoff_ms", "Before the first of them; doubles."),
    moment("created_at", "When it was made."),
    number("revision", "Rises with each change."),
    texts("due_next", "The next due times; of describe only.", absent=True),
    items("runs", "ScheduleRun", "The latest runs; of describe only.", absent=True),
)

RUN: Fields = (
    number("run", "Its number, from one on."),
    text("state", "queued, running, retrying, or done, failed, timed-out, cancelled and so on."),
    text("cause", "cron, catch-up or operator."),
    moment("due_at", "When it was due."),
    moment("started_at", "When its first attempt began.", optional=True),
    moment("ended_at", "When it ended.", optional=True),
    span("took_ms", "From its beginning to its end.", optional=True),
    moment("retry_at", "When the next attempt begins.", optional=True),
    number("attempt", "Which attempt it is or was.", optional=True),
    number("operation", "The operation of that attempt.", optional=True),
    text("failure", "Why it failed, or was skipped.", optional=True),
    number("count", "Due times that it stands for."),
    texts("output", "What it said, as far as it is kept."),
)

DUE_TIME: Fields = (
    moment("at", "When it is due."),
    text("local", "The same on the clock of the time zone."),
    span("delay_ms", "How much later the run begins, by the jitter."),
)

TASK: Fields = (
    text("name", "Its name."),
    text("meaning", "What it does."),
    truth("alone", "Whether a second run beside the first is refused."),
    items("arguments", "TaskArgument", "What it may be given."),
)

TASK_ARGUMENT: Fields = (
    text("name", "Its name."),
    text("meaning", "What it is."),
    text("default", "What it is where it is not given.", optional=True),
)
