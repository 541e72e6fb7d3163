"""The catalogue over a store, with a log that only notes what it is told."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dss_core.errors import (
    DssError,
    IllegalArgument,
    IllegalFilter,
    IllegalName,
    StreamNotFound,
    TopicExists,
    TopicNotFound,
    TopicsOverlap,
)
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId, StreamName
from dss_core.routing import Router
from dssd.store.memory import MemoryStore
from dssd.store.paging import scan_all
from dssd.store.port import Precondition, Put, Store, Write
from dssd.store.rows import StorageTopicRow, TopicNameRow, TopicRow
from dssd.store.sqlite import SqliteStore
from dssd.topics.catalogue import Catalogue, NewTopic, Topic
from support.noted_log import NotedLog


@pytest.fixture(params=["sqlite", "memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened: Store = MemoryStore()
    if request.param == "sqlite":
        opened = await SqliteStore.open(tmp_path / "store.sqlite")
    yield opened
    await opened.close()


@pytest.fixture
def log() -> NotedLog:
    return NotedLog()


@pytest.fixture
async def catalogue(store: Store, log: NotedLog) -> Catalogue:
    return await Catalogue.open(store, log, wall_ms=lambda: 1_700_000_000_000)


ORDERS = NewTopic("orders", partitions=12, factor=3)


async def test_a_created_topic_is_answered_from_memory(catalogue: Catalogue) -> None:
    topic = await catalogue.create(ORDERS)
    assert catalogue.get("orders") is topic
    assert catalogue.topics() == (topic,)
    assert [pattern.text for pattern in topic.patterns] == ["orders/#"]
    assert (topic.router, topic.durability) == (Router.BLOCK, "sync")
    assert topic.created_at_ms == 1_700_000_000_000
    assert (topic.producing.partitions, topic.producing.factor) == (12, 3)
    assert topic.producing.ends is None
    assert len(topic.streams()) == 12


async def test_a_topic_that_is_made_anew_has_an_epoch_that_none_ever_had(
    catalogue: Catalogue,
) -> None:
    epochs = []
    for _ in range(3):
        epochs.append((await catalogue.create(ORDERS)).topic_epoch)
        await catalogue.remove("orders")
    assert epochs == sorted(set(epochs))


async def test_topics_are_the_same_after_reopening(
    catalogue: Catalogue, store: Store, log: NotedLog
) -> None:
    await catalogue.create(ORDERS)
    await catalogue.create(
        NewTopic(
            "mail",
            partitions=7,
            router=Router.RANGE,
            patterns=("mail/in/#", "mail/out/+", "letters"),
            durability="os",
            retention_ms=1_000,
            retention_bytes=2_000,
        )
    )
    again = await Catalogue.open(store, log)
    assert again.topics() == catalogue.topics()
    assert [topic.name for topic in again.topics()] == ["mail", "orders"]


async def test_the_log_is_told_after_the_rows_are_committed(store: Store) -> None:
    class CheckingLog(NotedLog):
        def open_storage_topic(self, storage_topic_id: int, partitions: int) -> None:
            super().open_storage_topic(storage_topic_id, committed[-1])

    committed: list[int] = []
    log = CheckingLog()
    catalogue = await Catalogue.open(NotingStore(store, committed), log)
    topic = await catalogue.create(ORDERS)
    assert log.told == [("open", topic.producing.storage_topic_id, 3)]


class NotingStore:
    """A store that notes how many writes each commit had, once it is durable."""

    def __init__(self, inner: Store, committed: list[int]) -> None:
        self._inner = inner
        self._committed = committed
        self.scan = inner.scan
        self.read = inner.read
        self.watch = inner.watch
        self.next_id = inner.next_id
        self.last_id = inner.last_id
        self.close = inner.close

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        versions = await self._inner.commit(writes, preconditions)
        self._committed.append(len(writes))
        return versions


async def test_streams_are_found_by_name_and_by_id(catalogue: Catalogue) -> None:
    topic = await catalogue.create(ORDERS)
    stream = catalogue.id_of(StreamName("orders", 0, 11))
    assert stream == StreamId(topic.producing.storage_topic_id, 11)
    assert catalogue.name_of(stream) == StreamName("orders", 0, 11)
    assert catalogue.topic_of(stream) is topic


@pytest.mark.parametrize(
    "name",
    [
        StreamName("orders", 0, 12),
        StreamName("orders", 1, 0),
        StreamName("other", 0, 0),
        StreamName("orders", -1, 0),
        StreamName("orders", 0, -1),
    ],
)
async def test_a_stream_that_is_not_there_is_not_found(
    catalogue: Catalogue, name: StreamName
) -> None:
    await catalogue.create(ORDERS)
    with pytest.raises(StreamNotFound):
        catalogue.id_of(name)


async def test_an_id_that_is_not_there_is_not_found(catalogue: Catalogue) -> None:
    topic = await catalogue.create(ORDERS)
    for stream in (StreamId(999, 0), StreamId(topic.producing.storage_topic_id, 12)):
        with pytest.raises(StreamNotFound):
            catalogue.name_of(stream)
        with pytest.raises(StreamNotFound):
            catalogue.topic_of(stream)


async def test_a_filter_meets_the_topics_whose_patterns_share_a_subject(
    catalogue: Catalogue,
) -> None:
    await catalogue.create(ORDERS)
    await catalogue.create(NewTopic("mail", 1, patterns=("mail/in/+", "letters/#")))

    def meeting(text: str) -> list[str]:
        return [topic.name for topic in catalogue.meeting(TopicFilter.parse(text))]

    assert meeting("orders/eu/#") == ["orders"]
    assert meeting("orders") == ["orders"]
    assert meeting("+/in/x") == ["mail", "orders"]
    assert meeting("mail/out/x") == []
    assert meeting("#") == ["mail", "orders"]
    assert meeting("letters/a/b") == ["mail"]


TEXTS = ["a/#", "a/b", "+/b", "#", "b/+", "$sys/x", "+/#", "b", "/x", "c/#"]


@pytest.mark.parametrize("wanted", TEXTS)
async def test_who_meets_a_filter_is_found_whatever_patterns_begin_with(
    catalogue: Catalogue, wanted: str
) -> None:
    texts = (("a/b/#", "b/+"), ("+/d/e",), ("$sys/#",), ("/x",), ("c",))
    for number, patterns in enumerate(texts):
        await catalogue.create(NewTopic(f"t{number}", 1, patterns=patterns))
    asked = TopicFilter.parse(wanted)
    expected = [
        f"t{number}"
        for number, patterns in enumerate(texts)
        if any(TopicFilter.parse(pattern).overlaps(asked) for pattern in patterns)
    ]
    assert [topic.name for topic in catalogue.meeting(asked)] == expected
    await catalogue.remove("t0")
    without = [name for name in expected if name != "t0"]
    assert [topic.name for topic in catalogue.meeting(asked)] == without


@pytest.mark.usefixtures("short_turns")
async def test_two_topics_made_at_once_cannot_own_one_subject(catalogue: Catalogue) -> None:
    await catalogue.create(NewTopic("first", 1, patterns=("first/#", "+/first")))
    rivals = [NewTopic(f"t{number}", 1, patterns=("x/y",)) for number in range(3)]
    made = await asyncio.gather(*map(catalogue.create, rivals), return_exceptions=True)
    refused = [one for one in made if isinstance(one, TopicsOverlap)]
    assert len(refused) == len(rivals) - 1


async def test_a_taken_name_is_refused_or_accepted_as_it_is(
    catalogue: Catalogue, log: NotedLog
) -> None:
    topic = await catalogue.create(ORDERS)
    with pytest.raises(TopicExists):
        await catalogue.create(replace(ORDERS, patterns=("elsewhere",)))
    other = replace(ORDERS, partitions=5, factor=1, if_not_exists=True)
    assert await catalogue.create(other) is topic
    assert len(log.told) == 1


async def test_a_name_that_only_the_store_knows_is_taken(
    catalogue: Catalogue, store: Store
) -> None:
    await store.commit([Put(TopicNameRow("orders", 77))])
    with pytest.raises(TopicExists):
        await catalogue.create(ORDERS)
    assert catalogue.topics() == ()


@pytest.mark.parametrize(
    ("patterns", "ours", "theirs"),
    [
        (("orders/#",), "orders/#", "orders/#"),
        (("free", "orders/eu/+"), "orders/eu/+", "orders/#"),
        (("#",), "#", "orders/#"),
        (("+",), "+", "orders/#"),
    ],
)
async def test_patterns_that_share_a_subject_with_another_topic_are_refused(
    catalogue: Catalogue, patterns: tuple[str, ...], ours: str, theirs: str
) -> None:
    await catalogue.create(ORDERS)
    with pytest.raises(TopicsOverlap) as caught:
        await catalogue.create(NewTopic("new", 1, patterns=patterns))
    assert caught.value.fields == {"pattern": ours, "other": "orders", "other_pattern": theirs}


async def test_patterns_of_one_topic_may_overlap_and_are_kept_once(catalogue: Catalogue) -> None:
    topic = await catalogue.create(NewTopic("a", 1, patterns=("x/#", "x/+", "x/#")))
    assert [pattern.text for pattern in topic.patterns] == ["x/#", "x/+"]


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (NewTopic("no/slash", 1), IllegalName),
        (NewTopic("", 1), IllegalName),
        (NewTopic("a", 0), IllegalArgument),
        (NewTopic("a", 4_097), IllegalArgument),
        (NewTopic("a", 12, factor=5), IllegalArgument),
        (NewTopic("a", 12, factor=0), IllegalArgument),
        (NewTopic("a", 12, factor=-1), IllegalArgument),
        (NewTopic("a", 1, durability="later"), IllegalArgument),
        (NewTopic("a", 1, retention_ms=0), IllegalArgument),
        (NewTopic("a", 1, retention_bytes=-5), IllegalArgument),
        (NewTopic("a", 1, patterns=("a/#/b",)), IllegalFilter),
        (NewTopic("a", 1, patterns=("a\nb",)), IllegalFilter),
        (NewTopic("a", 1, patterns=("$share/g/a",)), IllegalFilter),
        (NewTopic("a", 1, patterns=("",)), IllegalFilter),
        (NewTopic("a", 1, patterns=tuple(f"a/{at}" for at in range(65))), IllegalArgument),
    ],
)
async def test_what_can_never_be_a_topic_is_refused_and_leaves_nothing(
    catalogue: Catalogue, store: Store, log: NotedLog, new: NewTopic, error: type[DssError]
) -> None:
    with pytest.raises(error):
        await catalogue.create(new)
    assert catalogue.topics() == ()
    assert await scan_all(store, TopicRow) == []
    assert log.told == []


async def test_of_concurrent_creations_that_overlap_one_wins(
    catalogue: Catalogue, store: Store
) -> None:
    several = [NewTopic(f"t{at}", 1, patterns=(f"shared/{at}", "shared/x")) for at in range(10)]
    outcomes = await asyncio.gather(
        *(catalogue.create(new) for new in several), return_exceptions=True
    )
    assert sum(isinstance(outcome, Topic) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, TopicsOverlap) for outcome in outcomes) == 9
    assert len(await scan_all(store, TopicRow)) == 1


async def test_a_removed_topic_leaves_no_row_and_its_files_are_removed(
    catalogue: Catalogue, store: Store, log: NotedLog
) -> None:
    topic = await catalogue.create(ORDERS)
    await catalogue.remove("orders")
    with pytest.raises(TopicNotFound):
        catalogue.get("orders")
    with pytest.raises(StreamNotFound):
        catalogue.name_of(topic.streams()[0])
    for kind in (TopicRow, TopicNameRow, StorageTopicRow):
        assert await scan_all(store, kind) == []
    assert log.told[-1] == ("remove", topic.producing.storage_topic_id, 0)


async def test_a_topic_made_again_has_new_ids(catalogue: Catalogue) -> None:
    first = await catalogue.create(ORDERS)
    await catalogue.remove("orders")
    second = await catalogue.create(ORDERS)
    assert second.topic_id > first.topic_id
    assert second.producing.storage_topic_id > first.producing.storage_topic_id


async def test_removing_what_is_not_there_is_an_error(catalogue: Catalogue) -> None:
    with pytest.raises(TopicNotFound):
        await catalogue.remove("orders")


async def test_watchers_are_told_of_changes_until_they_stop(catalogue: Catalogue) -> None:
    told: list[tuple[str, bool, bool]] = []

    def changed(topic: Topic, removed: bool) -> None:
        told.append((topic.name, removed, topic in catalogue.topics()))

    stop = catalogue.watch(changed)
    await catalogue.create(ORDERS)
    await catalogue.remove("orders")
    stop()
    stop()
    await catalogue.create(NewTopic("later", 1))
    assert told == [("orders", False, True), ("orders", True, False)]


async def test_a_creation_whose_caller_goes_away_is_finished(
    catalogue: Catalogue, store: Store, log: NotedLog
) -> None:
    creating = asyncio.ensure_future(catalogue.create(ORDERS))
    await asyncio.sleep(0)
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    known = [topic.name for topic in catalogue.topics()]
    assert known == [found.row.name for found in await scan_all(store, TopicRow)] == ["orders"]
    assert len(log.told) == 1
