"""Growth of topics by operations: what is told, what it leaves, and what a daemon left undone."""

import asyncio
from collections.abc import Sequence

import pytest

from dss_core.build import build_frame
from dss_core.changes import (
    AddStorageTopic,
    CancelJob,
    CreateJob,
    Direction,
    GrowTopic,
    ImportOffsets,
    JobInput,
    MoveCursors,
    RemoveTopic,
    SourceRange,
    StreamOffsets,
    SwitchTopic,
    ToEarliest,
    ToLatest,
    Undo,
)
from dss_core.columns import Columns
from dss_core.errors import (
    DiskFull,
    NothingToSwitchTo,
    NotUndoable,
    OperationInProgress,
    ProducerForgotten,
    StorageTopicSealed,
    StorageTopicWaits,
    StreamNotRead,
    TopicWrittenByJobs,
)
from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId
from dss_core.producer_ids import new_producer_id
from dss_core.progress import Progress
from dssd.jobs.model import ChunkInput
from dssd.leaders.declarations import AskedRetries
from dssd.log.port import Append, Appended
from dssd.machines.start_point import Earliest
from dssd.store.job_rows import ChunkRow
from dssd.store.port import Precondition, Put, Write
from dssd.store.rows import StorageTopicRow
from dssd.topics.catalogue import Topic
from support.operated_groups import ANA, Works


def orders(works: Works) -> Topic:
    return works.plant.catalogue.get("orders")


async def appended(works: Works, stream: StreamId, producer_id: bytes, sequence: int) -> object:
    columns = Columns([b"x"], None, "orders", None, 1)
    frame = build_frame(
        columns, partition=stream.partition, producer_id=producer_id, sequence=sequence
    )
    (result,) = await works.plant.log.append([Append(stream, frame, orders(works).topic_epoch)])
    return result


async def test_a_topic_grows_and_its_groups_read_old_and_new_streams(works: Works) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 3)
    await works.plant.group("$share/billing/orders/#", Earliest())
    await works.consumed("billing", 3)
    before = orders(works)
    plan = await works.operations.plan(GrowTopic("orders", 3))
    assert (plan.kind, plan.summary) == (
        "topics.grow",
        "grow orders to orders/1 of 3 partitions",
    )
    assert plan.effects[-2] == "Each group that reads it has 3 streams more: billing@orders/#."
    assert plan.effects[-1].endswith("within a storage topic, and not across the switch.")
    row = await works.apply(plan.change, if_revision=plan.revision)
    after = orders(works)
    assert (row.state, after.produce_ordinal, after.revision) == ("done", 1, before.revision + 1)
    assert [(part.partitions, part.factor, part.ends) for part in after.storage_topics] == [
        (1, 1, (3,)),
        (3, 3, None),
    ]
    assert after.topic_epoch == after.producing.storage_topic_id
    live = works.plant.registry.snapshot(works.plant.groups.find("billing").group_id)
    assert live is not None
    assert {each.stream for each in live.streams} == set(after.streams())
    with pytest.raises(NotUndoable):
        await works.operations.plan(Undo(row.number))


async def test_the_plan_says_what_becomes_of_what_failed(works: Works) -> None:
    await works.plant.topic("orders", 1)
    await works.plant.group("$share/plain/orders/#", Earliest())
    queued = SubscriptionFilter.parse("$share/billing/orders/#")
    await works.plant.groups.declare(queued, start=Earliest(), retries=AskedRetries(3))
    grow = await works.operations.plan(GrowTopic("orders", 3))
    assert grow.effects[-2].startswith("Records that failed in orders/0 stay with it: ")
    assert grow.effects[-2].endswith(
        "orders/1 has queues of its own. This applies to billing@orders/#."
    )
    assert "orders/0 is kept while dead letters lie there" in grow.effects[-1]
    add = await works.operations.plan(AddStorageTopic("orders", 3))
    assert not any("failed" in effect for effect in add.effects)


async def test_no_record_of_a_new_storage_topic_is_older_than_the_switch(works: Works) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 1)
    old = new_producer_id(works.plant.log.producers_begin_us(stream.storage_topic_id))
    await works.apply(GrowTopic("orders", 2))
    new = orders(works).producing
    first = new.streams()[0]
    assert isinstance(await appended(works, stream, old, 0), StorageTopicSealed)
    assert isinstance(await appended(works, first, old, 0), ProducerForgotten)
    begun = new_producer_id(works.plant.log.producers_begin_us(new.storage_topic_id))
    stored = await appended(works, first, begun, 0)
    assert isinstance(stored, Appended)
    assert stored.append_time_us >= new.begins_us > 0
    await works.restart()
    assert isinstance(await appended(works, first, old, 1), ProducerForgotten)


