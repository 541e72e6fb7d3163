"""The one commit of a switch: the ends of the old storage topic, the produce pointer, the epoch."""

from dataclasses import replace

from dss_core.errors import TopicNotFound
from dssd.store.port import PreconditionFailed, Put, Store, VersionIs
from dssd.store.rows import StorageTopicRow, TopicRow
from dssd.topics.model import Topic

SWITCH_ATTEMPTS_MAX = 100
"""A switch begins its commit again where retention or an edit wrote one of its rows meanwhile."""


async def commit_switch(store: Store, before: Topic, after: Topic) -> None:
    """Seal, move the pointer, raise the epoch: in one commit.

    Edits and retention change these rows too.

    Raises:
        TopicNotFound: it was removed.
        DiskFull: nothing has changed.
    """
    sealed = after.part(before.produce_ordinal)
    assert sealed is not None
    for _ in range(SWITCH_ATTEMPTS_MAX):
        key = (before.topic_id,)
        own = await store.read(TopicRow, key)
        old = await store.read(StorageTopicRow, (*key, sealed.ordinal))
        if own is None or old is None:
            raise TopicNotFound(topic=before.name)
        pointer = replace(
            own.row, produce_ordinal=after.produce_ordinal, topic_epoch=after.topic_epoch
        )
        ends = sealed.to_row(before.topic_id, [0] * sealed.partitions).ends
        new = after.producing
        writes = [
            Put(pointer),
            Put(replace(old.row, ends=ends)),
            Put(new.to_row(before.topic_id, [0] * new.partitions)),
        ]
        conditions = [
            VersionIs(TopicRow, key, own.version),
            VersionIs(StorageTopicRow, (*key, sealed.ordinal), old.version),
        ]
        try:
            await store.commit(writes, conditions)
        except PreconditionFailed:
            continue
        return
    raise AssertionError("the rows of a topic never stand still")
