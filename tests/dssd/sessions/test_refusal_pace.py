"""How much of the loop refusals take: a part of it, however many sessions refuse."""

import asyncio

import pytest

from dssd.sessions.refusal_pace import (
    REFUSALS_PART,
    REFUSALS_PART_ALONE,
    REFUSALS_STEP_S_MAX,
    RefusalPace,
)

STEP_S = 0.002


@pytest.mark.parametrize(
    ("sessions", "part"), [(1, REFUSALS_PART_ALONE), (2, 8), (17, 9.7), (1_000, REFUSALS_PART)]
)
def test_sessions_that_refuse_without_end_have_a_small_part_of_the_loop_together(
    sessions: int, part: float
) -> None:
    pace = RefusalPace()
    pace.waiting = sessions
    round_s = STEP_S + pace.pause_s(STEP_S)
    assert sessions * STEP_S / round_s == pytest.approx(1 / part, rel=0.01)


def test_who_refuses_little_waits_little_and_a_process_that_stood_still_is_not_blamed() -> None:
    pace = RefusalPace()
    pace.waiting = 17
    assert pace.pause_s(STEP_S / 100) == pytest.approx(pace.pause_s(STEP_S) / 100)
    assert pace.pause_s(10.0) == pace.pause_s(REFUSALS_STEP_S_MAX)
    assert pace.pause_s(-1.0) == 0.0


async def test_who_waits_counts_until_it_goes_on_or_is_cancelled() -> None:
    pace = RefusalPace()
    waits = [asyncio.create_task(pace.give_way(took_s)) for took_s in (0.0, 10.0)]
    await waits[0]
    assert pace.waiting == 1
    waits[1].cancel()
    await asyncio.wait(waits)
    assert pace.waiting == 0
