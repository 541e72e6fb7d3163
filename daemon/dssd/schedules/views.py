"""Views of schedules for operators.

Invariant: a view is the same value until something of its schedule changed.
"""

from dataclasses import dataclass

from dssd.schedules.live import Live
from dssd.store.schedule_rows import ScheduleRow, ScheduleRunRow

PAUSED, IDLE, BROKEN = "paused", "idle", "broken"


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """How one stands."""

    row: ScheduleRow
    state: str
    """running, retrying or queued where a run has not ended; else paused, broken or idle."""
    next_ms: int | None
    """When the next run is due, its delay included; None while it is paused."""
    unended: tuple[ScheduleRunRow, ...]
    last: ScheduleRunRow | None
    """The newest that ended, skipped ones aside."""


def view_of(live: Live) -> ScheduleView:
    """How a schedule stands now."""
    runs = live.runs
    states = {row.state for row in runs.unended.values()}
    order = ("running", "retrying", "queued")
    busy = next((state for state in order if state in states), None)
    due = None if live.row.paused else live.next_due()
    return ScheduleView(
        row=live.row,
        state=busy or (PAUSED if live.row.paused else BROKEN if live.broken() else IDLE),
        next_ms=None if due is None else sum(due),
        unended=tuple(runs.unended[run] for run in sorted(runs.unended)),
        last=runs.last,
    )
