"""Jobs of threads, as turns on the event loop."""

import asyncio
import threading
from random import Random

import pytest

from dss_sim.log.one_thread import Died, Stuck, one_thread


def order_of(seed: int) -> list[int]:
    done: list[int] = []

    def job(number: int) -> None:
        assert threading.get_ident() == here
        done.append(number)

    async def jobs() -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(6):
                tasks.create_task(asyncio.to_thread(job, number), name=f"job {number}")

    here = threading.get_ident()

    with one_thread(Random(seed)) as loop:
        loop.run_until_complete(jobs())
    return done


def test_the_order_of_jobs_follows_from_the_chance() -> None:
    orders = [order_of(seed) for seed in range(20)]
    assert orders == [order_of(seed) for seed in range(20)]
    assert len({tuple(order) for order in orders}) > 10


def test_what_a_job_raises_comes_to_whoever_waits() -> None:
    async def job() -> None:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)

    with one_thread(Random(0)) as loop:
        loop.run_until_complete(job())


def test_who_dies_in_a_job_ends_everything() -> None:
    ended: list[str] = []

    def die() -> None:
        raise Died

    async def other() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("other")

    async def whole() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(other(), name="other")
            tasks.create_task(asyncio.to_thread(die), name="job")

    with one_thread(Random(0)) as loop:
        with pytest.raises(Died):
            loop.run_until_complete(whole())
        assert not ended
    assert ended == ["other"]


def test_timers_come_when_nothing_else_is_left_to_do() -> None:
    done: list[str] = []

    async def sleep() -> None:
        await asyncio.sleep(3_600)
        done.append("slept")

    async def whole() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(sleep(), name="sleeper")
            await asyncio.to_thread(done.append, "job")

    with one_thread(Random(0)) as loop:
        loop.run_until_complete(whole())
        assert done == ["job", "slept"]
        assert loop.time() == 3_600


def test_who_waits_for_nothing_is_told() -> None:
    with one_thread(Random(0)) as loop, pytest.raises(Stuck):
        loop.run_until_complete(asyncio.Event().wait())
