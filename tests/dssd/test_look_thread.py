"""Looks of operators: one after the other, in a thread of their own."""

import asyncio
from threading import Event, current_thread

from dssd.look_thread import looked


async def test_looks_are_taken_one_at_a_time_in_their_order_and_others_have_threads_meanwhile() -> (
    None
):
    begun: list[tuple[int, str]] = []
    first_began, may_end = asyncio.Event(), Event()
    loop = asyncio.get_running_loop()

    def look(number: int) -> int:
        begun.append((number, current_thread().name))
        loop.call_soon_threadsafe(first_began.set)
        assert may_end.wait(60)
        return number

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        looks = [tasks.create_task(looked(look, number)) for number in range(20)]
        await first_began.wait()
        assert await asyncio.to_thread(int) == 0
        looks[1].cancel()
        await asyncio.wait([looks[1]])
        [(first, name)] = begun
        may_end.set()
    assert (first, name) == (0, "operators-look_0")
    assert begun == [(number, name) for number in range(20) if number != 1]
    assert [each.result() for each in looks if each is not looks[1]] == [0, *range(2, 20)]
