"""What a schedule decides: every state with every input, then time's oddities."""

from dataclasses import replace

import pytest

from dssd.machines.schedule import (
    SCHEDULE_CLOCK_BACK_MS,
    SCHEDULE_LATE_MS,
    SCHEDULE_RETRY_MS_MAX,
    SCHEDULE_RUNS_AT_ONCE_MAX,
    Begin,
    Cause,
    ClockLooked,
    Defined,
    Due,
    Effect,
    Ended,
    Finish,
    Input,
    Moment,
    Outcome,
    Overlap,
    Queue,
    Refuse,
    Retrying,
    RetryLater,
    Rules,
    Run,
    Running,
    Skip,
    State,
    Stop,
    Triggered,
    next_ms,
    resumed,
    step,
)

NOON_MS = 1_800_000_000_000
"""The wall clock; the monotonic one begins at 0."""
MINUTE_MS = 60_000
AT = Moment(0, NOON_MS)
RULES = Rules(Overlap.SKIP, catch_up_ms=600_000, timeout_ms=MINUTE_MS, retries=1, backoff_ms=5_000)
FIVE = Run(5, NOON_MS - 60 * MINUTE_MS, Cause.CRON)
SIX = Run(6, NOON_MS - 30 * MINUTE_MS, Cause.CRON)

IDLE = State(RULES, NOON_MS - 60 * MINUTE_MS, last_run=5)
BUSY = replace(IDLE, running=(Running(FIVE, MINUTE_MS),))
QUEUEING = replace(BUSY, rules=replace(RULES, overlap=Overlap.QUEUE))
ALLOWING = replace(BUSY, rules=replace(RULES, overlap=Overlap.ALLOW))
STATES = {
    "idle": IDLE,
    "busy": BUSY,
    "late": replace(BUSY, running=(Running(FIVE, 0),)),
    "stopping": replace(BUSY, running=(Running(FIVE, 0, stopping=True),)),
    "last try": replace(BUSY, running=(Running(replace(FIVE, attempt=2), MINUTE_MS),)),
    "retrying": replace(IDLE, retrying=(Retrying(replace(FIVE, attempt=2), 9, Outcome.FAILED),)),
    "retry due": replace(IDLE, retrying=(Retrying(replace(FIVE, attempt=2), 0, Outcome.FAILED),)),
    "busy, queue": QUEUEING,
    "one queued": replace(QUEUEING, queued=SIX, last_run=6),
    "busy, allow": ALLOWING,
    "many": replace(
        ALLOWING,
        running=tuple(
            Running(Run(5 + at, 0, Cause.CRON), MINUTE_MS)
            for at in range(SCHEDULE_RUNS_AT_ONCE_MAX)
        ),
        last_run=4 + SCHEDULE_RUNS_AT_ONCE_MAX,
    ),
    "paused": replace(IDLE, paused=True),
    "paused, busy": replace(BUSY, paused=True),
}

ON_TIME = ClockLooked(AT, (Due(NOON_MS - 1_000),))
LATE = ClockLooked(AT, (Due(NOON_MS - 5 * MINUTE_MS),))
TOO_LATE = ClockLooked(AT, (Due(NOON_MS - 11 * MINUTE_MS),))
THREE = ClockLooked(AT, tuple(Due(NOON_MS - at * MINUTE_MS) for at in (30, 20, 0)))
PAUSED = Defined(AT, RULES, paused=True, since_ms=0)
INPUTS: dict[str, Input] = {
    "looked": ClockLooked(AT),
    "due": ON_TIME,
    "due late": LATE,
    "due too late": TOO_LATE,
    "three due": THREE,
    "triggered": Triggered(AT),
    "done": Ended(AT, 5, Outcome.DONE),
    "failed": Ended(AT, 5, Outcome.FAILED),
    "unknown done": Ended(AT, 99, Outcome.DONE),
    "paused": PAUSED,
}

