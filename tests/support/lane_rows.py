"""A group with queues as its last leader left it: rows, and entries in the log."""

from collections.abc import Sequence
from dataclasses import replace

from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.played_groups import Plant
from dssd.leaders.declarations import AskedRetries
from dssd.leaders.takeover import rows_of
from dssd.machines.fate import Counts, Fate
from dssd.machines.leader.events import StreamRecord
from dssd.machines.queues import QueueState
from dssd.machines.start_point import Earliest
from dssd.store.rows import GroupRow


async def laned_group(plant: Plant, text: str) -> GroupRow:
    """A group with queues for the existing topics."""
    parsed = SubscriptionFilter.parse(text)
    retries = AskedRetries(max_deliver=3)
    group = await plant.groups.declare(parsed, start=Earliest(), retries=retries)
    for topic in plant.catalogue.meeting(parsed.filter):
        await plant.catalogue.make_queues(group.group_id, topic)
    return group


def queues_of(plant: Plant, group: GroupRow, main: StreamId) -> tuple[StreamId, StreamId]:
    """The retry queue and the dead letters of a stream."""
    named = plant.catalogue.queues_of(group.group_id, main)
    assert named is not None
    return named


async def store_lane(
    plant: Plant, group: GroupRow, main: StreamId, levels: Sequence[tuple[Progress, Counts]]
) -> None:
    """Store the progress of each level: the stream, its retry queue, its dead letters."""
    (progress, counts), *queues = levels
    named = queues_of(plant, group, main)
    record = StreamRecord(main, progress, progress.floor, (), False, None, Fate(counts=counts))
    states = [
        QueueState(stream, done, plant.log.bounds(stream).end, fate=Fate(counts=of))
        for stream, (done, of) in zip(named, queues, strict=True)
    ]
    record = replace(record, queues=tuple(states))
    await plant.store.commit([write for _, own in rows_of(group, record) for write in own])
