"""The rows of a schedule's runs: all unfinished ones, and a bounded number of ended ones.

Invariant: rows here are the last committed ones; `written` makes the next rows from a decision of
the machine, and changes nothing here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from dssd.machines.schedule import (
    Begin,
    Effect,
    Finish,
    Moment,
    Queue,
    Refuse,
    RetryLater,
    Run,
    Skip,
    Stop,
)
from dssd.store.port import Delete, Put, Write
from dssd.store.schedule_rows import ScheduleRunRow

RUNS_KEPT_MAX = 50
"""Ended runs kept for each schedule: seven weeks of a nightly one."""


QUEUED, RUNNING, RETRYING, SKIPPED = "queued", "running", "retrying", "skipped"
UNENDED = frozenset({QUEUED, RUNNING, RETRYING})


@dataclass(frozen=True, slots=True)
class Said:
    """The output and failure of an ended attempt."""

    output: str = ""
    failure: str = ""


NOTHING_SAID = Said()


@dataclass(slots=True)
class RunRows:
    """Those of one schedule."""

    schedule_id: int
    unended: dict[int, ScheduleRunRow] = field(default_factory=dict)
    ended: list[int] = field(default_factory=list)
    """Their numbers, the oldest first."""
    last: ScheduleRunRow | None = None
    """The newest that ended, skipped ones aside."""

    def enter(self, rows: Iterable[ScheduleRunRow]) -> None:
        """Note that these rows were committed, and that those of `surplus` were removed."""
        for row in rows:
            if row.state in UNENDED:
                self.unended[row.run] = row
                continue
            self.unended.pop(row.run, None)
            if row.run not in self.ended:
                self.ended.append(row.run)
            if row.state != SKIPPED:
                self.last = row
        del self.ended[: max(0, len(self.ended) - RUNS_KEPT_MAX)]

    def writes(self, rows: Sequence[ScheduleRunRow]) -> list[Write]:
        """The writes of these rows, and the removals of ended runs above the limit."""
        more = [row.run for row in rows if row.state not in UNENDED]
        kept = [*self.ended, *(run for run in more if run not in self.ended)]
        surplus = kept[: max(0, len(kept) - RUNS_KEPT_MAX)]
        gone = [Delete(ScheduleRunRow, (self.schedule_id, run)) for run in surplus]
        return [*(Put(row) for row in rows), *gone]

    def written(self, effect: Effect, at: Moment, said: Said) -> ScheduleRunRow | None:
        """The row that an effect makes; None where it makes none."""
        match effect:
            case Begin(what):
                started_ms = self._known(what).started_at_ms or at.wall_ms
                return replace(
                    self._known(what),
                    state=RUNNING,
                    attempt=what.attempt,
                    started_at_ms=started_ms,
                    retry_at_ms=None,
                    operation=0,
                )
            case Queue(what):
                return self._known(what)
            case RetryLater(what, in_ms, _):
                return replace(
                    self._known(what),
                    state=RETRYING,
                    attempt=what.attempt,
                    retry_at_ms=at.wall_ms + in_ms,
                    output=said.output,
                    failure=said.failure,
                )
            case Finish(what, outcome):
                known = self._known(what)
                return replace(
                    known,
                    state=outcome.value,
                    attempt=what.attempt,
                    ended_at_ms=at.wall_ms,
                    retry_at_ms=None,
                    output=said.output or known.output,
                    failure=said.failure or known.failure,
                )
            case Skip():
                return self._skipped(effect, at)
            case Stop() | Refuse():
                return None
            case _:
                assert_never(effect)

    def _known(self, what: Run) -> ScheduleRunRow:
        """The row of a run; a new one where it begins or waits for the first time."""
        return self.unended.get(what.run) or ScheduleRunRow(
            schedule_id=self.schedule_id,
            run=what.run,
            due_ms=what.due_ms,
            cause=what.cause.value,
            state=QUEUED,
            attempt=what.attempt,
            started_at_ms=None,
            ended_at_ms=None,
            retry_at_ms=None,
            operation=0,
            output="",
            failure="",
            count=1,
        )

    def _skipped(self, skip: Skip, at: Moment) -> ScheduleRunRow:
        return ScheduleRunRow(
            schedule_id=self.schedule_id,
            run=skip.run,
            due_ms=skip.due_ms,
            cause=skip.cause.value,
            state=SKIPPED,
            attempt=0,
            started_at_ms=None,
            ended_at_ms=at.wall_ms,
            retry_at_ms=None,
            operation=0,
            output="",
            failure=skip.why.value,
            count=skip.count,
        )
