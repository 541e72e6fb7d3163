import asyncio

from dssd.rpc.backpressure import AppendBudget


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_takers_wait_while_the_budget_is_used_up_and_go_in_order() -> None:
    budget = AppendBudget(10).of("ann")
    await budget.take(6)
    went: list[str] = []

    async def take(name: str, size_bytes: int) -> None:
        await budget.take(size_bytes)
        went.append(name)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(take("large", 8))
        await settle()
        tasks.create_task(take("small", 1))
        await settle()
        assert went == []  # the small one would fit, but it came later
        budget.give_back(6)
    assert went == ["large", "small"]


async def test_a_request_larger_than_the_budget_goes_alone() -> None:
    budget = AppendBudget(10).of("ann")
    await budget.take(50)
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(budget.take(1))
        await settle()
        assert not waiting.done()
        budget.give_back(50)


async def test_a_taker_that_goes_away_does_not_block_the_next_one() -> None:
    budget = AppendBudget(10).of("ann")
    await budget.take(10)
    async with asyncio.TaskGroup() as tasks:
        gone = tasks.create_task(budget.take(10))
        next_one = tasks.create_task(budget.take(10))
        await settle()
        gone.cancel()
        await settle()
        budget.give_back(10)
        await next_one
    budget.give_back(10)
    await budget.take(10)


async def test_a_taker_that_goes_away_at_its_turn_lets_the_next_one_go() -> None:
    budget = AppendBudget(10).of("ann")
    await budget.take(10)
    async with asyncio.TaskGroup() as tasks:
        gone = tasks.create_task(budget.take(10))
        next_one = tasks.create_task(budget.take(10))
        await settle()
        budget.give_back(10)
        gone.cancel()
        await next_one


async def test_a_taker_that_goes_away_as_another_gives_back_lets_the_next_one_go() -> None:
    budget = AppendBudget(10).of("ann")
    await budget.take(10)
    async with asyncio.TaskGroup() as tasks:
        gone = tasks.create_task(budget.take(10))
        next_one = tasks.create_task(budget.take(10))
        await settle()
        gone.cancel()
        budget.give_back(10)
        await next_one


async def test_who_holds_least_goes_before_all_that_another_one_waits_for() -> None:
    budget = AppendBudget(10)
    greedy, newcomer = budget.of("token:greedy"), budget.of("token:new")
    went: list[str] = []

    async def take(name: str, size_bytes: int) -> None:
        await (newcomer if name == "new" else greedy).take(size_bytes)
        went.append(name)

    for _ in range(10):
        await greedy.take(1)
    async with asyncio.TaskGroup() as tasks:
        for each in range(20):
            tasks.create_task(take(f"greedy {each}", 1))
        await settle()
        tasks.create_task(take("new", 4))
        await settle()
        for _ in range(4):
            assert went == []
            greedy.give_back(1)
            await settle()
        assert went == ["new"], "and its bytes are not given to the others meanwhile"
        for _ in range(20):
            greedy.give_back(1)
            await settle()
    assert went[1:] == [f"greedy {each}" for each in range(20)]
