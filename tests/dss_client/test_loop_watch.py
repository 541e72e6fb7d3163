"""When a loop is found to have been held."""

import asyncio

import pytest

from dss_client._loop_watch import LOOP_HELD_S, LoopWatch, watch_of_loop
from dss_client.limits import LOOP_LOOK_S

HELD_S = LOOP_HELD_S + 0.001


class Clock:
    """Moved by tests alone."""

    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("dss_client._loop_watch.monotonic", clock)
    return clock


async def test_a_loop_that_turns_was_never_held(clock: Clock) -> None:
    watch = LoopWatch()
    watch.begin()
    for _ in range(9):
        clock.now += LOOP_LOOK_S
        assert watch.held_until() == 0
    watch.end()


async def test_a_loop_that_was_held_is_noticed_whoever_looks_first(clock: Clock) -> None:
    watch = LoopWatch()
    watch.begin()
    clock.now += HELD_S
    assert watch.held_until() == clock.now
    clock.now += HELD_S
    held_until = clock.now
    watch._tick()
    clock.now += LOOP_LOOK_S
    assert watch.held_until() == held_until
    watch.end()


async def test_the_watch_of_a_loop_is_one_and_looks_by_itself_while_it_is_used(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "call_later", lambda after_s, tick: looks.append(after_s))
    watch = watch_of_loop()
    assert watch_of_loop() is watch
    for _ in range(2):
        watch.begin()
    assert looks == [LOOP_LOOK_S]
    for _ in range(2):
        watch._tick()
        watch.end()
    assert len(looks) == 3
    watch._tick()
    assert len(looks) == 3
    clock.now += 60
    watch.begin()
    assert len(looks) == 4
    assert watch.held_until() == 0, "nobody wanted to know"
    watch.end()
