"""Groups that go by themselves, and groups that are removed only if nobody uses them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dss_core.errors import GroupDestroyed, GroupInUse, IllegalArgument
from dss_core.filters import SubscriptionFilter
from dss_sim.played_groups import Plant
from dssd.clock import Clock
from dssd.leaders.declarations import METADATA_BYTES_MAX
from dssd.leaders.unused_groups import UnusedGroups
from dssd.store.memory import MemoryStore
from dssd.store.port import Delete, Put
from dssd.store.rows import GroupRow, SubscriptionRow

FILTER = SubscriptionFilter.parse("$share/g/orders/#")
SESSION = b"s" * 16


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Plant]:
    made = Plant(tmp_path, MemoryStore())
    await made.start()
    await made.topic("orders", 1)
    yield made
    await made.stop()


class SetClock(Clock):
    """Shows what a test sets."""

    __slots__ = ("ms",)

    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def unused(plant: Plant, clock: SetClock) -> UnusedGroups:
    return UnusedGroups(plant.store, plant.groups, plant.registry, clock)


async def declared(plant: Plant, unused_ms: int = 0) -> GroupRow:
    return await plant.groups.declare(FILTER, metadata="kept", unused_ms=unused_ms)


def row_of(group: GroupRow) -> SubscriptionRow:
    return SubscriptionRow(SESSION, 1, FILTER.text, group.group_id)


async def test_a_group_keeps_its_metadata_over_a_restart(plant: Plant) -> None:
    group = await declared(plant, 5_000)
    await plant.stop()
    await plant.start()
    kept = plant.groups.get(group.group_id)
    assert (kept.metadata, kept.unused_ms) == ("kept", 5_000)


async def test_an_unused_group_is_removed_when_it_is_asked_to_go(
    plant: Plant, unused: UnusedGroups
) -> None:
    group = await declared(plant)
    await unused.remove(group)
    with pytest.raises(GroupDestroyed):
        plant.groups.get(group.group_id)


async def test_a_group_that_a_session_has_subscribed_to_stays(
    plant: Plant, unused: UnusedGroups
) -> None:
    group = await declared(plant)
    await plant.store.commit([Put(row_of(group))])
    with pytest.raises(GroupInUse):
        await unused.remove(group)
    assert plant.groups.has(group.group_id)


async def test_a_group_that_somebody_is_just_joining_stays(
    plant: Plant, unused: UnusedGroups
) -> None:
    group = await declared(plant)
    with plant.groups.gate.joining(FILTER), pytest.raises(GroupInUse):
        await unused.remove(group)
    await unused.remove(group)


async def test_who_joins_while_it_is_looked_into_waits_and_finds_it_removed_or_there(
    plant: Plant, unused: UnusedGroups
) -> None:
    group = await declared(plant)
    with plant.groups.gate.ending((group.name, group.filter)):
        join = plant.groups.join(
            FILTER, start=None, ack_wait_ms=None, session_id=SESSION, subscription=1
        )
        joining = asyncio.create_task(join)
        await asyncio.sleep(0)
        assert not joining.done()
    assert (await joining).group == group
    with plant.groups.gate.ending((group.name, group.filter)):
        joining = asyncio.create_task(
            plant.groups.join(
                FILTER, start=None, ack_wait_ms=None, session_id=SESSION, subscription=1
            )
        )
        await asyncio.sleep(0)
        await plant.groups.remove(group.group_id)
    with pytest.raises(GroupDestroyed):
        await joining


async def test_a_group_goes_once_nobody_has_used_it_for_so_long(
    plant: Plant, unused: UnusedGroups, clock: SetClock
) -> None:
    group = await declared(plant, 5_000)
    await unused.sweep()
    clock.ms += 4_999
    await unused.sweep()
    assert plant.groups.has(group.group_id)
    clock.ms += 1
    await unused.sweep()
    assert not plant.groups.has(group.group_id)


async def test_a_session_that_waits_for_its_client_keeps_it(
    plant: Plant, unused: UnusedGroups, clock: SetClock
) -> None:
    group = await declared(plant, 5_000)
    row = row_of(group)
    await plant.store.commit([Put(row)])
    await unused.sweep()
    clock.ms += 5_000
    await unused.sweep()
    await plant.store.commit([Delete(SubscriptionRow, (SESSION, 1))])
    clock.ms += 4_999
    await unused.sweep()
    assert plant.groups.has(group.group_id)
    clock.ms += 1
    await unused.sweep()
    assert not plant.groups.has(group.group_id)


async def test_a_group_that_was_not_made_to_go_stays(
    plant: Plant, unused: UnusedGroups, clock: SetClock
) -> None:
    group = await declared(plant)
    await unused.sweep()
    clock.ms += 10**9
    await unused.sweep()
    assert plant.groups.has(group.group_id)


@pytest.mark.parametrize(
    "given", [{"metadata": "x" * (METADATA_BYTES_MAX + 1)}, {"unused_ms": 999}]
)
async def test_what_no_group_keeps_is_refused(plant: Plant, given: dict[str, object]) -> None:
    with pytest.raises(IllegalArgument):
        await plant.groups.declare(FILTER, **given)  # type: ignore[arg-type]
