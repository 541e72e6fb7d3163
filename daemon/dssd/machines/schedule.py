"""The decisions of one schedule: when its task runs, is retried, waits, is skipped or stopped.

::

                 due, in time, free                    ended well
    (nothing) ────────────────────────► running ──────────────────────► done
        │  due, busy, overlap queue        │  ▲
        ├─────────────► queued ────────────┼──┘ free again
        │  due, busy, overlap skip         │ failed, attempts left
        ├─────────────► skipped            ├──────────► retrying ──► running
        │  due, too late                   │ failed, none left
        └─────────────► missed             └──────────► failed, timed out, interrupted, cancelled

Due times and the time are inputs. Due times and the catch-up window are wall clock; timeouts and
the pauses between attempts are monotonic, so setting the clock moves neither of them. Invariant:
each due time is decided once, and the cursor, up to which all are decided, is stored with the
decisions. After a downtime of the daemon, or a clock that was set forward, at most the latest
missed run is caught up. A clock that is set back by less than `SCHEDULE_CLOCK_BACK_MS` repeats
nothing; if it is set back farther, the schedule goes on from the new time.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, assert_never

SCHEDULE_LATE_MS = 60_000
"""A run that begins at most this late is no catch-up: the loop was busy, or the machine slept for a
moment. Cron has no times nearer to each other."""

SCHEDULE_CLOCK_BACK_MS = 3 * 3_600 * 1_000
"""If the clock is set back by less, the schedule waits until the clock is where it was, and repeats
nothing. If by more, the clock had been wrong, and the schedule goes on from now. Cron does the
same."""

SCHEDULE_RETRY_MS_MAX = 3_600 * 1_000
"""The longest pause before the next attempt of a run, however often it failed."""


SCHEDULE_RUNS_AT_ONCE_MAX = 4
"""The most runs at a time of a schedule that allows concurrent runs: more mean that none ends."""

RETRY_DOUBLINGS_MAX = 30
"""The most doublings of the pause between attempts; it reaches its bound long before."""


class Overlap(StrEnum):
    """What becomes of a due time while an earlier run has not ended."""

    SKIP = "skip"
    QUEUE = "queue"
    """One waits; further ones are skipped."""
    ALLOW = "allow"


class Cause(StrEnum):
    """Why a run began."""

    CRON = "cron"
    CATCH_UP = "catch-up"
    OPERATOR = "operator"


class Outcome(StrEnum):
    """How an attempt ended."""

    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    INTERRUPTED = "interrupted"
    """The daemon ended while it ran."""
    CANCELLED = "cancelled"
    """An operator stopped it."""


class Why(StrEnum):
    """Why a due time has no run."""

    BUSY = "the run before had not ended"
    QUEUE_FULL = "the run before had not ended, and another one waited"
    LATE = "it was missed: the daemon was down, or the clock was set"
    PAUSED = "the schedule was paused"


@dataclass(frozen=True, slots=True)
class Moment:
    """Now, by both clocks."""

    now_ms: int
    """Monotonic."""
    wall_ms: int


class Due(NamedTuple):
    """A due time that has come."""

    at_ms: int
    """As the cron expression has it."""
    delay_ms: int = 0
    """The jitter that it was given."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a schedule, as an operator set them."""

    overlap: Overlap
    catch_up_ms: int
    """How late a run may still begin; at least `SCHEDULE_LATE_MS`."""
    timeout_ms: int
    """Of one attempt."""
    retries: int
    backoff_ms: int
    """Before the first retry; doubles with each."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has not ended."""

    run: int
    due_ms: int
    cause: Cause
    attempt: int = 1
    reason: str = ""
    """Why the operator wanted it."""


@dataclass(frozen=True, slots=True)
class Running:
    """An attempt under way."""

    what: Run
    ends_ms: int
    """When it has taken too long; monotonic."""
    stopping: bool = False
    """It was told to stop."""


@dataclass(frozen=True, slots=True)
class Retrying:
    """A failed run whose next attempt waits."""

    what: Run
    at_ms: int
    """Monotonic."""
    outcome: Outcome
    """Of the attempt before."""


@dataclass(frozen=True, slots=True)
class State:
    """A schedule, as far as decisions need it."""

    rules: Rules
    cursor_ms: int
    """Due times up to it are decided."""
    paused: bool = False
    last_run: int = 0
    running: tuple[Running, ...] = ()
    retrying: tuple[Retrying, ...] = ()
    queued: Run | None = None
    skipped: "Skip | None" = None
    """The latest skip that was reported: further skips of its kind add to its count."""


