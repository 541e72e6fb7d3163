"""Schedules, their runs, due times and tasks: what each field means, and how it is shown.

Invariant: an item has the same fields wherever it is printed; only the columns of tables differ.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dss_core.times import text_of_ms, text_of_span
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
from dssctl.items import item_of
from dssctl.nouns.operations import APPLIED_KIND, operation_item
from dssctl.output import Column, Instant, Item, Kind, Section, show_one
from dssctl.settings import Settings

if TYPE_CHECKING:
    from dss_client import DueTime, Operation, Schedule, ScheduleRun, Task

SCHEDULE: Fields = (
    text("name", "Its name."),
    text("task", "What it runs."),
    anything("arguments", "The arguments of the task."),
    text("cron", "When: minute, hour, day, month, day of the week."),
    text("time_zone", "The time zone of the cron expression."),
    text("state", "running, retrying, queued; else paused, idle, or broken: its zone is gone."),
    truth("paused", "Whether due times pass without a run."),
    moment("next_at", "When the next run is due, its jitter included.", optional=True),
    items("unended", "ScheduleRun", "Runs that have not ended."),
    Field("last", Type.FIELDS, "The newest run that ended, as a ScheduleRun.", optional=True),
    span("jitter_ms", "By how much at most a run is delayed at random."),
    text("overlap", "While a run has not ended: skip, queue or allow."),
    span("catch_up_ms", "How late a run may begin."),
    span("timeout_ms", "How long an attempt may take."),
    number("retries", "Further attempts of a run that failed."),
    span("backoff_ms", "Wait before the first of them; it doubles each time."),
    moment("created_at", "When it was made."),
    number("revision", "Rises with each change."),
    text("principal", "The principal that it acts for.", optional=True),
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
    number("count", "Number of due times that it covers."),
    texts("output", "Its output, as far as it is kept."),
)

DUE_TIME: Fields = (
    moment("at", "When it is due."),
    text("local", "The same on the clock of the time zone."),
    span("delay_ms", "How much later the run begins, by the jitter."),
)

TASK: Fields = (
    text("name", "Its name."),
    text("meaning", "What it does."),
    truth("alone", "Whether only one run at a time is allowed."),
    items("arguments", "TaskArgument", "Its arguments."),
)

TASK_ARGUMENT: Fields = (
    text("name", "Its name."),
    text("meaning", "What it is."),
    text("default", "Its default.", optional=True),
)

_RUN_STYLES = {
    "done": "green",
    "running": "yellow",
    "retrying": "yellow",
    "queued": "yellow",
    "failed": "bold red",
    "timed-out": "bold red",
    "interrupted": "bold red",
}


def _span(field: str, header: str, *, wide: bool = False) -> Column:
    def cell(item: Item, _now_us: int) -> str:
        value = item[field]
        return text_of_span(value) if isinstance(value, int) else "-"

    return Column(field, header, right=True, cell=cell, wide=wide)


def _ahead(field: str, header: str) -> Column:
    """How long until a moment."""

    def cell(item: Item, now_us: int) -> str:
        value = item[field]
        if not isinstance(value, Instant):
            return "-"
        return text_of_span(max(0, value.us - now_us) // 1_000_000 * 1_000)

    return Column(field, header, right=True, cell=cell)


def _at(field: str, header: str, *, wide: bool = False) -> Column:
    def cell(item: Item, _now_us: int) -> str:
        value = item[field]
        return text_of_ms(value.us // 1_000) if isinstance(value, Instant) else "-"

    return Column(field, header, cell=cell, wide=wide)


def _cron(item: Item, _now_us: int) -> str:
    return f"{item['cron']} ({item['time_zone']})"


def _last(item: Item, now_us: int) -> str:
    last = item["last"]
    if not isinstance(last, Mapping):
        return "-"
    ended = last["ended_at"]
    return f"{last['state']} {ended.age(now_us)} ago" if isinstance(ended, Instant) else "-"


_NAME, _TASK, _CRON, _STATE, _NEXT, _LAST = (
    Column("name", "NAME"),
    Column("task", "TASK"),
    Column("cron", "CRON", cell=_cron),
    Column("state", "STATE", styles={"paused": "yellow", "broken": "bold red", **_RUN_STYLES}),
    _ahead("next_at", "NEXT-IN"),
    Column("last", "LAST", cell=_last),
)
_RULES = (
    Column("arguments", "ARGUMENTS", cell=lambda item, _now_us: _given(item), wide=True),
    _span("jitter_ms", "JITTER", wide=True),
    Column("overlap", "OVERLAP", wide=True),
    _span("catch_up_ms", "CATCH-UP", wide=True),
    _span("timeout_ms", "TIMEOUT", wide=True),
    Column("retries", "RETRIES", right=True, wide=True),
    _span("backoff_ms", "BACKOFF", wide=True),
    Column("revision", "REVISION", right=True, wide=True),
    Column("principal", "PRINCIPAL", wide=True),
)

SCHEDULE_KIND = Kind(
    "Schedule",
    (_NAME, _TASK, _CRON, _STATE, _NEXT, _LAST, *_RULES, Column("created_at", "AGE", wide=True)),
    lambda item: str(item["name"]),
)

RUN_KIND = Kind(
    "ScheduleRun",
    (
        Column("run", "RUN", right=True),
        Column("state", "STATE", styles=_RUN_STYLES),
        Column("cause", "CAUSE"),
        _at("due_at", "DUE"),
        Column("started_at", "AGE", right=True),
        _span("took_ms", "TOOK"),
        Column("attempt", "ATTEMPT", right=True),
        Column("operation", "OPERATION", right=True),
        Column("failure", "FAILURE"),
        Column("count", "COUNT", right=True, wide=True),
        _at("retry_at", "RETRY-AT", wide=True),
        Column("output", "OUTPUT", wide=True),
    ),
    lambda item: str(item["run"]),
)

TASK_RUN_KIND = Kind(
    "Operation",
    tuple(column for column in APPLIED_KIND.columns if column.field != "streams_done"),
    APPLIED_KIND.identity,
)
"""An operation that ran a task: it has no streams."""

RUN_ALONE_KIND = Kind(
    "ScheduleRun",
    tuple(column for column in RUN_KIND.columns if column.field != "output"),
    RUN_KIND.identity,
)
"""One run, whose output stands below it."""

DUE_KIND = Kind(
    "DueTime",
    (
        _at("at", "DUE"),
        Column("local", "LOCAL"),
        _ahead("at", "IN"),
        _span("delay_ms", "JITTER"),
    ),
    lambda item: str(item["local"]),
)

TASK_KIND = Kind(
    "Task",
    (
        Column("name", "TASK"),
        Column("arguments", "ARGUMENTS", cell=lambda item, _now_us: _names(item)),
        Column("meaning", "MEANING"),
        Column("alone", "ALONE", wide=True),
    ),
    lambda item: str(item["name"]),
)

ARGUMENT_KIND = Kind(
    "TaskArgument",
    (Column("name", "ARGUMENT"), Column("default", "DEFAULT"), Column("meaning", "MEANING")),
    lambda item: str(item["name"]),
)


def schedule_item(schedule: "Schedule") -> Item:
    """A schedule as the renderer takes it."""
    runs = [run_item(run) for run in schedule.unended]
    last = run_item(schedule.last) if schedule.last else None
    return item_of("Schedule", schedule, unended=runs, last=last)


def run_item(run: "ScheduleRun") -> Item:
    """A run as the renderer takes it."""
    took_ms = None
    if run.started_at_ms is not None and run.ended_at_ms is not None:
        took_ms = max(0, run.ended_at_ms - run.started_at_ms)
    output = run.output.split("\n") if run.output else []
    return item_of("ScheduleRun", run, took_ms=took_ms, output=output)


def show_task_run(settings: Settings, operation: "Operation") -> None:
    """Print the operation that ran a task, and what it said."""
    item = operation_item(operation)
    after = item["after"]
    said = after.get("output") if isinstance(after, Mapping) else None
    sections = [Section("output")] if said else []
    show_one(settings, TASK_RUN_KIND, {**item, "output": said or []}, sections)


def due_item(due: "DueTime") -> Item:
    """A due time as the renderer takes it."""
    return item_of("DueTime", due)


def task_item(task: "Task") -> Item:
    """A task as the renderer takes it."""
    return item_of("Task", task)


def _given(item: Item) -> str:
    arguments = item["arguments"]
    assert isinstance(arguments, Mapping)
    return " ".join(f"{name}={value}" for name, value in arguments.items()) or "-"


def _names(item: Item) -> str:
    arguments = item["arguments"]
    assert isinstance(arguments, Sequence)
    names = (str(each["name"]) for each in arguments if isinstance(each, Mapping))
    return ", ".join(names) or "-"