async def test_an_added_storage_topic_waits_and_can_be_taken_back(works: Works) -> None:
    await works.plant.topic("orders", 2)
    await works.plant.group("$share/billing/orders/#", Earliest())
    added = await works.apply(AddStorageTopic("orders", 4))
    grown = orders(works)
    assert (grown.produce_ordinal, len(grown.storage_topics), added.state) == (0, 2, "done")
    with pytest.raises(StorageTopicWaits):
        await works.operations.plan(GrowTopic("orders", 8))
    undone = await works.apply(Undo(added.number))
    assert undone.state == "done"
    assert len(orders(works).storage_topics) == 1
    assert len(await works.plant.store.scan(StorageTopicRow)) == 1
    with pytest.raises(NothingToSwitchTo):
        await works.operations.plan(SwitchTopic("orders"))
    assert await works.floors("billing") == [0, 0]


async def test_what_was_switched_to_is_not_taken_back(works: Works) -> None:
    await works.plant.topic("orders", 2)
    added = await works.apply(AddStorageTopic("orders", 4))
    later = await works.apply(AddStorageTopic("orders", 8))
    with pytest.raises(NotUndoable, match="another storage topic was added behind it"):
        await works.operations.plan(Undo(added.number))
    await works.apply(SwitchTopic("orders"))
    with pytest.raises(NotUndoable, match="the topic was switched to it"):
        await works.operations.plan(Undo(added.number))
    await works.apply(SwitchTopic("orders"))
    assert orders(works).produce_ordinal == 2
    await works.apply(RemoveTopic("orders"))
    with pytest.raises(NotUndoable, match="its topic was removed"):
        await works.operations.plan(Undo(later.number))


