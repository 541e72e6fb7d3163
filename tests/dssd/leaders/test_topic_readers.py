import asyncio

import pytest

from dss_core.filters import SubscriptionFilter
from dss_sim.played_groups import Plant
from dssd.leaders.topic_readers import readers_of
from dssd.store.rows import GroupRow
from support.loop_yields import turns_of_others

GROUPS = 20


async def names(plant: Plant, topic: str) -> list[str]:
    readers = await readers_of(plant.catalogue.get(topic), plant.groups.groups)
    return [group.name for group in readers]


async def test_groups_whose_filter_meets_a_topic_read_it(plant: Plant) -> None:
    await plant.topic("orders")
    await plant.topic("mail")
    await plant.group("$share/some/orders/eu/+")
    await plant.group("$share/other/mail/#")
    await plant.group("$share/all/#")
    assert await names(plant, "orders") == ["some", "all"]
    assert await names(plant, "mail") == ["other", "all"]


@pytest.mark.usefixtures("short_turns")
async def test_a_group_that_is_declared_while_others_are_looked_at_is_found(plant: Plant) -> None:
    await plant.topic("orders")
    await plant.group("$share/first/orders/#")
    first = plant.groups.groups()
    late = await plant.group("$share/late/orders/#")
    looks = 0

    def groups() -> tuple[GroupRow, ...]:
        nonlocal looks
        looks += 1
        return first if looks == 1 else (*first, late)

    readers = await readers_of(plant.catalogue.get("orders"), groups)
    assert [group.name for group in readers] == ["first", "late"]


@pytest.mark.usefixtures("short_turns")
async def test_many_groups_are_looked_at_with_others_in_between(plant: Plant) -> None:
    await plant.topic("orders")
    async with asyncio.TaskGroup() as tasks:
        for number in range(GROUPS):
            parsed = SubscriptionFilter.parse(f"$share/g{number}/orders/#")
            tasks.create_task(plant.groups.declare(parsed), name="declare")
    assert await turns_of_others(names(plant, "orders")) >= GROUPS
