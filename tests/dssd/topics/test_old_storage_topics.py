"""Old storage topics over a catalogue, a store and a real log: when they go, and when they stay."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId
from dss_sim.played_groups import Plant
from dssd.leaders.declarations import AskedRetries
from dssd.store.memory import MemoryStore
from dssd.store.port import Put
from dssd.store.rows import ProgressRow
from dssd.topics.old_storage_topics import OldStorageTopics

DAY_MS = 24 * 3_600 * 1_000


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Plant]:
    """With `orders`, which was switched twice; in each generation but the last were records."""
    made = Plant(tmp_path / "log", MemoryStore())
    await made.start()
    await made.topic("orders", 1)
    for ordinal in (1, 2):
        await made.publish(made.catalogue.get("orders").producing.streams()[0], 2)
        topic_id = made.catalogue.get("orders").topic_id
        await made.catalogue.add_storage_topic(topic_id, ordinal, ordinal + 1)
        await made.catalogue.switch(topic_id, ordinal)
    yield made
    await made.stop()


async def collected(plant: Plant) -> list[int]:
    """The ordinals that are there once what is done was collected."""
    await OldStorageTopics(plant.store, plant.catalogue, plant.log, plant.clock).collect()
    return [part.ordinal for part in plant.catalogue.get("orders").storage_topics]


def streams(plant: Plant, ordinal: int) -> tuple[StreamId, ...]:
    part = plant.catalogue.get("orders").part(ordinal)
    assert part is not None
    return part.streams()


async def test_a_sealed_one_without_records_goes_once_its_producers_are_forgotten(
    plant: Plant,
) -> None:
    plant.clock.ahead_ms = 2 * DAY_MS
    assert await collected(plant) == [0, 1, 2], "they have records"
    await plant.log.trim(streams(plant, 1)[0], 2)
    assert await collected(plant) == [0, 1, 2], "an older one has records"
    await plant.log.trim(streams(plant, 0)[0], 2)
    plant.clock.ahead_ms = DAY_MS // 2
    assert await collected(plant) == [0, 1, 2], "its producers may still ask"
    plant.clock.ahead_ms = 2 * DAY_MS
    gone = streams(plant, 0)[0]
    assert await collected(plant) == [2]
    assert not plant.catalogue.has_storage_topic(gone.storage_topic_id)
    await plant.stop()
    await plant.start()
    assert await collected(plant) == [2]
    await plant.publish(streams(plant, 2)[1], 1)
    assert [str(plant.catalogue.name_of(one)) for one in streams(plant, 2)[:1]] == ["orders/2/0"]


async def test_what_a_job_holds_stays(plant: Plant) -> None:
    plant.clock.ahead_ms = 2 * DAY_MS
    held = streams(plant, 0)[0]
    await plant.log.hold(7, {held: (2, 2)})
    await plant.log.trim(held, 2)
    assert await collected(plant) == [0, 1, 2]
    plant.log.released(7)
    assert await collected(plant) == [1, 2]


async def test_what_waits_in_the_queues_of_a_group_keeps_it(plant: Plant) -> None:
    plant.clock.ahead_ms = 2 * DAY_MS
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    group = await plant.groups.declare(parsed, retries=AskedRetries(3))
    await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    queues = plant.catalogue.queues_of(group.group_id, streams(plant, 0)[0])
    assert queues is not None
    dead = queues[1]
    await plant.publish(dead, 3)
    await plant.log.trim(streams(plant, 0)[0], 2)
    assert await collected(plant) == [0, 1, 2]
    row = ProgressRow(group.group_id, *dead, 3, b"", 3, b"", False, 0, applied_end=3)
    await plant.store.commit([Put(row)])
    assert await collected(plant) == [1, 2]
    assert not plant.catalogue.has_storage_topic(dead.storage_topic_id)
