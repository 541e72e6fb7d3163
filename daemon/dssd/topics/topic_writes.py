"""The writes that create and delete the rows of a topic, in one commit. Pure."""

from collections.abc import Sequence

from dssd.store.port import Delete, Put, Write
from dssd.store.rows import StorageTopicRow, TopicNameRow, TopicRow
from dssd.topics.model import StorageTopic, Topic


def puts(topic: Topic, parts: Sequence[StorageTopic]) -> list[Write]:
    """The rows of a topic, and of those of its storage topics that are new."""
    return [
        Put(topic.to_row()),
        Put(TopicNameRow(topic.name, topic.topic_id)),
        *(Put(part.to_row(topic.topic_id, [0] * part.partitions)) for part in parts),
    ]


def drops(before: Topic, after: Topic) -> list[Write]:
    """The deletes of the storage topics that a topic lost, and of the topic if it has none left."""
    if not after.storage_topics:
        return deletes(before)
    gone = [part for part in before.storage_topics if part not in after.storage_topics]
    deleted = [Delete(StorageTopicRow, (before.topic_id, part.ordinal)) for part in gone]
    return [Put(after.to_row()), *deleted] if gone else []


def deletes(topic: Topic) -> list[Write]:
    """What deletes all rows of a topic."""
    return [
        Delete(TopicRow, (topic.topic_id,)),
        Delete(TopicNameRow, (topic.name,)),
        *(Delete(StorageTopicRow, (topic.topic_id, each.ordinal)) for each in topic.storage_topics),
    ]
