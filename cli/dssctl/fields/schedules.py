"""Fields of schedules, their runs and tasks, and of findings and checks."""

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

RUN: Fields = (
    number("run", "Its number, under the schedule."),
    text("state", "running, queued, retrying, done, failed, timed-out, interrupted or skipped."),
    text("cause", "Why it ran: it was due, caught up, or triggered."),
    moment("due_at", "When it was due."),
    moment("started_at", "When it began.", optional=True),
    moment("ended_at", "When it ended.", optional=True),
    span("took_ms", "How long it took.", optional=True, fades=True),
    moment("retry_at", "When it is tried again.", optional=True),
    number("attempt", "Which attempt it is.", optional=True),
    number("operation", "The operation that it is.", optional=True),
    text("failure", "Why it failed.", optional=True),
    number("count", "Runs that this line stands for."),
    texts("output", "What it said, line by line."),
)

SCHEDULE: Fields = (
    text("name", "Its name."),
    text("task", "What it runs."),
    anything("arguments", "What the task is told, by name."),
    text("cron", "When, as cron has it."),
    text("time_zone", "Of the clock that it goes by."),
    text("state", "waiting, paused, or that of the run under way."),
    truth("paused", "Whether it runs nothing because an operator said so."),
    moment("next_at", "When it is due next.", optional=True),
    items("unended", "ScheduleRun", "Runs that have not ended."),
    Field("last", Type.FIELDS, "The last run that ended, as under runs.", optional=True),
    span("jitter_ms", "Up to so much later than due, at random."),
    text("overlap", "skip, queue or allow: what becomes of a run while another goes on."),
    span("catch_up_ms", "A run that was missed for no longer is made up for."),
    span("timeout_ms", "A run is ended after so long."),
    number("retries", "How often a failed run is tried again."),
    span("backoff_ms", "Before the first of these; then twice as long each."),
    moment("created_at", "When it was created."),
    number("revision", "How often operators changed it; --if-revision compares it."),
    texts("due_next", "When it is due next; of describe only.", absent=True),
    items("runs", "ScheduleRun", "The last runs; of describe only.", absent=True),
)

DUE_TIME: Fields = (
    moment("at", "When."),
    text("local", "That in the schedule's time zone."),
    span("delay_ms", "Jitter, of that.", optional=True),
)

TASK: Fields = (
    text("name", "Its name."),
    text("meaning", "What it does."),
    truth("alone", "Whether it must not run twice at once."),
    items("arguments", "TaskArgument", "What it may be told."),
)

TASK_ARGUMENT: Fields = (
    text("name", "Its name."),
    text("meaning", "What it says."),
    text("default", "Where it is not given.", optional=True),
)

FINDING: Fields = (
    text("level", "ok, warning or problem."),
    text("check", "What was looked at."),
    text("text", "What was found."),
    text("remedy", "What helps.", optional=True),
)

CHECK: Fields = (
    text("check", "What was measured."),
    text("status", "OK, WARNING, CRITICAL or UNKNOWN."),
    number("exit_code", "0, 1, 2 or 3, as Nagios has it."),
    text("text", "What was found."),
    anything("measures", "Each value with its bounds.", absent=True),
)
