"""Which streams of a topic come before which, for groups that keep the order of keys.

Storage topics follow each other: the streams of the next one take over the keys. Invariant: all
answers follow from the numbers of the storage topics alone. This module must not know what becomes
of records.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from dss_core.ids import StreamId
from dss_core.routing import Router, parents
from dssd.machines.leader.events import Parents
from dssd.store.rows import GroupRow
from dssd.topics.model import StorageTopic, Topic


def parts_with_parents(
    topic: Topic, group: GroupRow
) -> Iterator[tuple[StorageTopic, tuple[Parents, ...]]]:
    """The storage topics, and the parents of each of their streams, as the group has them."""
    before: StorageTopic | None = None
    for part in topic.storage_topics:
        yield part, _parents(group, topic.router, before, part)
        before = part


def _parents(
    group: GroupRow, router: Router, before: StorageTopic | None, part: StorageTopic
) -> tuple[Parents, ...]:
    if not group.ordered:
        return (None,) * part.partitions
    if before is None:
        return ((),) * part.partitions
    return tuple(
        tuple(
            StreamId(before.storage_topic_id, each) for each in _numbers(router, at, before, part)
        )
        for at in range(part.partitions)
    )


def _numbers(
    router: Router, partition: int, before: StorageTopic, part: StorageTopic
) -> tuple[int, ...]:
    old, new = (before.partitions, before.factor), (part.partitions, part.factor)
    return parents(router, partition, old=old, new=new)


def next_part(topic: Topic, part: StorageTopic) -> StorageTopic | None:
    """The one that follows it, if there is one."""
    return next((after for before, after in pairwise(topic.storage_topics) if before == part), None)


def children(topic: Topic, part: StorageTopic, partition: int, after: StorageTopic) -> list[int]:
    """The partitions of the next storage topic that may get keys of this one."""
    return [
        each
        for each in range(after.partitions)
        if partition in _numbers(topic.router, each, part, after)
    ]


def descendants(topic: Topic, streams: Iterable[StreamId]) -> set[StreamId]:
    """The streams of all later storage topics that may get keys of these streams."""
    found: set[StreamId] = set()
    from_ = set(streams)
    for part, after in pairwise(topic.storage_topics):
        of_part = from_.intersection(part.streams())
        found_after = {
            StreamId(after.storage_topic_id, each)
            for stream in of_part
            for each in children(topic, part, stream.partition, after)
        }
        found |= found_after
        from_ |= found_after
    return found