TABLE = """
idle         | looked       | -
idle         | due          | begin 6 cron
idle         | due late     | begin 6 catch-up
idle         | due too late | skip 1 as 6 late
idle         | three due    | skip 2 as 6 late; begin 7 cron
idle         | triggered    | begin 6 operator
idle         | done         | -
idle         | failed       | -
idle         | unknown done | -
idle         | paused       | -
busy         | looked       | -
busy         | due          | skip 1 as 6 busy
busy         | due late     | skip 1 as 6 busy
busy         | due too late | skip 1 as 6 late
busy         | three due    | skip 2 as 6 late; skip 1 as 7 busy
busy         | triggered    | refuse for 5
busy         | done         | finish 5 done
busy         | failed       | retry 5 in 5000 failed
busy         | unknown done | -
busy         | paused       | -
late         | looked       | stop 5
late         | due          | stop 5; skip 1 as 6 busy
late         | due late     | stop 5; skip 1 as 6 busy
late         | due too late | stop 5; skip 1 as 6 late
late         | three due    | stop 5; skip 2 as 6 late; skip 1 as 7 busy
late         | triggered    | refuse for 5
late         | done         | finish 5 done
late         | failed       | retry 5 in 5000 failed
late         | unknown done | -
late         | paused       | -
stopping     | looked       | -
stopping     | due          | skip 1 as 6 busy
stopping     | due late     | skip 1 as 6 busy
stopping     | due too late | skip 1 as 6 late
stopping     | three due    | skip 2 as 6 late; skip 1 as 7 busy
stopping     | triggered    | refuse for 5
stopping     | done         | finish 5 done
stopping     | failed       | retry 5 in 5000 failed
stopping     | unknown done | -
stopping     | paused       | -
last try     | looked       | -
last try     | due          | skip 1 as 6 busy
last try     | due late     | skip 1 as 6 busy
last try     | due too late | skip 1 as 6 late
last try     | three due    | skip 2 as 6 late; skip 1 as 7 busy
last try     | triggered    | refuse for 5
last try     | done         | finish 5 done
last try     | failed       | finish 5 failed
last try     | unknown done | -
last try     | paused       | -
retrying     | looked       | -
retrying     | due          | skip 1 as 6 busy
retrying     | due late     | skip 1 as 6 busy
retrying     | due too late | skip 1 as 6 late
retrying     | three due    | skip 2 as 6 late; skip 1 as 7 busy
retrying     | triggered    | refuse for 5
retrying     | done         | -
retrying     | failed       | -
retrying     | unknown done | -
retrying     | paused       | finish 5 failed
retry due    | looked       | begin 5 cron try 2
retry due    | due          | begin 5 cron try 2; skip 1 as 6 busy
retry due    | due late     | begin 5 cron try 2; skip 1 as 6 busy
retry due    | due too late | begin 5 cron try 2; skip 1 as 6 late
retry due    | three due    | begin 5 cron try 2; skip 2 as 6 late; skip 1 as 7 busy
retry due    | triggered    | refuse for 5
retry due    | done         | -
retry due    | failed       | -
retry due    | unknown done | -
retry due    | paused       | finish 5 failed
busy, queue  | looked       | -
busy, queue  | due          | queue 6 cron
busy, queue  | due late     | queue 6 catch-up
busy, queue  | due too late | skip 1 as 6 late
busy, queue  | three due    | skip 2 as 6 late; queue 7 cron
busy, queue  | triggered    | queue 6 operator
busy, queue  | done         | finish 5 done
busy, queue  | failed       | retry 5 in 5000 failed
busy, queue  | unknown done | -
busy, queue  | paused       | -
one queued   | looked       | -
one queued   | due          | skip 1 as 7 queue_full
one queued   | due late     | skip 1 as 7 queue_full
one queued   | due too late | skip 1 as 7 late
one queued   | three due    | skip 2 as 7 late; skip 1 as 8 queue_full
one queued   | triggered    | refuse for 5
one queued   | done         | finish 5 done; begin 6 cron
one queued   | failed       | retry 5 in 5000 failed
one queued   | unknown done | -
one queued   | paused       | skip 1 as 6 paused
busy, allow  | looked       | -
busy, allow  | due          | begin 6 cron
busy, allow  | due late     | begin 6 catch-up
busy, allow  | due too late | skip 1 as 6 late
busy, allow  | three due    | skip 2 as 6 late; begin 7 cron
busy, allow  | triggered    | begin 6 operator
busy, allow  | done         | finish 5 done
busy, allow  | failed       | retry 5 in 5000 failed
busy, allow  | unknown done | -
busy, allow  | paused       | -
many         | looked       | -
many         | due          | skip 1 as 9 busy
many         | due late     | skip 1 as 9 busy
many         | due too late | skip 1 as 9 late
many         | three due    | skip 2 as 9 late; skip 1 as 10 busy
many         | triggered    | refuse for 5
many         | done         | finish 5 done
many         | failed       | retry 5 in 5000 failed
many         | unknown done | -
many         | paused       | -
paused       | looked       | -
paused       | due          | -
paused       | due late     | -
paused       | due too late | -
paused       | three due    | -
paused       | triggered    | begin 6 operator
paused       | done         | -
paused       | failed       | -
paused       | unknown done | -
paused       | paused       | -
paused, busy | looked       | -
paused, busy | due          | -
paused, busy | due late     | -
paused, busy | due too late | -
paused, busy | three due    | -
paused, busy | triggered    | refuse for 5
paused, busy | done         | finish 5 done
paused, busy | failed       | finish 5 failed
paused, busy | unknown done | -
paused, busy | paused       | -
"""