# Inputs


@dataclass(frozen=True, slots=True)
class ClockLooked:
    """Somebody looked at the clock."""

    at: Moment
    due: tuple[Due, ...] = ()
    """Due times behind the cursor that have come, in order: all, or the latest of many."""
    earlier: int = 0
    """How many came before these."""


@dataclass(frozen=True, slots=True)
class Triggered:
    """An operator wants a run now."""

    at: Moment
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt ended."""

    at: Moment
    run: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Defined:
    """An operator changed the schedule."""

    at: Moment
    rules: Rules
    paused: bool
    since_ms: int
    """Due times up to it do not count."""


Input = ClockLooked | Triggered | Ended | Defined


# Effects


@dataclass(frozen=True, slots=True)
class Begin:
    """An attempt is to begin."""

    what: Run


@dataclass(frozen=True, slots=True)
class Queue:
    """A run waits for the one before."""

    what: Run


@dataclass(frozen=True, slots=True)
class Stop:
    """An attempt has taken too long: stop it, then feed `Ended`."""

    what: Run


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Another attempt of a failed run follows."""

    what: Run
    """The run, with the number of its next attempt."""
    in_ms: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Finish:
    """A run is over."""

    what: Run
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Skip:
    """A run that waited, or due times that are not run."""

    run: int
    due_ms: int
    """The latest."""
    count: int
    why: Why
    cause: Cause = Cause.CRON


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse an operator's run: this one has not ended."""

    run: int


Effect = Begin | Queue | Stop | RetryLater | Finish | Skip | Refuse


def step(state: State, given: Input) -> tuple[State, list[Effect]]:
    """What follows from one input."""
    effects: list[Effect] = []
    match given:
        case ClockLooked():
            state = _look(state, given, effects.append)
        case Triggered():
            state = _triggered(state, given, effects.append)
        case Ended():
            state = _ended(state, given, effects.append)
        case Defined():
            state = _defined(state, given, effects.append)
        case _:
            assert_never(given)
    if not isinstance(given, Triggered):
        state = _begin_queued(state, given.at, effects.append)
    return state, effects


def next_ms(state: State) -> int | None:
    """When a timeout or a retry is due at the earliest; monotonic."""
    times = [each.ends_ms for each in state.running if not each.stopping]
    times += [each.at_ms for each in state.retrying]
    return min(times, default=None)


def resumed(state: State, at: Moment, what: Run, *, waits: bool) -> State:
    """The state with a run from before a restart: an attempt under way, or one that waits."""
    last_run = max(state.last_run, what.run)
    if waits:
        return replace(state, last_run=last_run, queued=what)
    running = Running(what, at.now_ms + state.rules.timeout_ms)
    return replace(state, last_run=last_run, running=(*state.running, running))


def with_retrying(state: State, waits: Retrying) -> State:
    """The state with a failed run from before a restart, whose next attempt waits."""
    return replace(state, retrying=(*state.retrying, waits))


_Emit = Callable[[Effect], None]


def _look(state: State, given: ClockLooked, emit: _Emit) -> State:
    state = _time_out(state, given.at, emit)
    state = _retry(state, given.at, emit)
    if state.cursor_ms > given.at.wall_ms + SCHEDULE_CLOCK_BACK_MS:
        return replace(state, cursor_ms=given.at.wall_ms)
    if not given.due:
        return state
    state = replace(state, cursor_ms=given.due[-1].at_ms)
    return state if state.paused else _decide(state, given, emit)


def _time_out(state: State, at: Moment, emit: _Emit) -> State:
    running: list[Running] = []
    for each in state.running:
        late = not each.stopping and each.ends_ms <= at.now_ms
        if late:
            emit(Stop(each.what))
        running.append(replace(each, stopping=True) if late else each)
    return replace(state, running=tuple(running))


def _retry(state: State, at: Moment, emit: _Emit) -> State:
    due = [each.what for each in state.retrying if each.at_ms <= at.now_ms]
    left = tuple(each for each in state.retrying if each.at_ms > at.now_ms)
    state = replace(state, retrying=left)
    for what in due:
        state = _begin(state, what, at, emit)
    return state


