"""Nobody removes a file while somebody takes down which there are."""

import asyncio

from dssd.log.upkeep.removal_gate import RemovalGate


async def a_few_turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_removal_waits_while_files_are_held() -> None:
    gate, done = RemovalGate(), asyncio.Event()

    async def remove() -> None:
        async with gate.removing():
            done.set()

    async with asyncio.TaskGroup() as tasks:
        async with gate.held(), gate.held():
            tasks.create_task(remove())
            await a_few_turns()
            assert not done.is_set()
        await done.wait()


async def test_files_are_held_once_removals_have_ended() -> None:
    gate, held = RemovalGate(), asyncio.Event()

    async def hold() -> None:
        async with gate.held():
            held.set()

    async with asyncio.TaskGroup() as tasks:
        async with gate.removing(), gate.removing():
            tasks.create_task(hold())
            await a_few_turns()
            assert not held.is_set()
        await held.wait()


async def test_who_is_cancelled_as_it_waits_holds_nothing() -> None:
    gate = RemovalGate()

    async def hold() -> None:
        async with gate.held():
            raise AssertionError("a removal is under way")

    async with gate.removing():
        waiting = asyncio.create_task(hold())
        await a_few_turns()
        waiting.cancel()
        await asyncio.wait({waiting})
    async with asyncio.timeout(10), gate.removing():
        pass
