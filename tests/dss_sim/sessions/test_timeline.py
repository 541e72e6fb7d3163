"""Virtual time: jumps, order, abandoned loops."""

import asyncio

import pytest

from dss_sim.sessions.timeline import STEP_US, Deadlock, Timeline, VirtualLoop


def made(timeline: Timeline) -> VirtualLoop:
    return VirtualLoop(timeline)  # type: ignore[abstract] # files and sockets are not asked for


def run_to_the_end(timeline: Timeline, task: "asyncio.Task[None]") -> None:
    while not task.done():
        timeline.step()
    task.result()


def test_time_jumps_to_the_next_timer() -> None:
    timeline = Timeline()
    loop = made(timeline)
    told: list[tuple[str, float]] = []

    async def sleep(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        told.append((name, round(loop.time(), 1)))

    async def both() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(sleep("later", 3600))
            tasks.create_task(sleep("sooner", 60))

    run_to_the_end(timeline, loop.create_task(both()))
    assert told == [("sooner", 60.0), ("later", 3600.0)]
    assert timeline.steps < 30


def test_timeouts_locks_and_cancellation_work_as_everywhere() -> None:
    timeline = Timeline()
    loop = made(timeline)

    async def held() -> None:
        lock = asyncio.Lock()
        async with lock:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(5):
                    await lock.acquire()
        assert 5 <= loop.time() < 5.1

    run_to_the_end(timeline, loop.create_task(held()))


def test_a_process_that_stands_still_takes_no_step_and_then_all_that_came_due_in_order() -> None:
    timeline = Timeline()
    loop, other = made(timeline), made(timeline)
    told: list[str] = []
    loop.call_later(1, told.append, "first")
    loop.call_later(2, told.append, "second")
    other.call_later(3, told.append, "of another process")
    loop.freeze()
    while not told:
        timeline.step()
    assert (told, loop.stands_still) == (["of another process"], True)
    loop.thaw()
    for _ in range(2):
        timeline.step()
    assert told == ["of another process", "first", "second"]
    assert loop.time() > 3


def test_a_timer_comes_while_others_wait_for_their_turn() -> None:
    timeline = Timeline()
    loop = made(timeline)
    turns: list[int] = []

    async def busy() -> None:
        loop.call_later(10 * STEP_US / 1e6, lambda: turns.append(timeline.steps))
        for _ in range(20):
            await asyncio.sleep(0)

    run_to_the_end(timeline, loop.create_task(busy()))
    assert 8 < turns[0] < 20


def test_when_nothing_will_ever_happen_it_says_so() -> None:
    timeline = Timeline()
    loop = made(timeline)

    async def stuck() -> None:
        await loop.create_future()

    task = loop.create_task(stuck())
    with pytest.raises(Deadlock):
        run_to_the_end(timeline, task)
    loop.dispose()


def test_an_abandoned_loop_takes_no_step_more() -> None:
    timeline = Timeline()
    loop = made(timeline)
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            cleaned.append("at the end")
            await asyncio.sleep(1)
            cleaned.append("never")

    loop.create_task(work(), name="work")
    timeline.step()
    assert [task.get_name() for task in loop.pending()] == ["work"]
    loop.abandon()
    timeline.step()
    with pytest.raises(Deadlock):
        timeline.step()
    assert cleaned == []
    loop.dispose()
    assert cleaned == ["at the end"]


def test_a_loop_is_disposed_of_whose_task_waits_in_a_group() -> None:
    timeline = Timeline()
    loop = made(timeline)

    async def grouped() -> None:
        async with asyncio.TaskGroup():
            await asyncio.Event().wait()

    task = loop.create_task(grouped(), name="grouped")
    with pytest.raises(Deadlock):
        run_to_the_end(timeline, task)
    loop.dispose()


def test_what_nobody_takes_is_kept() -> None:
    timeline = Timeline()
    loop = made(timeline)

    def fail() -> None:
        raise ValueError("no")

    loop.call_soon(fail)
    timeline.step()
    [complaint] = loop.complaints
    assert isinstance(complaint["exception"], ValueError)