async def test_a_growth_that_a_daemon_left_undone_is_done_by_the_next(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.plant.topic("orders", 2)

    async def wait(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(works.plant.catalogue, "switch", wait)
    row = await works.operations.apply(GrowTopic("orders", 4), caller=ANA)
    await works.until(lambda: len(orders(works).storage_topics) == 2)
    await works.restart()
    assert (await works.ended(row.number)).state == "done"
    assert (orders(works).produce_ordinal, len(orders(works).storage_topics)) == (1, 2)


async def test_no_job_is_aimed_at_a_topic_that_is_about_to_be_switched(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.plant.topic("orders", 2)
    goes_on, switch = asyncio.Event(), works.plant.catalogue.switch

    async def late(topic_id: int, ordinal: int) -> None:
        await goes_on.wait()
        await switch(topic_id, ordinal)

    monkeypatch.setattr(works.plant.catalogue, "switch", late)
    row = await works.operations.apply(GrowTopic("orders", 4), caller=ANA)
    copy = CreateJob("copy", "backfill", target="orders", inputs=(JobInput("a file"),))
    with pytest.raises(OperationInProgress, match="grow"):
        await works.operations.apply(copy, caller=ANA)
    goes_on.set()
    assert (await works.ended(row.number)).state == "done"
    await works.apply(copy)
    with pytest.raises(TopicWrittenByJobs, match="copy"):
        await works.operations.plan(GrowTopic("orders", 8))
    await works.apply(CancelJob("copy"))
    assert (await works.apply(GrowTopic("orders", 8))).state == "done"


async def test_what_comes_while_a_switch_meets_a_full_disk_is_stored_as_before(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.apply(AddStorageTopic("orders", 2))
    commit, held = works.plant.store.commit, asyncio.Event()
    refusals = [DiskFull()]

    async def full(writes: Sequence[Write], conditions: Sequence[Precondition] = ()) -> list[int]:
        of = [each.row for each in writes if isinstance(each, Put)]
        if refusals and any(isinstance(row, StorageTopicRow) and row.ends for row in of):
            await held.wait()
            raise refusals.pop()
        return await commit(writes, conditions)

    monkeypatch.setattr(works.plant.store, "commit", full)
    row = await works.operations.apply(SwitchTopic("orders"), caller=ANA)
    producer = new_producer_id(works.plant.log.producers_begin_us(stream.storage_topic_id))
    sending = asyncio.ensure_future(appended(works, stream, producer, 0))
    await works.until(lambda: works.plant.log.bounds(stream).end == 0)
    held.set()
    assert isinstance(await sending, Appended)
    assert (await works.ended(row.number)).state == "done"
    assert orders(works).storage_topics[0].ends == (1,)


async def test_a_switch_that_finds_no_room_for_long_has_failed_and_the_topic_takes_records(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    [stream] = await works.plant.topic("orders", 1)
    monkeypatch.setattr("dssd.operations.kinds.full_disk.FULL_DISK_RETRY_S", 0)
    monkeypatch.setattr("dssd.operations.kinds.full_disk.FULL_DISK_WAIT_MS_MAX", 20)

    async def full(*_: object) -> None:
        raise DiskFull()

    producer = new_producer_id(works.plant.log.producers_begin_us(stream.storage_topic_id))
    with monkeypatch.context() as disk:
        disk.setattr("dssd.topics.catalogue.commit_switch", full)
        row = await works.apply(GrowTopic("orders", 2))
        assert (row.state, row.failure.split(":")[0]) == ("failed", "The topic orders did not grow")
        assert isinstance(await appended(works, stream, producer, 0), Appended)
        assert [part.ends for part in orders(works).storage_topics] == [None, None]
    assert (await works.apply(SwitchTopic("orders"))).state == "done"
    assert isinstance(await appended(works, stream, producer, 1), StorageTopicSealed)
    assert "was switched to it" in await works.operations.undo_refusal(row.number)


async def test_a_growth_that_failed_before_its_switch_can_be_taken_back(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.plant.topic("orders", 1)
    done = await works.apply(GrowTopic("orders", 2))
    assert done.not_undoable_because

    async def fail(*_: object) -> None:
        raise TopicWrittenByJobs(topic="orders", jobs="7")

    with monkeypatch.context() as broken:
        broken.setattr(works.plant.catalogue, "switch", fail)
        failed = await works.apply(GrowTopic("orders", 4))
    assert (failed.state, failed.not_undoable_because) == ("failed", "")
    await works.restart()
    assert (await works.apply(Undo(failed.number))).state == "done"
    assert [part.ordinal for part in orders(works).storage_topics] == [0, 1]
    with monkeypatch.context() as broken:
        broken.setattr(works.plant.catalogue, "add_storage_topic", fail)
        empty = await works.apply(GrowTopic("orders", 4))
    assert "lies where it was switched to" in await works.operations.undo_refusal(empty.number)


async def test_what_a_growth_under_way_stands_against_is_refused_by_its_number(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.plant.topic("orders", 2)
    goes_on, switch = asyncio.Event(), works.plant.catalogue.switch

    async def late(topic_id: int, ordinal: int) -> None:
        await goes_on.wait()
        await switch(topic_id, ordinal)

    monkeypatch.setattr(works.plant.catalogue, "switch", late)
    row = await works.operations.apply(GrowTopic("orders", 4), caller=ANA)
    await works.until(lambda: len(orders(works).storage_topics) == 2)
    for beside in (GrowTopic("orders", 8), AddStorageTopic("orders", 4), SwitchTopic("orders")):
        with pytest.raises(OperationInProgress, match=f"Operation {row.number}") as refused:
            await works.operations.apply(beside, caller=ANA)
        assert f"dssctl ops wait {row.number}" in refused.value.hint_text
    with pytest.raises(OperationInProgress):
        await works.operations.plan(GrowTopic("orders", 8))
    goes_on.set()
    assert (await works.ended(row.number)).state == "done"


async def test_a_job_reads_older_storage_topics_first_however_its_ranges_come(
    works: Works,
) -> None:
    await works.plant.topic("orders", 2)
    for partitions in (3, 1):
        for stream in orders(works).producing.streams():
            await works.plant.publish(stream, 2)
        assert (await works.apply(GrowTopic("orders", partitions))).state == "done"
    ranges = [
        SourceRange(str(works.plant.catalogue.name_of(stream)), *stream, 0, 2)
        for part in orders(works).storage_topics[:2]
        for stream in part.streams()
    ]
    mixed = (ranges[4], ranges[1], ranges[2], ranges[0], ranges[3])
    await works.apply(CreateJob("audit", "audit", source="orders", ranges=mixed))
    found = await works.plant.store.scan(ChunkRow)
    read = [ChunkInput.from_json(each.row.input).ranges for each in found]
    assert read == [tuple(ranges[:2]), tuple(ranges[2:])]


async def test_a_plan_to_rewind_says_how_far_the_order_of_keys_goes(works: Works) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 3)
    await works.plant.group("$share/billing/orders/#", Earliest())
    skip = MoveCursors("billing", Direction.SKIP, to=ToLatest())
    rewind = MoveCursors("billing", Direction.REWIND, to=ToEarliest())
    await works.apply(skip)
    said = "records of a key come in order"
    assert (await works.operations.plan(rewind)).effects[0].endswith(f"{said}.")
    await works.apply(GrowTopic("orders", 2))
    assert (await works.operations.plan(rewind)).effects[0].endswith(f"{said}.")
    await works.plant.publish(orders(works).producing.streams()[0], 1)
    await works.apply(skip)
    effects = (await works.operations.plan(rewind)).effects
    assert effects[0].endswith(f"{said} within each storage topic.")


async def test_offsets_of_storage_topics_that_went_are_passed_over_by_an_import_that_says_so(
    works: Works,
) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 3)
    await works.plant.group("$share/billing/orders/#", Earliest())
    await works.apply(GrowTopic("orders", 2))
    second, _ = orders(works).producing.streams()
    await works.plant.publish(second, 4)
    await works.apply(GrowTopic("orders", 1))
    await works.plant.catalogue.drop_storage_topics(orders(works).topic_id, [0])
    exported = (
        StreamOffsets("orders", 0, 0, 1, Progress(2), 3),
        StreamOffsets("orders", 1, 0, 2, Progress(3), 4),
    )
    plan = await works.operations.plan(ImportOffsets("billing", exported))
    assert [(each.stream, each.passed) for each in plan.streams] == [("orders/1/0", 3)]
    assert plan.effects[1:] == (
        "orders/0/0 went with retention, and has no record that could come again.",
        "orders/1/1, orders/2/0 stay where they are: the import does not name them.",
    )
    unread = StreamOffsets("payments", 0, 0, 1, Progress(2), 3)
    with pytest.raises(StreamNotRead):
        await works.operations.plan(ImportOffsets("billing", (unread,)))
