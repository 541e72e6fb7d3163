"""Growth of topics: the shape of the next storage topic, and the effect of a switch. Pure.

::

    orders/0: P 2, K 1 ──add──► orders/1: P 10, K 5, waits ──switch──► 0 sealed, 1 takes records

With B = P / K of the last storage topic, the next one has K' = P' / B where B divides P', else 1:
so under the block router a key keeps its block of partitions (seed 002). Invariant: the produce
pointer moves by one, and never back; a sealed storage topic never takes another record.
"""

from collections.abc import Sequence
from dataclasses import replace

from dss_core.errors import (
    GrowthOfNoUse,
    IllegalArgument,
    NothingToSwitchTo,
    StorageTopicWaits,
    TopicFullyGrown,
)
from dss_core.limits import PARTITIONS_MAX, STORAGE_TOPICS_MAX
from dss_core.routing import key_hash, partition_of
from dssd.topics.model import StorageTopic, Topic

KEYS_SAMPLED = 1_024
"""Sample size for estimating the share of keys that change their partition, to about three in a
hundred. More keys would block the event loop for over 2 ms."""


def next_part(topic: Topic, partitions: int, storage_topic_id: int = 0) -> StorageTopic:
    """The storage topic that follows the last one of a topic.

    Raises:
        IllegalArgument: no topic has so many partitions.
        TopicFullyGrown: it has as many storage topics as one can have.
        GrowthOfNoUse: it would route every key as the last one does.
    """
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise IllegalArgument(argument="partitions", rule=f"1 to {PARTITIONS_MAX:,}")
    last = topic.storage_topics[-1]
    if len(topic.storage_topics) >= STORAGE_TOPICS_MAX:
        raise TopicFullyGrown(topic=topic.name, limit=STORAGE_TOPICS_MAX)
    factor = partitions // last.base if partitions % last.base == 0 else 1
    if (partitions, factor) == (last.partitions, last.factor):
        raise GrowthOfNoUse(topic=topic.name, partitions=f"{partitions} partitions")
    return StorageTopic(storage_topic_id, last.ordinal + 1, partitions, factor, ends=None)


def refuse_waiting(topic: Topic) -> None:
    """Refuse to add a storage topic while another one waits to take over.

    Raises:
        StorageTopicWaits: there is one.
    """
    for waiting in topic.waiting[:1]:
        raise StorageTopicWaits(
            topic=topic.name, ordinal=waiting.ordinal, partitions=waiting.partitions
        )


def taking_over(topic: Topic) -> StorageTopic:
    """The storage topic that a switch selects.

    Raises:
        NothingToSwitchTo: there is none.
    """
    if not topic.waiting:
        raise NothingToSwitchTo(topic=topic.name, ordinal=topic.produce_ordinal)
    return topic.waiting[0]


def switched(topic: Topic, ends: Sequence[int], begins_us: int) -> Topic:
    """The topic after a switch: the next storage topic takes records, the old one has these
    ends."""
    old, new = topic.producing, taking_over(topic)
    changed = {
        old.ordinal: replace(old, ends=tuple(ends)),
        new.ordinal: replace(new, begins_us=begins_us),
    }
    return replace(
        topic,
        produce_ordinal=new.ordinal,
        topic_epoch=new.storage_topic_id,
        storage_topics=tuple(changed.get(one.ordinal, one) for one in topic.storage_topics),
    )


def moved_share(topic: Topic, old: StorageTopic, new: StorageTopic) -> float:
    """The estimated share of keys that get another partition number in the new storage topic."""
    moved = 0
    for number in range(KEYS_SAMPLED):
        hashed = key_hash(str(number).encode())
        before = partition_of(topic.router, hashed, old.partitions, old.factor)
        moved += before != partition_of(topic.router, hashed, new.partitions, new.factor)
    return moved / KEYS_SAMPLED
