"""The reports about points that were struck, one by one."""

import asyncio
from collections import Counter

import pytest

from support import syscall_faults
from support.syscall_faults import AT_ONCE, MISSED, assert_all_sound

POINTS = range(2 * AT_ONCE)


async def test_all_that_is_wrong_is_named_beside_what_is_sound() -> None:
    async def run(point: int) -> str:
        return "lost" if point in (1, 5) else ""

    with pytest.raises(AssertionError, match=r"^1: lost\n5: lost"):
        await assert_all_sound(POINTS, run)


async def test_a_run_that_takes_too_long_is_done_once_more_and_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(syscall_faults, "RUN_S_MAX", 0.05)
    runs: Counter[int] = Counter()
    under_way: set[int] = set()

    async def run(point: int) -> str:
        runs[point] += 1
        if point % 2 and runs[point] == 1:
            await asyncio.Event().wait()
        if runs[point] == 1:
            return ""
        under_way.add(point)
        await asyncio.sleep(0)
        assert under_way == {point}
        under_way.remove(point)
        return ""

    await assert_all_sound(POINTS, run)
    assert runs == {point: 1 + point % 2 for point in POINTS}


async def test_a_run_that_hangs_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syscall_faults, "RUN_S_MAX", 0.05)

    async def run(point: int) -> str:
        if point == 3:
            await asyncio.Event().wait()
        return ""

    with pytest.raises(AssertionError, match=r"^3: too slow"):
        await assert_all_sound(POINTS, run)


async def test_not_too_many_points_may_be_missed() -> None:
    async def run(point: int) -> str:
        return MISSED if point < 3 else ""

    with pytest.raises(AssertionError, match="'0', '1', '2'"):
        await assert_all_sound(POINTS, run)
    await assert_all_sound(POINTS[1:], run)