def expected() -> dict[tuple[str, str], str]:
    rows = (tuple(map(str.strip, line.split("|"))) for line in TABLE.strip().splitlines())
    return {(state, given): effects for state, given, effects in rows}


def written(effects: list[Effect]) -> str:
    return "; ".join(map(word, effects)) or "-"


def word(effect: Effect) -> str:
    match effect:
        case Begin(what):
            again = f" try {what.attempt}" if what.attempt > 1 else ""
            said = f"begin {what.run} {what.cause}{again}"
        case Queue(what):
            said = f"queue {what.run} {what.cause}"
        case Stop(what):
            said = f"stop {what.run}"
        case RetryLater(what, in_ms, outcome):
            said = f"retry {what.run} in {in_ms} {outcome}"
        case Finish(what, outcome):
            said = f"finish {what.run} {outcome}"
        case Skip(run, _, count, why):
            said = f"skip {count} as {run} {why.name.lower()}"
        case Refuse(run):
            said = f"refuse for {run}"
    return said


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("given", INPUTS)
def test_every_state_and_input_has_its_outcome(state: str, given: str) -> None:
    _, effects = step(STATES[state], INPUTS[given])
    assert written(effects) == expected()[state, given]


def test_the_table_has_no_line_of_a_state_or_input_that_is_not_tried() -> None:
    assert expected().keys() == {(state, given) for state in STATES for given in INPUTS}


def moment(minutes: float) -> Moment:
    """So many minutes after noon, by both clocks."""
    return Moment(int(minutes * MINUTE_MS), NOON_MS + int(minutes * MINUTE_MS))


def after(state: State, *given: Input) -> tuple[State, str]:
    told: list[Effect] = []
    for each in given:
        state, effects = step(state, each)
        told += effects
    return state, written(told)


def test_a_due_time_is_decided_once() -> None:
    state, told = after(IDLE, ON_TIME)
    assert (state.cursor_ms, told) == (ON_TIME.due[0].at_ms, "begin 6 cron")


def test_a_run_that_outlives_the_next_due_times_is_counted_in_one_line() -> None:
    due = [ClockLooked(moment(at), (Due(moment(at).wall_ms),)) for at in (1, 2, 3)]
    busy = replace(BUSY, running=(Running(FIVE, 10**9),))
    _, told = after(busy, *due)
    assert told == "skip 1 as 6 busy; skip 2 as 6 busy; skip 3 as 6 busy"


def test_skips_for_another_reason_or_behind_a_run_are_counted_anew() -> None:
    late = ClockLooked(moment(60), (Due(NOON_MS),))
    at = moment(61)
    done = Ended(at, 5, Outcome.DONE)
    due, busy = ClockLooked(at, (Due(at.wall_ms),)), replace(BUSY, running=(Running(FIVE, 10**9),))
    _, told = after(busy, ON_TIME, late, done, due, due)
    assert told == (
        "skip 1 as 6 busy; skip 1 as 7 late; finish 5 done; begin 8 cron; skip 1 as 9 busy"
    )


def test_an_attempt_that_takes_too_long_is_stopped_once_and_tried_again() -> None:
    state, told = after(BUSY, ClockLooked(moment(1)), ClockLooked(moment(2)))
    assert told == "stop 5"
    state, told = after(state, Ended(moment(2), 5, Outcome.TIMED_OUT))
    assert told == "retry 5 in 5000 timed-out"
    state, told = after(state, ClockLooked(moment(3)))
    assert told == "begin 5 cron try 2"
    assert next_ms(state) == moment(4).now_ms
    _, told = after(state, ClockLooked(moment(4)), Ended(moment(4), 5, Outcome.TIMED_OUT))
    assert told == "stop 5; finish 5 timed-out"


