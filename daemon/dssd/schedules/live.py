"""One live schedule: its definition, its machine, its runs, and its next due time.

Invariant: the state of the machine and the rows are those that were committed together. Nothing
here waits or writes: `Schedules` does.
"""

import asyncio
from dataclasses import dataclass, field

from dss_core.errors import DssError
from dssd.machines import schedule as machine
from dssd.machines.schedule import (
    SCHEDULE_CLOCK_BACK_MS,
    SCHEDULE_RETRY_MS_MAX,
    Cause,
    ClockLooked,
    Defined,
    Due,
    Moment,
    Outcome,
    Retrying,
    Run,
    State,
)
from dssd.schedules.cron import FireTimes
from dssd.schedules.definitions import rules_of, times_of
from dssd.schedules.due_times import come, next_due
from dssd.schedules.run_rows import QUEUED, RETRYING, RUNNING, RunRows
from dssd.store.schedule_rows import SchedulePositionRow, ScheduleRow, ScheduleRunRow


@dataclass(slots=True, eq=False)
class Live:
    """One schedule."""

    row: ScheduleRow
    state: State
    runs: RunRows
    operations: dict[int, int] = field(default_factory=dict)
    """Of the attempts under way: by run, the number of the operation."""
    attempts: set[tuple[int, int]] = field(default_factory=set)
    """Runs and attempts that this daemon began, until their ends are stored."""
    stops: dict[int, asyncio.Event] = field(default_factory=dict)
    """Of the attempts under way: set once a run is told to stop."""
    failing_told_ms: int | None = None
    """When the last event about its failing was told, monotonic; None: it does not fail."""
    rests_until_ms: int = 0
    """Monotonic: it is looked at again then."""
    _next: tuple[int, int, Due | None] | None = None
    """The cursor, the revision, and the due time that follows."""

    def next_due(self) -> Due | None:
        """The first due time that is not decided."""
        cursor_ms = self.state.cursor_ms
        if self._next is None or self._next[:2] != (cursor_ms, self.row.revision):
            times = self._times()
            due = None if times is None else next_due(self.row, times, cursor_ms)
            self._next = cursor_ms, self.row.revision, due
        return self._next[2]

    def rests(self, at: Moment) -> bool:
        """Whether it is paused after an internal error."""
        return at.now_ms < self.rests_until_ms

    def orphans(self) -> list[int]:
        """Runs that are under way by their rows, but that this daemon has not started."""
        running = [row for row in self.runs.unended.values() if row.state == RUNNING]
        return [row.run for row in running if (row.run, row.attempt) not in self.attempts]

    def is_due(self, at: Moment) -> bool:
        """Whether its machine has a decision to make."""
        timer_ms = machine.next_ms(self.state)
        due = self.next_due()
        return (
            (timer_ms is not None and timer_ms <= at.now_ms)
            or (due is not None and sum(due) <= at.wall_ms)
            or self.state.cursor_ms > at.wall_ms + SCHEDULE_CLOCK_BACK_MS
            or self.state.queued is not None
        )

    def wait_ms(self, at: Moment) -> int | None:
        """Time until its machine has a decision to make, by the present clocks."""
        timer_ms = machine.next_ms(self.state)
        waits = [] if timer_ms is None else [timer_ms - at.now_ms]
        due = self.next_due()
        if due is not None and not self.state.paused:
            waits.append(sum(due) - at.wall_ms)
        return min(waits, default=None)

    def looked(self, at: Moment) -> ClockLooked:
        """The input for its machine."""
        times = self._times()
        if times is None:
            return ClockLooked(at)
        due, earlier = come(self.row, times, self.state.cursor_ms, at.wall_ms)
        return ClockLooked(at, due, earlier)

    def broken(self) -> str:
        """Why it has no due times on this machine, such as an unknown time zone; empty: it has
        some."""
        try:
            times_of(self.row)
        except DssError as gone:
            return gone.message
        return ""

    def _times(self) -> FireTimes | None:
        return None if self.broken() else times_of(self.row)

    def defined(self, at: Moment) -> Defined:
        """The definition, as the machine takes it."""
        return Defined(at, rules_of(self.row), self.row.paused, self.row.since_ms)

    def position(self, state: State) -> SchedulePositionRow:
        """The row that stores a state."""
        return SchedulePositionRow(self.row.schedule_id, state.cursor_ms, state.last_run)


def begun(
    row: ScheduleRow,
    position: SchedulePositionRow | None,
    runs: list[ScheduleRunRow],
    at: Moment,
) -> Live:
    """A schedule from its rows. Attempts of the previous daemon still count as under way."""
    cursor_ms, last_run = row.since_ms, 0
    if position is not None:
        cursor_ms, last_run = max(cursor_ms, position.cursor_ms), position.last_run
    state = State(rules_of(row), cursor_ms, row.paused, last_run)
    rows = RunRows(row.schedule_id)
    rows.enter(runs)
    for found in rows.unended.values():
        what = Run(found.run, found.due_ms, Cause(found.cause), found.attempt)
        if found.state == RETRYING:
            left_ms = (found.retry_at_ms or 0) - at.wall_ms
            retry_ms = min(max(0, left_ms), SCHEDULE_RETRY_MS_MAX)
            waits = Retrying(what, at.now_ms + retry_ms, Outcome.FAILED)
            state = machine.with_retrying(state, waits)
        else:
            state = machine.resumed(state, at, what, waits=found.state == QUEUED)
    return Live(row, state, rows)
