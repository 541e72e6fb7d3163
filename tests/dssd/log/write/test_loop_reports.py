"""Reports on the event loop: step by step, in order, with turns for others."""

import asyncio
from collections.abc import Iterator

import pytest

from dssd.log.write.loop_reports import LoopReports

STEPS = 5


def never(error: BaseException) -> None:
    raise error


def counting(done: list[str], name: str, steps: int = STEPS) -> Iterator[None]:
    for number in range(steps):
        done.append(f"{name}{number}")
        yield


async def test_a_report_that_fits_in_a_turn_is_done_at_once() -> None:
    done: list[str] = []
    LoopReports(asyncio.get_running_loop(), never).take(counting(done, "a"))
    assert len(done) == STEPS


@pytest.mark.usefixtures("short_turns")
async def test_the_rest_of_a_long_report_comes_in_later_rounds_of_the_loop() -> None:
    done: list[str] = []
    LoopReports(asyncio.get_running_loop(), never).take(counting(done, "a"))
    for more in range(1, STEPS + 1):
        assert len(done) == more
        await asyncio.sleep(0)
    assert len(done) == STEPS


@pytest.mark.usefixtures("short_turns")
async def test_a_report_begins_after_the_last_step_of_the_one_before() -> None:
    done: list[str] = []
    reports = LoopReports(asyncio.get_running_loop(), never)
    reports.take(counting(done, "a", 3))
    reports.take(counting(done, "b", 1))
    reports.take(counting(done, "c", 2))
    for _ in range(20):
        await asyncio.sleep(0)
    assert done == ["a0", "a1", "a2", "b0", "c0", "c1"]


async def test_after_a_step_that_raised_nothing_more_is_reported() -> None:
    done: list[str] = []
    failures: list[BaseException] = []

    def broken() -> Iterator[None]:
        yield
        raise AssertionError("a blunder")

    reports = LoopReports(asyncio.get_running_loop(), failures.append)
    reports.take(broken())
    reports.take(counting(done, "a"))
    await asyncio.sleep(0)
    assert [str(failure) for failure in failures] == ["a blunder"]
    assert done == []