def _decide(state: State, given: ClockLooked, emit: _Emit) -> State:
    """Run the latest due time, unless it is too late or the schedule is busy."""
    latest, delay_ms = given.due[-1]
    late_ms = given.at.wall_ms - latest - delay_ms
    too_late = late_ms > max(SCHEDULE_LATE_MS, state.rules.catch_up_ms)
    missed = given.due if too_late else given.due[:-1]
    if missed:
        state = _skip(state, missed[-1].at_ms, given.earlier + len(missed), Why.LATE, emit)
    if too_late:
        return state
    cause = Cause.CRON if late_ms <= SCHEDULE_LATE_MS else Cause.CATCH_UP
    run = Run(state.last_run + 1, latest, cause)
    if _may_begin(state):
        return _begin(replace(state, last_run=run.run), run, given.at, emit)
    if state.rules.overlap is Overlap.QUEUE and state.queued is None:
        return _queue(state, run, emit)
    why = Why.QUEUE_FULL if state.queued is not None else Why.BUSY
    return _skip(state, latest, 1, why, emit)


def _triggered(state: State, given: Triggered, emit: _Emit) -> State:
    at = given.at
    run = Run(state.last_run + 1, at.wall_ms, Cause.OPERATOR, reason=given.reason)
    if _may_begin(state):
        return _begin(replace(state, last_run=run.run), run, at, emit)
    if state.rules.overlap is Overlap.QUEUE and state.queued is None and not state.paused:
        return _queue(state, run, emit)
    emit(Refuse(_oldest(state)))
    return state


def _ended(state: State, given: Ended, emit: _Emit) -> State:
    ended = next((each.what for each in state.running if each.what.run == given.run), None)
    if ended is None:
        return state
    running = tuple(each for each in state.running if each.what.run != given.run)
    state = replace(state, running=running)
    for_good = given.outcome in (Outcome.DONE, Outcome.CANCELLED)
    again = not for_good and ended.attempt <= state.rules.retries
    if not again or state.paused:
        emit(Finish(ended, given.outcome))
        return state
    doublings = min(ended.attempt - 1, RETRY_DOUBLINGS_MAX)
    in_ms = min(state.rules.backoff_ms << doublings, SCHEDULE_RETRY_MS_MAX)
    following = replace(ended, attempt=ended.attempt + 1)
    emit(RetryLater(following, in_ms, given.outcome))
    waiting = Retrying(following, given.at.now_ms + in_ms, given.outcome)
    return replace(state, retrying=(*state.retrying, waiting))


def _defined(state: State, given: Defined, emit: _Emit) -> State:
    since_ms = max(state.cursor_ms, given.since_ms)
    state = replace(state, rules=given.rules, paused=given.paused, cursor_ms=since_ms)
    if not state.paused:
        return state
    for each in state.retrying:
        emit(Finish(replace(each.what, attempt=each.what.attempt - 1), each.outcome))
    if state.queued is not None:
        waited = state.queued
        emit(Skip(waited.run, waited.due_ms, 1, Why.PAUSED, waited.cause))
    return replace(state, retrying=(), queued=None)


def _begin_queued(state: State, at: Moment, emit: _Emit) -> State:
    if state.queued is None or state.paused or not _may_begin(state):
        return state
    return _begin(replace(state, queued=None), state.queued, at, emit)


def _may_begin(state: State) -> bool:
    under_way = len(state.running) + len(state.retrying)
    if state.rules.overlap is Overlap.ALLOW:
        return under_way < SCHEDULE_RUNS_AT_ONCE_MAX
    return under_way == 0


def _begin(state: State, what: Run, at: Moment, emit: _Emit) -> State:
    emit(Begin(what))
    running = Running(what, at.now_ms + state.rules.timeout_ms)
    return replace(state, running=(*state.running, running))


def _queue(state: State, run: Run, emit: _Emit) -> State:
    emit(Queue(run))
    return replace(state, last_run=run.run, queued=run)


def _skip(state: State, due_ms: int, count: int, why: Why, emit: _Emit) -> State:
    skipped = Skip(state.last_run + 1, due_ms, count, why)
    before = state.skipped
    if before is not None and (before.run, before.why) == (state.last_run, why):
        skipped = Skip(before.run, due_ms, before.count + count, why)
    emit(skipped)
    return replace(state, last_run=skipped.run, skipped=skipped)


def _oldest(state: State) -> int:
    """The oldest run that has not ended; there must be one."""
    runs = [each.what.run for each in state.running]
    runs += [each.what.run for each in state.retrying]
    return min(runs)
