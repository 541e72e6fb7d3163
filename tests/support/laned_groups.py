"""Groups with records in their queues, for plans of operations."""

from collections.abc import Sequence

from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId
from dss_core.lane import DEAD, RETRY
from dssd.leaders.declarations import AskedRetries
from dssd.store.rows import GroupRow
from support.operated_groups import Works
from support.queued_entries import Failed, append_entries


async def laned(
    works: Works, *failed: Failed, retrying: Sequence[Failed] = ()
) -> tuple[GroupRow, StreamId]:
    """A group whose one stream has these dead letters, and these records that wait for a retry."""
    plant = works.plant
    [stream] = await plant.topic("orders", 1)
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    group = await plant.groups.declare(parsed, retries=AskedRetries(5))
    await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    queues = plant.catalogue.queues_of(group.group_id, stream)
    assert queues is not None
    if failed:
        await append_entries(plant, queues[DEAD - 1], failed)
    if retrying:
        await append_entries(plant, queues[RETRY - 1], retrying)
    return group, queues[DEAD - 1]
