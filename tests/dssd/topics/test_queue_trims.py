"""Trims of queues over a catalogue, a store and a real log."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from dss_core.errors import DiskFull
from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId
from dss_sim.played_groups import Plant
from dssd.leaders.declarations import AskedRetries
from dssd.log.port import AskFloors
from dssd.store.memory import MemoryStore
from dssd.store.port import Put
from dssd.store.rows import ProgressRow
from dssd.topics.queue_trims import QueueTrims


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Plant]:
    made = Plant(tmp_path / "log", MemoryStore())
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def queues(plant: Plant) -> tuple[StreamId, StreamId]:
    """The queues of the one stream of `orders`, each with two sealed files of one record."""
    [stream] = await plant.topic("orders", 1)
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    group = await plant.groups.declare(parsed, retries=AskedRetries(3))
    await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    found = plant.catalogue.queues_of(group.group_id, stream)
    assert found is not None
    for queue in (stream, *found):
        for _ in range(2):
            await plant.publish(queue, 1)
            assert await plant.log.roll(queue.storage_topic_id)
    return found


async def done(plant: Plant, queue: StreamId, floor: int, applied_end: int) -> None:
    [group] = plant.groups.groups()
    row = ProgressRow(group.group_id, *queue, floor, b"", floor, b"", False, 0)
    await plant.store.commit([Put(replace(row, applied_end=applied_end))])


def starts(plant: Plant, queues: tuple[StreamId, StreamId]) -> list[int]:
    return [plant.log.bounds(queue).start for queue in queues]


async def test_a_queue_is_trimmed_behind_what_is_done(
    plant: Plant, queues: tuple[StreamId, StreamId]
) -> None:
    retry, dead = queues
    trims = QueueTrims(plant.store, plant.catalogue, plant.log)
    assert await trims.trim() == 0, "without a row nothing is done"
    await done(plant, retry, 1, 2)
    await done(plant, dead, 2, 2)
    assert await trims.trim() == 3
    assert starts(plant, queues) == [1, 2]
    [stream] = plant.catalogue.get("orders").streams()
    assert plant.log.bounds(stream).start == 0
    await plant.stop()
    await plant.start()
    assert starts(plant, queues) == [1, 2]


async def test_what_the_next_holder_has_to_look_at_stays(
    plant: Plant, queues: tuple[StreamId, StreamId]
) -> None:
    retry, _ = queues
    await done(plant, retry, 2, 1)
    assert await QueueTrims(plant.store, plant.catalogue, plant.log).trim() == 1
    assert starts(plant, queues) == [1, 0]


async def test_one_queue_that_cannot_be_trimmed_stops_none_of_the_others(
    plant: Plant, queues: tuple[StreamId, StreamId]
) -> None:
    full = queues[0].storage_topic_id
    for queue in queues:
        await done(plant, queue, 2, 2)

    class FullOnce:
        async def trim_below(self, storage_topic_id: int, ask_floors: AskFloors) -> int:
            if storage_topic_id == full:
                raise DiskFull
            return await plant.log.trim_below(storage_topic_id, ask_floors)

    assert await QueueTrims(plant.store, plant.catalogue, FullOnce()).trim() == 2
    assert starts(plant, queues) == [0, 2]
