"""The events of a schedule.

Invariant: the events tell that a schedule began to fail, from time to time that it still fails,
that it works again, and which due times were missed. A working schedule has no events.
"""

from dss_core.counted import counted
from dss_core.sentences import as_sentence
from dss_core.times import text_of_ms
from dssd.clock import Clock
from dssd.events.kinds import SCHEDULE_FAILED, SCHEDULE_MISSED, SCHEDULE_RECOVERED
from dssd.events.model import Event, EventKind, Note
from dssd.machines.schedule import Effect, Finish, Outcome, Skip, Why
from dssd.schedules.live import Live
from dssd.schedules.run_rows import Said

FAILURE_TOLD_EVERY_MS = 3_600 * 1_000
"""A schedule that fails each time is told as an event when it begins to fail, and then so often."""


class Telling:
    """Notes events."""

    def __init__(self, note: Note, clock: Clock) -> None:
        self._note = note
        self._clock = clock

    def tell(self, live: Live, effect: Effect, said: Said) -> None:
        """Tell what an effect that was stored means to operators."""
        match effect:
            case Finish(what, Outcome.DONE):
                self._recovered(live, what.run)
            case Finish(_, Outcome.CANCELLED):
                pass  # who cancelled it knows, and the operation says who
            case Finish(what, outcome):
                self._failed(live, what.run, outcome, said)
            case Skip(_, due_ms, count, Why.LATE):
                self._missed(live, due_ms, count)
            case _:
                pass

    def tell_broken(self, live: Live) -> None:
        """Tell of a schedule that has no due times any more."""
        why = live.broken()
        if why:
            sentence = f"The schedule {live.row.name} is not run: {why}"
            self._tell(SCHEDULE_FAILED, live, sentence, {"task": live.row.task})

    def _failed(self, live: Live, run: int, outcome: Outcome, said: Said) -> None:
        now_ms, told_ms = self._clock.now_ms(), live.failing_told_ms
        if told_ms is not None and now_ms - told_ms < FAILURE_TOLD_EVERY_MS:
            return
        live.failing_told_ms = now_ms
        why = f": {said.failure}" if said.failure else ""
        which = f"Run {run} of the schedule {live.row.name}, {live.row.task},"
        sentence = f"{which} {_word(outcome)}{why}"
        fields = {"run": str(run), "task": live.row.task, "outcome": outcome.value}
        self._tell(SCHEDULE_FAILED, live, sentence, fields)

    def _recovered(self, live: Live, run: int) -> None:
        if live.failing_told_ms is None:
            return
        live.failing_told_ms = None
        sentence = f"Run {run} of the schedule {live.row.name} is done: it works again"
        self._tell(SCHEDULE_RECOVERED, live, sentence, {"run": str(run)})

    def _missed(self, live: Live, due_ms: int, count: int) -> None:
        what = f"{counted(count, 'due time')}, the latest {text_of_ms(due_ms)}"
        sentence = f"The schedule {live.row.name} was not run for {what}: {Why.LATE.value}"
        self._tell(SCHEDULE_MISSED, live, sentence, {"count": str(count)})

    def _tell(self, kind: EventKind, live: Live, sentence: str, fields: dict[str, str]) -> None:
        self._note(Event(kind, f"schedule/{live.row.name}", as_sentence(sentence), fields))


def _word(outcome: Outcome) -> str:
    return {"timed-out": "took too long", "interrupted": "was interrupted"}.get(outcome, "failed")
