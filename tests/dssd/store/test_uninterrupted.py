"""Work that runs to its end although its caller is cancelled."""

import asyncio

import pytest

from dss_core.errors import DiskFull
from dssd.store.uninterrupted import finished


async def cancelled_while_working(times: int, work: "asyncio.Future[None]") -> asyncio.Task[None]:
    started = asyncio.Event()

    async def to_the_end() -> None:
        started.set()
        await work

    caller = asyncio.create_task(finished(to_the_end(), name="work"))
    await started.wait()
    for _ in range(times):
        caller.cancel()
        await asyncio.sleep(0)
    return caller


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_a_cancelled_caller_waits_for_the_end_however_often(times: int) -> None:
    work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    caller = await cancelled_while_working(times, work)
    assert not caller.done()
    work.set_result(None)
    with pytest.raises(asyncio.CancelledError):
        await caller


async def test_a_condition_that_the_work_raises_does_not_stop_the_cancellation() -> None:
    work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    caller = await cancelled_while_working(1, work)
    work.set_exception(DiskFull())
    with pytest.raises(asyncio.CancelledError):
        await caller


async def test_a_programmers_error_comes_before_the_cancellation() -> None:
    work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    caller = await cancelled_while_working(1, work)
    work.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await caller