def test_the_pause_between_attempts_doubles_up_to_an_hour() -> None:
    state = replace(BUSY, rules=replace(RULES, retries=40))
    pauses_ms: list[int] = []
    at = AT
    for _ in range(40):
        state, [retry] = step(state, Ended(at, 5, Outcome.FAILED))
        assert isinstance(retry, RetryLater)
        pauses_ms.append(retry.in_ms)
        at = replace(at, now_ms=at.now_ms + retry.in_ms)
        state, _ = step(state, ClockLooked(at))
    assert pauses_ms[:4] == [5_000, 10_000, 20_000, 40_000]
    assert pauses_ms[-1] == SCHEDULE_RETRY_MS_MAX


def test_a_clock_that_is_set_moves_neither_a_timeout_nor_a_retry() -> None:
    for shift_ms in (-(10**12), 10**12):
        state, told = after(BUSY, ClockLooked(Moment(0, NOON_MS + shift_ms)))
        assert told == "-"
        assert next_ms(state) == MINUTE_MS
        state = replace(STATES["retrying"], cursor_ms=NOON_MS + shift_ms)
        assert after(state, ClockLooked(Moment(8, NOON_MS + shift_ms)))[1] == "-"


def test_a_clock_that_is_set_back_a_little_repeats_nothing() -> None:
    back = Moment(9, IDLE.cursor_ms - SCHEDULE_CLOCK_BACK_MS)
    assert after(IDLE, ClockLooked(back)) == (IDLE, "-")


def test_a_clock_that_was_far_ahead_does_not_stop_the_schedule_until_then() -> None:
    back = Moment(9, IDLE.cursor_ms - SCHEDULE_CLOCK_BACK_MS - 1)
    state, told = after(IDLE, ClockLooked(back))
    assert (state.cursor_ms, told) == (back.wall_ms, "-")


def test_a_delay_by_the_jitter_is_not_late() -> None:
    delayed = ClockLooked(AT, (Due(NOON_MS - 30 * MINUTE_MS, 30 * MINUTE_MS),))
    assert after(IDLE, delayed)[1] == "begin 6 cron"


def test_a_run_may_begin_a_minute_late_without_any_catch_up() -> None:
    strict = replace(IDLE, rules=replace(RULES, catch_up_ms=0))
    late = [ClockLooked(AT, (Due(NOON_MS - SCHEDULE_LATE_MS - more),)) for more in (0, 1)]
    assert [after(strict, each)[1] for each in late] == ["begin 6 cron", "skip 1 as 6 late"]


def test_due_times_during_a_pause_are_not_caught_up() -> None:
    resume = Defined(moment(5), RULES, paused=False, since_ms=moment(5).wall_ms)
    state, told = after(IDLE, PAUSED, ClockLooked(moment(4), (Due(moment(3).wall_ms),)), resume)
    assert (state.cursor_ms, state.paused, told) == (moment(5).wall_ms, False, "-")
    # And if nobody looked between the two.
    state, _ = after(IDLE, PAUSED, resume)
    assert state.cursor_ms == moment(5).wall_ms


def test_other_rules_count_from_the_next_decision_on() -> None:
    allow = Defined(AT, replace(RULES, overlap=Overlap.ALLOW), paused=False, since_ms=0)
    assert after(BUSY, allow, ON_TIME)[1] == "begin 6 cron"


def test_a_run_that_waited_in_a_daemon_that_ended_begins_in_the_next() -> None:
    state = resumed(IDLE, AT, Run(8, NOON_MS, Cause.CRON), waits=True)
    state, told = after(state, ClockLooked(AT))
    assert (told, state.last_run) == ("begin 8 cron", 8)


def test_a_run_that_was_interrupted_is_tried_again_if_it_may_be() -> None:
    state = resumed(IDLE, AT, FIVE, waits=False)
    assert after(state, Ended(AT, 5, Outcome.INTERRUPTED))[1] == "retry 5 in 5000 interrupted"
    once = replace(state, rules=replace(RULES, retries=0))
    assert after(once, Ended(AT, 5, Outcome.INTERRUPTED))[1] == "finish 5 interrupted"
