import asyncio

from dssd.rpc.backpressure import AppendBudget


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_takers_wait_once_the_room_is_full_and_go_in_their_order() -> None:
    room = AppendBudget(10)
    await room.take(6)
    went: list[str] = []

    async def take(name: str, size_bytes: int) -> None:
        await room.take(size_bytes)
        went.append(name)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(take("large", 8))
        await settle()
        tasks.create_task(take("small", 1))
        await settle()
        assert went == []  # the small one would fit, but it came later
        room.give_back(6)
    assert went == ["large", "small"]


async def test_what_is_larger_than_the_room_goes_alone() -> None:
    room = AppendBudget(10)
    await room.take(50)
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(room.take(1))
        await settle()
        assert not waiting.done()
        room.give_back(50)


async def test_a_taker_that_goes_away_leaves_no_hole() -> None:
    room = AppendBudget(10)
    await room.take(10)
    async with asyncio.TaskGroup() as tasks:
        gone = tasks.create_task(room.take(10))
        next_one = tasks.create_task(room.take(10))
        await settle()
        gone.cancel()
        await settle()
        room.give_back(10)
        await next_one
    room.give_back(10)
    await room.take(10)


async def test_a_taker_that_goes_away_at_its_turn_gives_it_on() -> None:
    room = AppendBudget(10)
    await room.take(10)
    async with asyncio.TaskGroup() as tasks:
        gone = tasks.create_task(room.take(10))
        next_one = tasks.create_task(room.take(10))
        await settle()
        room.give_back(10)
        gone.cancel()
        await next_one
