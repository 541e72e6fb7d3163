"""Schedules: what the daemon does by the clock."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dss_core.times import text_of_span
from dssctl.output.escape import escaped
from dssctl.top.lists.listing import Column, Listing, Pen
from dssctl.top.model.places import Ordering
from dssctl.top.paint import amounts
from dssctl.top.paint.spans import Look

if TYPE_CHECKING:
    from dss_client import Schedule

_STATES: Mapping[str, Look] = {"running": "good", "retrying": "warn", "paused": "warn"}


def _last(schedule: "Schedule") -> str:
    return schedule.last.state if schedule.last else "-"


def _next(schedule: "Schedule", pen: Pen) -> str:
    due_ms = schedule.next_at_ms
    return "-" if due_ms is None else f"in {amounts.span(due_ms - pen.now_ms)}"


def _next_at(schedule: "Schedule", pen: Pen) -> str:
    due_ms = schedule.next_at_ms
    return "-" if due_ms is None else f"{amounts.moment(due_ms)}, {_next(schedule, pen)}"


def _is_faulty(schedule: "Schedule") -> bool:
    return schedule.state == "retrying" or _last(schedule) in {"failed", "timed-out", "interrupted"}


def _facts(schedule: "Schedule", pen: Pen) -> Sequence[tuple[str, str]]:
    given = ", ".join(f"{name}={value}" for name, value in schedule.arguments.items())
    facts = [
        ("schedule", escaped(schedule.name)),
        ("task", f"{escaped(schedule.task)} {escaped(given)}".strip()),
        ("due", f"{escaped(schedule.cron)}, {escaped(schedule.time_zone)}"),
        ("next", _next_at(schedule, pen)),
        ("state", schedule.state),
        ("overlap", schedule.overlap),
        ("catches up", text_of_span(schedule.catch_up_ms)),
        ("timeout", text_of_span(schedule.timeout_ms)),
        ("retries", f"{schedule.retries}, after {text_of_span(schedule.backoff_ms)}"),
    ]
    last = schedule.last
    if last is not None:
        ended = amounts.moment(last.ended_at_ms)
        facts += [
            ("last run", f"{last.run}: {last.state}, due {amounts.moment(last.due_at_ms)}"),
            ("ended", f"{ended}, attempt {last.attempt}"),
            ("it said", escaped(last.failure or last.output) or "-"),
        ]
    return facts


SCHEDULES: "Listing[Schedule]" = Listing(
    title="Schedules",
    columns=(
        Column("name", "SCHEDULE", 16, lambda each: each.name, grows=True, rises=True),
        Column("task", "TASK", 12, lambda each: each.task, rises=True),
        Column("cron", "CRON", 14, lambda each: each.cron, rank=1, rises=True),
        Column("zone", "ZONE", 10, lambda each: each.time_zone, rank=2, rises=True),
        Column("state", "STATE", 9, lambda each: each.state,
            look=lambda each: _STATES.get(each.state, "dim"), rises=True),
        Column("next", "NEXT", 10, lambda each: each.next_at_ms, _next, right=True, rises=True),
        Column("last", "LAST", 11, _last, look=lambda each: "bad" if _is_faulty(each) else "",
            rises=True),
    ),
    rows=lambda scene: scene.picture.schedules,
    order=Ordering("name", descending=False),
    fault=_is_faulty,
    facts=_facts,
    empty="nothing is done by the clock: dssctl schedules create NAME",
)  # fmt: skip
