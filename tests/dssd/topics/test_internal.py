"""Internal topics in the catalogue, over a store, with a log that only notes what it is told."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dss_core.errors import GroupNotFound, InternalTopic, TopicNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId, StreamName
from dss_core.lane import DEAD, RETRY
from dssd.store.memory import MemoryStore
from dssd.store.paging import scan_all
from dssd.store.port import Delete, Precondition, Put, Write
from dssd.store.rows import GroupRow, StorageTopicRow, TopicNameRow, TopicRow
from dssd.topics.catalogue import Catalogue, NewTopic, Topic
from support.noted_log import NotedLog

ORDERS = NewTopic("orders", partitions=4, factor=2, durability="os", retention_ms=1_000)
BILLING, AUDIT = 501, 502


def group_row(group_id: int) -> Write:
    return Put(
        GroupRow(group_id, f"g{group_id}", "#", "shared", "now", None, 30_000, 0, 0, max_deliver=3)
    )


class CountingStore(MemoryStore):
    """Counts its commits."""

    commits = 0

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        self.commits += 1
        return await super().commit(writes, preconditions)


@pytest.fixture
async def store() -> CountingStore:
    store = CountingStore()
    await store.commit([group_row(BILLING), group_row(AUDIT)])
    return store


@pytest.fixture
def log() -> NotedLog:
    return NotedLog()


@pytest.fixture
async def catalogue(store: MemoryStore, log: NotedLog) -> Catalogue:
    return await Catalogue.open(store, log, wall_ms=lambda: 1_700_000_000_000)


def written(catalogue: Catalogue) -> list[str]:
    return sorted(each.name for each in catalogue.internal_topics())


async def test_each_stream_has_queues_of_its_own_number_in_the_group_alone(
    catalogue: Catalogue, log: NotedLog
) -> None:
    topic = await catalogue.create(ORDERS)
    await catalogue.make_queues(BILLING, topic)
    retry, dead = sorted(catalogue.internal_topics(), key=lambda each: each.level)
    assert (retry.level, dead.level) == (RETRY, DEAD)
    for stream in topic.streams():
        assert catalogue.queues_of(BILLING, stream) == (
            StreamId(retry.producing.storage_topic_id, stream.partition),
            StreamId(dead.producing.storage_topic_id, stream.partition),
        )
        assert catalogue.queues_of(AUDIT, stream) is None
    for each in (retry, dead):
        assert (each.group_id, each.main_topic_id) == (BILLING, topic.topic_id)
        assert (each.durability, each.retention_ms, each.patterns) == ("sync", None, ())
        assert (each.producing.partitions, each.producing.factor) == (4, 2)
        assert ("open", each.producing.storage_topic_id, 4) in log.told
    assert catalogue.queues_of(BILLING, StreamId(999, 0)) is None
    assert catalogue.queues_of(BILLING, retry.streams()[0]) is None


async def test_queues_are_made_once_and_known_after_a_restart(
    catalogue: Catalogue, store: MemoryStore, log: NotedLog
) -> None:
    topic = await catalogue.create(ORDERS)
    await catalogue.make_queues(BILLING, topic)
    made, rows = catalogue.internal_topics(), await scan_all(store, TopicRow)
    await catalogue.make_queues(BILLING, topic)
    assert catalogue.internal_topics() == made
    assert await scan_all(store, TopicRow) == rows
    reopened = await Catalogue.open(store, log)
    assert reopened.internal_topics() == made
    assert reopened.topics() == (topic,)
    streams = topic.streams()
    assert [reopened.queues_of(BILLING, stream) for stream in streams] == [
        catalogue.queues_of(BILLING, stream) for stream in streams
    ]


async def test_a_topic_that_has_more_storage_topics_gets_their_queues_and_keeps_the_others(
    catalogue: Catalogue, store: MemoryStore, log: NotedLog
) -> None:
    topic = await catalogue.create(ORDERS)
    await catalogue.make_queues(BILLING, topic)
    before = {each.name: each.storage_topics[0] for each in catalogue.internal_topics()}
    for found in await scan_all(store, StorageTopicRow):
        await store.commit([Put(replace(found.row, starts="7,7,7,7"))])  # as trims leave it
    await store.commit([Put(StorageTopicRow(topic.topic_id, 1, 900, 6, 1, None, "0,0,0,0,0,0"))])
    grown = await Catalogue.open(store, log)
    main = grown.get("orders")
    assert grown.queues_of(BILLING, StreamId(900, 5)) is None
    await grown.make_queues(BILLING, main)
    queues = grown.queues_of(BILLING, StreamId(900, 5))
    assert queues is not None
    assert [grown.name_of(queue).ordinal for queue in queues] == [1, 1]
    for each in grown.internal_topics():
        assert each.storage_topics[0] == before[each.name]
        assert [part.partitions for part in each.storage_topics] == [4, 6]
        row = await store.read(StorageTopicRow, (each.topic_id, 0))
        assert row is not None
        assert row.row.starts == "7,7,7,7"
    assert (await Catalogue.open(store, log)).internal_topics() == grown.internal_topics()


async def test_a_storage_topic_that_goes_takes_its_queues_along_and_leaves_the_ordinals(
    catalogue: Catalogue, store: MemoryStore, log: NotedLog
) -> None:
    topic = await catalogue.create(ORDERS)
    await catalogue.make_queues(BILLING, topic)
    for ordinal, partitions in ((1, 6), (2, 8)):
        await catalogue.add_storage_topic(topic.topic_id, ordinal, partitions)
        await catalogue.switch(topic.topic_id, ordinal)
    await catalogue.make_queues(BILLING, catalogue.get("orders"))
    told: list[tuple[str, int, bool]] = []
    catalogue.watch(
        lambda each, removed: told.append((each.name, len(each.storage_topics), removed)),
        internal=True,
    )
    first = [each.storage_topics[0] for each in catalogue.internal_topics()]
    await catalogue.drop_storage_topics(topic.topic_id, [0])
    every = ["orders", *(each.name for each in catalogue.internal_topics())]
    assert told == [(name, kept, gone) for name in every for kept, gone in ((1, True), (2, False))]
    for part in first:
        assert ("remove", part.storage_topic_id, 0) in log.told
    reopened = await Catalogue.open(store, log)
    for known in (catalogue, reopened):
        main = known.get("orders")
        assert [part.ordinal for part in main.storage_topics] == [1, 2]
        for part in main.storage_topics:
            found = known.queues_of(BILLING, part.streams()[5])
            assert found is not None
            assert [known.name_of(one).ordinal for one in found] == [part.ordinal] * 2
    await reopened.add_storage_topic(topic.topic_id, 3, 4)
    await reopened.make_queues(BILLING, reopened.get("orders"))
    [newest] = reopened.get("orders").waiting
    assert reopened.queues_of(BILLING, newest.streams()[3]) is not None
    assert reopened.queues_of(AUDIT, newest.streams()[3]) is None


async def test_queues_of_a_storage_topic_that_was_taken_back_fit_the_next_of_its_number(
    catalogue: Catalogue, store: MemoryStore
) -> None:
    topic = await catalogue.create(ORDERS)
    for partitions in (6, 8):
        await catalogue.add_storage_topic(topic.topic_id, 1, partitions)
        await catalogue.make_queues(BILLING, catalogue.get("orders"))
        assert [each.storage_topics[1].partitions for each in catalogue.internal_topics()] == [
            partitions
        ] * 2
        await catalogue.drop_storage_topics(topic.topic_id, [1])
        assert [each.produce_ordinal for each in catalogue.internal_topics()] == [0, 0]
    assert len(await scan_all(store, StorageTopicRow)) == 3


async def test_no_list_no_name_and_no_filter_gives_an_internal_topic(catalogue: Catalogue) -> None:
    told: list[Topic] = []
    catalogue.watch(lambda topic, _: told.append(topic))
    topic = await catalogue.create(ORDERS)
    await catalogue.make_queues(BILLING, topic)
    assert catalogue.topics() == (topic,)
    for wanted in ("#", "+", "+/#", "~retry/#"):
        assert set(catalogue.meeting(TopicFilter.parse(wanted))) <= {topic}
    for name in written(catalogue):
        assert catalogue.find(name) is None
        with pytest.raises(InternalTopic):
            catalogue.get(name)
        with pytest.raises(InternalTopic):
            catalogue.id_of(StreamName.parse(f"{name}/0/0"))
        with pytest.raises(InternalTopic):
            await catalogue.remove(name)
    await catalogue.remove_queues(BILLING)
    assert told == [topic]


async def test_who_asks_is_told_of_internal_topics(catalogue: Catalogue) -> None:
    told: list[tuple[str, bool]] = []
    catalogue.watch(lambda topic, removed: told.append((topic.name, removed)), internal=True)
    topic = await catalogue.create(ORDERS)
    await catalogue.make_queues(BILLING, topic)
    names = written(catalogue)
    await catalogue.remove_queues(BILLING)
    assert told[0] == ("orders", False)
    assert sorted(told[1:3]) == [(name, False) for name in names]
    assert sorted(told[3:]) == [(name, True) for name in names]


async def test_a_topic_takes_its_queues_along_in_one_commit(
    catalogue: Catalogue, store: CountingStore, log: NotedLog
) -> None:
    topic = await catalogue.create(ORDERS)
    other = await catalogue.create(NewTopic("other", 1))
    for group_id in (BILLING, AUDIT):
        await catalogue.make_queues(group_id, topic)
    await catalogue.make_queues(AUDIT, other)
    gone = [each for each in catalogue.internal_topics() if each.main_topic_id == topic.topic_id]
    committed = store.commits
    await catalogue.remove("orders")
    assert store.commits == committed + 1
    assert {each.main_topic_id for each in catalogue.internal_topics()} == {other.topic_id}
    assert len(await scan_all(store, TopicRow)) == len(await scan_all(store, TopicNameRow)) == 3
    for each in gone:
        assert ("remove", each.producing.storage_topic_id, 0) in log.told


async def test_a_group_takes_its_queues_along_and_nobody_elses(catalogue: Catalogue) -> None:
    topic = await catalogue.create(ORDERS)
    for group_id in (BILLING, AUDIT):
        await catalogue.make_queues(group_id, topic)
    await catalogue.remove_queues(BILLING)
    await catalogue.remove_queues(BILLING)
    assert {each.group_id for each in catalogue.internal_topics()} == {AUDIT}
    assert catalogue.queues_of(BILLING, topic.streams()[0]) is None


async def test_no_queues_are_made_for_what_is_gone(
    catalogue: Catalogue, store: MemoryStore
) -> None:
    topic = await catalogue.create(ORDERS)
    await store.commit([Delete(GroupRow, (BILLING,))])
    with pytest.raises(GroupNotFound):
        await catalogue.make_queues(BILLING, topic)
    await catalogue.remove("orders")
    again = await catalogue.create(ORDERS)
    with pytest.raises(TopicNotFound):
        await catalogue.make_queues(AUDIT, topic)
    assert catalogue.internal_topics() == ()
    assert catalogue.topics() == (again,)


async def test_queues_whose_group_or_topic_is_gone_are_collected(
    catalogue: Catalogue, store: MemoryStore, log: NotedLog
) -> None:
    topic = await catalogue.create(ORDERS)
    for group_id in (BILLING, AUDIT):
        await catalogue.make_queues(group_id, topic)
    await catalogue.remove_lost_queues({AUDIT}.__contains__)
    assert {each.group_id for each in catalogue.internal_topics()} == {AUDIT}
    await store.commit(
        [
            Delete(TopicRow, (topic.topic_id,)),
            Delete(TopicNameRow, ("orders",)),
            Delete(StorageTopicRow, (topic.topic_id, 0)),
        ]
    )
    reopened = await Catalogue.open(store, log)
    await reopened.remove_lost_queues({AUDIT}.__contains__)
    assert reopened.internal_topics() == ()
    assert await scan_all(store, StorageTopicRow) == []


async def test_a_user_cannot_make_a_topic_of_such_a_name(catalogue: Catalogue) -> None:
    topic = await catalogue.create(ORDERS)
    await catalogue.make_queues(BILLING, topic)
    for name in written(catalogue):
        with pytest.raises(InternalTopic):
            await catalogue.create(NewTopic(name, 1))
