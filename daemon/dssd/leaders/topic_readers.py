"""Which groups read a topic. It must not know what they have read."""

from collections.abc import Callable, Sequence

from dss_core.filters import TopicFilter
from dssd.loop_yield import LoopTurn
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Topic


async def readers_of(topic: Topic, groups: Callable[[], Sequence[GroupRow]]) -> list[GroupRow]:
    """The groups whose filter overlaps a pattern of the topic, by id.

    ``groups`` gives all groups by id. Other tasks get turns in between; a group that they declare
    is found too, as no task runs between the last check and the answer.
    """
    readers: list[GroupRow] = []
    turn = LoopTurn()
    last_id = 0
    while fresh := [group for group in groups() if group.group_id > last_id]:
        for group in fresh:
            await turn.give_way()
            wanted = TopicFilter.parse(group.filter)
            if topic.meets(wanted):
                readers.append(group)
        last_id = fresh[-1].group_id
    return readers
