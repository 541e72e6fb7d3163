"""What holds of a schedule whatever happens to it, and whatever the clock does."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dssd.machines.schedule import (
    SCHEDULE_CLOCK_BACK_MS,
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
    RetryLater,
    Rules,
    Skip,
    State,
    Triggered,
    Why,
    step,
)

EVERY_MS = 600_000
"""The schedule is due every ten minutes."""
START = Moment(0, 1_800_000_000_000)

RULES = st.builds(
    Rules,
    overlap=st.sampled_from(Overlap),
    catch_up_ms=st.sampled_from([0, 3_600_000]),
    timeout_ms=st.sampled_from([60_000, 1_800_000]),
    retries=st.integers(0, 2),
    backoff_ms=st.just(5_000),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.integers(0, 3_000_000)),
        st.tuples(st.just("set"), st.integers(-6 * 3_600_000, 6 * 3_600_000)),
        st.tuples(st.just("end"), st.sampled_from(list(Outcome))),
        st.tuples(st.just("trigger"), st.none()),
        st.tuples(st.just("pause"), st.booleans()),
    ),
    max_size=60,
)


class Played:
    """A schedule, its clocks, and all that it ever decided."""

    def __init__(self, rules: Rules) -> None:
        self.at = START
        self.state = State(rules, START.wall_ms)
        self.told: list[Effect] = []
        self.ended: Counter[int] = Counter()

    def give(self, given: Input) -> None:
        before = self.state
        self.state, effects = step(before, given)
        self.told += effects
        self.check(before)

    def look(self) -> None:
        first = self.state.cursor_ms // EVERY_MS + 1
        last = self.at.wall_ms // EVERY_MS
        due = tuple(Due(at * EVERY_MS) for at in range(max(first, last - 63), last + 1))
        self.give(ClockLooked(self.at, due, earlier=max(0, last - 63 - first)))

    def play(self, what: str, value: object) -> None:
        match what, value:
            case "pass", int(ms):
                self.at = Moment(self.at.now_ms + ms, self.at.wall_ms + ms)
            case "set", int(ms):
                self.at = replace(self.at, wall_ms=self.at.wall_ms + ms)
            case "end", Outcome() as outcome if self.state.running:
                self.give(Ended(self.at, self.state.running[0].what.run, outcome))
            case "trigger", _:
                self.give(Triggered(self.at))
            case "pause", bool(paused):
                since_ms = self.state.cursor_ms if paused else self.at.wall_ms
                self.give(Defined(self.at, self.state.rules, paused, since_ms))
        self.look()

    def check(self, before: State) -> None:
        state = self.state
        assert state.last_run >= before.last_run
        if state.cursor_ms < before.cursor_ms:
            assert before.cursor_ms > self.at.wall_ms + SCHEDULE_CLOCK_BACK_MS
        under_way = len(state.running) + len(state.retrying)
        assert under_way <= (4 if state.rules.overlap is Overlap.ALLOW else 1)
        assert state.queued is None or state.rules.overlap is Overlap.QUEUE
        assert not (state.paused and (state.queued or state.retrying))


@given(RULES, STEPS)
def test_no_due_time_is_decided_twice_and_every_run_ends_once(
    rules: Rules, steps: list[tuple[str, object]]
) -> None:
    played = Played(rules)
    went_back = False
    for what, value in steps:
        cursor_ms = played.state.cursor_ms
        played.play(what, value)
        went_back = went_back or played.state.cursor_ms < cursor_ms
    while played.state.running or played.state.retrying or played.state.queued:
        played.play("end", Outcome.DONE)
        played.play("pass", 3_600_000)
        played.play("pause", True)
    begun = [each.what for each in played.told if isinstance(each, Begin)]
    over = [each.what.run for each in played.told if isinstance(each, Finish)]
    dropped = [
        each.run for each in played.told if isinstance(each, Skip) and each.why is Why.PAUSED
    ]
    queued = {each.what.run for each in played.told if isinstance(each, Queue)}
    assert sorted({each.run for each in begun}) == sorted(over)
    assert sorted(over + dropped) == sorted({each.run for each in begun} | queued)
    again = [each.what for each in played.told if isinstance(each, RetryLater)]
    for run, attempts in Counter(each.run for each in begun).items():
        assert attempts <= rules.retries + 1
        assert attempts <= 1 + sum(each.run == run for each in again)
    due = [each.due_ms for each in begun if each.attempt == 1 and each.cause is not Cause.OPERATOR]
    if not went_back:
        assert len(set(due)) == len(due)
