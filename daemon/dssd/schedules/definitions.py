"""Definitions of schedules: making, editing and checking their rows.

Invariant: a row that leaves this module can run: it has due times, its task exists and accepts its
arguments, and every number is within its bounds.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

from dss_core.changes import CreateSchedule, EditSchedule
from dss_core.errors import IllegalArgument
from dss_core.filters import check_name
from dss_core.times import text_of_span
from dssd.machines.schedule import SCHEDULE_RETRY_MS_MAX, Overlap, Rules
from dssd.schedules.cron import FireTimes, fire_times
from dssd.schedules.limits import RUN_TIMEOUT_MS_MAX, RUN_TIMEOUT_MS_MIN
from dssd.schedules.tasks.model import Tasks
from dssd.store.schedule_rows import ScheduleRow

JITTER_MS_MAX = 24 * 3_600 * 1_000
"""A jitter of more than a day would make the schedule meaningless."""

JITTER_LOOKED_AT = 32
"""Due times whose distances bound the jitter: it must be shorter than the shortest of them."""

CATCH_UP_MS = 10 * 60 * 1_000
"""How late a run may begin where nothing is said: a restart, or an update of the machine."""

CATCH_UP_MS_MAX = 31 * 24 * 3_600 * 1_000
"""A run that is a month late is another run."""

RUN_TIMEOUT_MS = 3_600 * 1_000
"""Of one attempt, where nothing is said."""

RETRIES_MAX = 10
"""With doubling pauses that is half a day; then a person should look."""

BACKOFF_MS = 60 * 1_000
"""Before the first retry, where nothing is said."""

BACKOFF_MS_MIN = 1_000
"""Sooner, the cause of the failure is hardly over."""


FIELDS = (
    "cron", "time_zone", "jitter_ms", "overlap", "catch_up_ms", "timeout_ms", "retries",
    "backoff_ms",
)  # fmt: skip
"""What an edit may change, beside the arguments of the task."""

_DEFAULTS: Mapping[str, Any] = {
    "time_zone": "UTC",
    "jitter_ms": 0,
    "overlap": Overlap.SKIP.value,
    "catch_up_ms": CATCH_UP_MS,
    "timeout_ms": RUN_TIMEOUT_MS,
    "retries": 0,
    "backoff_ms": BACKOFF_MS,
}

_BOUNDS: Mapping[str, tuple[int, int]] = {
    "jitter_ms": (0, JITTER_MS_MAX),
    "catch_up_ms": (0, CATCH_UP_MS_MAX),
    "timeout_ms": (RUN_TIMEOUT_MS_MIN, RUN_TIMEOUT_MS_MAX),
    "retries": (0, RETRIES_MAX),
    "backoff_ms": (BACKOFF_MS_MIN, SCHEDULE_RETRY_MS_MAX),
}


def made(change: CreateSchedule, schedule_id: int, now_ms: int) -> ScheduleRow:
    """The row of a new schedule, not checked yet."""
    fields = {name: getattr(change, name) for name in FIELDS}
    given = {name: value for name, value in fields.items() if value is not None}
    return ScheduleRow(
        name=change.schedule,
        schedule_id=schedule_id,
        task=change.task,
        arguments=json.dumps(dict(change.arguments), sort_keys=True),
        paused=change.paused,
        since_ms=now_ms,
        created_at_ms=now_ms,
        **{**_DEFAULTS, **given},
    )


def wanted(row: ScheduleRow, change: EditSchedule) -> dict[str, Any]:
    """The fields that an edit names, as they are to be."""
    fields = {name: getattr(change, name) for name in FIELDS}
    named = {name: value for name, value in fields.items() if value is not None}
    if change.arguments or change.no_arguments:
        arguments = {**arguments_of(row), **change.arguments}
        for name in change.no_arguments:
            arguments.pop(name, None)
        named["arguments"] = json.dumps(arguments, sort_keys=True)
    return named


def edited(row: ScheduleRow, fields: Mapping[str, Any], now_ms: int) -> ScheduleRow:
    """The row with other fields. Due times before other times, or before a resume, do not count."""
    again = fields.keys() & {"cron", "time_zone", "jitter_ms"} or fields.get("paused") is False
    since_ms = now_ms if again else row.since_ms
    return replace(row, **fields, since_ms=since_ms, revision=row.revision + 1)


def checked(row: ScheduleRow, tasks: Tasks) -> ScheduleRow:
    """The row, which can be run.

    Raises:
        IllegalName, IllegalCron, IllegalTimeZone, IllegalArgument, TaskNotFound: it cannot.
    """
    check_name(row.name)
    tasks.get(row.task).given(arguments_of(row))
    if row.overlap not in list(Overlap):
        raise IllegalArgument(argument=f"overlap {row.overlap}", rule="it is skip, queue or allow")
    for name, (low, high) in _BOUNDS.items():
        value = getattr(row, name)
        if not low <= value <= high:
            raise IllegalArgument(argument=f"{name} {value}", rule=f"it is {low} to {high}")
    _check_jitter(row, times_of(row))
    return row


def times_of(row: ScheduleRow) -> FireTimes:
    """When it is due, its jitter aside."""
    return fire_times(row.cron, row.time_zone)


def rules_of(row: ScheduleRow) -> Rules:
    """What its machine goes by."""
    return Rules(
        overlap=Overlap(row.overlap),
        catch_up_ms=row.catch_up_ms,
        timeout_ms=row.timeout_ms,
        retries=row.retries,
        backoff_ms=row.backoff_ms,
    )


def arguments_of(row: ScheduleRow) -> dict[str, str]:
    """The arguments of its task."""
    arguments: dict[str, str] = json.loads(row.arguments)
    return arguments


def _check_jitter(row: ScheduleRow, times: FireTimes) -> None:
    due = list(islice(times.following(row.since_ms), JITTER_LOOKED_AT))
    nearest = min((later - sooner for sooner, later in pairwise(due)), default=row.jitter_ms + 1)
    if row.jitter_ms >= nearest:
        rule = f"it is shorter than the {text_of_span(nearest)} between due times"
        raise IllegalArgument(argument=f"jitter {text_of_span(row.jitter_ms)}", rule=rule)
