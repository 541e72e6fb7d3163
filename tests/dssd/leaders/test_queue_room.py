"""It is told when the queues of a stream are full, and when they have room again."""

import pytest

from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId
from dss_core.lane import DEAD
from dss_core.progress import Progress
from dss_sim.played_groups import Plant
from dssd.events.model import Event
from dssd.leaders.declarations import AskedRetries
from dssd.leaders.lanes import queue_row
from dssd.leaders.queue_room import QueueRoom
from dssd.machines.queues import QueueState
from dssd.store.port import Put
from support.queued_entries import Failed, append_entries

PAYLOAD_BYTES = 1_000
TEN = tuple(Failed(at, payload=bytes(PAYLOAD_BYTES)) for at in range(10))


class Scene:
    """A group whose one stream has ten dead letters, and what is told."""

    def __init__(self, plant: Plant, group_id: int, dead: StreamId) -> None:
        self.plant = plant
        self.group_id = group_id
        self.dead = dead
        self.told: list[Event] = []
        self.room = QueueRoom(
            plant.catalogue, plant.groups, plant.registry, plant.log, self.told.append
        )

    async def look(self) -> list[tuple[str, str, str]]:
        """What is told by one look: which event, of which stream, with how many records."""
        self.told.clear()
        await self.room.look()
        return [(e.kind.code, e.fields["stream"], e.fields["records"]) for e in self.told]

    async def give_up(self, count: int) -> None:
        """So many of the dead letters are done."""
        state = QueueState(self.dead, Progress(count), applied_end=len(TEN))
        group = self.plant.groups.get(self.group_id)
        await self.plant.store.commit([Put(queue_row(group, state))])


async def opened(plant: Plant, asked: AskedRetries) -> Scene:
    [stream] = await plant.topic("orders", 1)
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    group = await plant.groups.declare(parsed, retries=asked)
    await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    queues = plant.catalogue.queues_of(group.group_id, stream)
    assert queues is not None
    scene = Scene(plant, group.group_id, queues[DEAD - 1])
    await append_entries(plant, scene.dead, TEN)
    return scene


@pytest.mark.parametrize(
    "asked",
    [AskedRetries(5, queue_records=10), AskedRetries(5, queue_bytes=10 * PAYLOAD_BYTES)],
)
async def test_full_queues_are_told_once_by_records_or_bytes_and_room_once_a_tenth_is_free(
    plant: Plant, asked: AskedRetries
) -> None:
    scene = await opened(plant, asked)
    assert await scene.look() == [("queue.full", "orders/0/0", "10")]
    [told] = scene.told
    assert (told.subject, told.fields["level"], told.fields["dead"]) == ("g@orders/#", "dead", "10")
    assert int(told.fields["bytes"]) > 10 * PAYLOAD_BYTES
    assert await scene.look() == []
    await scene.give_up(5)
    assert await scene.look() == [("queue.room", "orders/0/0", "5")]
    assert await scene.look() == []


async def test_what_is_not_full_is_not_told_of_nor_what_is_of_a_group_that_is_gone(
    plant: Plant,
) -> None:
    scene = await opened(plant, AskedRetries(5, queue_records=11))
    assert await scene.look() == []
    scene = Scene(plant, scene.group_id, scene.dead)
    await plant.groups.remove(scene.group_id)
    assert await scene.look() == []
