"""Edits of groups and topics: each field alone, in force at once, taken back alone."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from dss_core.changes import Change, EditGroup, EditTopic, RemoveTopic, Undo
from dss_core.errors import (
    DiskFull,
    IllegalArgument,
    NotUndoable,
    OperationInProgress,
    QueuesNotEmpty,
    RevisionMoved,
    TopicNotFound,
    VersionMoved,
)
from dss_core.filters import SubscriptionFilter
from dssd.leaders.declarations import AskedRetries
from dssd.machines.start_point import Earliest
from dssd.store.rows import GroupRow, TopicRow
from dssd.topics.catalogue import NewTopic
from support.operated_groups import ANA, Works

WAIT_MS = 30_000


async def group_row(works: Works) -> GroupRow:
    found = await works.plant.store.read(GroupRow, (works.plant.groups.find("billing").group_id,))
    assert found is not None
    return found.row


async def topic_row(works: Works) -> TopicRow:
    [found] = await works.plant.store.scan(TopicRow)
    assert works.plant.catalogue.get("orders").to_row() == found.row
    return found.row


async def test_an_edit_of_a_group_changes_what_it_names_and_is_taken_back(works: Works) -> None:
    before = await works.plant.group("$share/billing/orders/#")
    plan = await works.operations.plan(EditGroup("billing", ack_wait_ms=5_000))
    assert (plan.kind, plan.summary) == (
        "groups.edit",
        "edit billing@orders/#: ack-wait from 30s to 5s",
    )
    edit = await works.apply(plan.change, if_revision=plan.revision)
    assert (edit.state, edit.revision) == ("done", 1)
    assert (json.loads(edit.before), json.loads(edit.after)) == (
        {"ack_wait_ms": WAIT_MS},
        {"ack_wait_ms": 5_000},
    )
    edited = await group_row(works)
    assert (edited.ack_wait_ms, edited.on_damage, edited.revision) == (5_000, "pass", 1)
    assert works.plant.groups.find("billing") == edited
    undo = await works.apply(Undo(edit.number))
    assert (undo.kind, undo.state) == ("groups.edit.undo", "done")
    back = await group_row(works)
    assert (back.ack_wait_ms, back.revision) == (before.ack_wait_ms, 2)
    await works.restart()
    assert works.plant.groups.find("billing") == back
    redo = await works.apply(Undo(undo.number))
    assert (await group_row(works)).ack_wait_ms == 5_000
    assert redo.kind == "groups.edit.redo"


async def test_a_plan_writes_values_as_options_take_them(works: Works) -> None:
    await works.plant.topic("orders", 1)
    await laned(works)
    change = EditGroup("billing", max_deliver=0)
    assert (await works.operations.plan(change)).summary == (
        "edit billing@orders/#: max-deliver from 5 to 0, backoff from 1s,5s to none, "
        "queue-records from 1,000,000 to none, queue-bytes from 4G to none"
    )
    topic = EditTopic("orders", retention_ms=5_400_001, retention_bytes=(3 << 20) + 1)
    assert (await works.operations.plan(topic)).summary == (
        "edit orders: retention from none to 5400001ms, retention-bytes from none to 3,145,729B"
    )


async def test_members_are_named_and_a_shorter_wait_is_said_to_bring_records_again(
    works: Works,
) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 4)
    await works.plant.group("$share/billing/orders/#", Earliest())
    await works.consumed("billing", 2)
    plan = await works.operations.plan(EditGroup("billing", 1_000, "stall"))
    assert plan.members == ("ann",)
    assert [effect.split(" ", 3)[:3] for effect in plan.effects] == [
        ["The", "ack", "wait"],
        ["Records", "that", "members"],
        ["A", "stream", "with"],
    ]


async def test_an_edit_is_not_taken_back_over_a_later_one_of_the_same_field(works: Works) -> None:
    await works.plant.group("$share/billing/orders/#")
    first = await works.apply(EditGroup("billing", ack_wait_ms=1_000))
    other = await works.apply(EditGroup("billing", on_damage="stall"))
    later = await works.apply(EditGroup("billing", ack_wait_ms=2_000))
    with pytest.raises(NotUndoable, match=f"operation {later.number} changed ack-wait"):
        await works.operations.plan(Undo(first.number))
    await works.apply(Undo(other.number))
    assert (await group_row(works)).on_damage == "pass"
    taken_back = await works.apply(Undo(later.number))
    redone = await works.apply(Undo(taken_back.number))
    with pytest.raises(NotUndoable, match=f"operation {later.number} changed ack-wait"):
        await works.operations.plan(Undo(first.number))
    await works.apply(Undo(redone.number))
    await works.apply(Undo(first.number))
    assert (await group_row(works)).ack_wait_ms == WAIT_MS


@pytest.mark.parametrize(
    "change",
    [
        EditGroup("billing"),
        EditGroup("billing", ack_wait_ms=0),
        EditGroup("billing", on_damage="burn"),
        EditTopic("orders"),
        EditTopic("orders", retention_ms=0),
        EditTopic("orders", retention_bytes=5, no_retention_bytes=True),
        EditTopic("orders", durability="hope"),
    ],
)
async def test_an_edit_that_no_group_or_topic_can_have_is_refused(
    works: Works, change: Change
) -> None:
    await works.plant.topic("orders", 1)
    await works.plant.group("$share/billing/orders/#")
    with pytest.raises(IllegalArgument):
        await works.operations.apply(change, caller=ANA)
    assert list(works.operations.newest()) == []


async def laned(works: Works) -> GroupRow:
    parsed = SubscriptionFilter.parse("$share/billing/orders/#")
    return await works.plant.groups.declare(parsed, retries=AskedRetries(5, (1_000, 5_000)))


async def test_an_edit_of_what_becomes_of_failures_is_told_and_taken_back(works: Works) -> None:
    before = await laned(works)
    change = EditGroup("billing", max_deliver=3, backoff_ms=(7,), queue_records=9)
    plan = await works.operations.plan(change)
    assert plan.summary == (
        "edit billing@orders/#: max-deliver from 5 to 3, backoff from 1s,5s to 7ms, "
        "queue-records from 1,000,000 to 9"
    )
    assert [sentence.split()[0] for sentence in plan.effects] == ["A", "Records", "Queues"]
    edit = await works.apply(change)
    edited = await group_row(works)
    assert (edited.max_deliver, edited.backoff_ms, edited.queue_records) == (3, "7", 9)
    assert edited.queue_bytes == before.queue_bytes
    await works.apply(Undo(edit.number))
    assert replace(await group_row(works), revision=before.revision) == before


GET, LOSE = EditGroup("billing", max_deliver=3), EditGroup("billing", max_deliver=0)


async def test_a_live_group_gets_queues_loses_them_and_both_are_taken_back(works: Works) -> None:
    await works.plant.topic("orders", 2)
    before = await works.plant.group("$share/billing/orders/#")
    member = works.plant.member(before, "ann")
    member.want()
    assert [each.queues for each in await member.granted(2)] == [(), ()]
    row = await works.operations.apply(GET, caller=ANA)
    for _ in range(2):
        await works.given_back(member, 0)
    assert [len(each.queues) for each in await member.granted(2)] == [2, 2]
    assert (await works.ended(row.number)).state == "done"
    assert (await group_row(works)).max_deliver == 3
    row = await works.operations.apply(LOSE, caller=ANA)
    for _ in range(2):
        await works.given_back(member, 0)
    assert [each.queues for each in await member.granted(2)] == [(), ()]
    assert (await works.ended(row.number)).state == "done"
    assert works.plant.catalogue.internal_topics() == ()
    assert replace(await group_row(works), revision=before.revision) == before


async def test_an_edit_that_gave_queues_or_took_them_is_taken_back(works: Works) -> None:
    await works.plant.topic("orders", 1)
    before = await works.plant.group("$share/billing/orders/#")
    got = await works.apply(GET)
    undone = await works.apply(Undo(got.number))
    assert (undone.state, works.plant.catalogue.internal_topics()) == ("done", ())
    assert replace(await group_row(works), revision=before.revision) == before
    await works.apply(Undo(undone.number))
    assert (await group_row(works)).max_deliver == 3
    assert len(works.plant.catalogue.internal_topics()) == 2


async def test_what_a_daemon_that_ended_had_not_done_the_next_one_does(works: Works) -> None:
    await works.plant.topic("orders", 1)
    group = await works.plant.group("$share/billing/orders/#")
    member = works.plant.member(group, "ann")
    member.want()
    await member.granted(1)
    row = await works.operations.apply(GET, caller=ANA)
    assert (await group_row(works)).max_deliver == 0
    await works.restart()
    assert (await works.ended(row.number)).state == "done"
    assert (await group_row(works)).max_deliver == 3


async def waits_in_queue(works: Works) -> None:
    group = works.plant.groups.find("billing")
    [main] = works.plant.catalogue.get("orders").streams()
    queues = works.plant.catalogue.queues_of(group.group_id, main)
    assert queues is not None
    await works.plant.publish(queues[0], 1)


async def test_queues_are_not_taken_while_a_record_waits_in_them(works: Works) -> None:
    await works.plant.topic("orders", 1)
    await works.plant.group("$share/billing/orders/#")
    await works.apply(GET)
    await waits_in_queue(works)
    with pytest.raises(QueuesNotEmpty, match="1 records wait to be tried again, and 0 are dead"):
        await works.operations.plan(LOSE)


async def test_a_record_that_fails_while_queues_are_to_be_taken_keeps_them(works: Works) -> None:
    await works.plant.topic("orders", 1)
    group = await works.plant.group("$share/billing/orders/#")
    await works.apply(GET)
    member = works.plant.member(group, "ann")
    member.want()
    await member.granted(1)
    row = await works.operations.apply(LOSE, caller=ANA)
    await waits_in_queue(works)
    await works.given_back(member, 0)
    [again] = await member.granted(1)
    assert len(again.queues) == 2
    ended = await works.ended(row.number)
    assert (ended.state, ended.failure.split(":")[0]) == (
        "failed",
        "The group billing@orders/# keeps its queues",
    )
    assert (await works.operations.plan(Undo(row.number))).nothing_to_do


async def test_an_edit_to_no_queues_of_a_plain_group_changes_nothing(works: Works) -> None:
    await works.plant.group("$share/billing/orders/#")
    assert (await works.apply(LOSE)).summary.endswith("nothing would change")


async def test_an_edit_to_what_is_there_changes_nothing(works: Works) -> None:
    await works.plant.group("$share/billing/orders/#")
    edit = await works.apply(EditGroup("billing", WAIT_MS, "pass"))
    assert (edit.state, edit.revision, edit.summary) == (
        "done",
        0,
        "edit billing@orders/#: nothing would change",
    )


async def test_an_edit_of_a_topic_changes_what_it_names_and_is_taken_back(works: Works) -> None:
    await works.plant.catalogue.create(NewTopic("orders", 2, retention_bytes=77))
    first = (await topic_row(works)).revision
    edit = await works.apply(EditTopic("orders", retention_ms=60_000, no_retention_bytes=True))
    row = await topic_row(works)
    assert (row.retention_ms, row.retention_bytes, row.revision) == (60_000, None, first + 1)
    assert json.loads(edit.before) == {
        "topic_id": row.topic_id,
        "retention_ms": None,
        "retention_bytes": 77,
    }
    with pytest.raises(RevisionMoved):
        await works.operations.apply(EditTopic("orders", 5), caller=ANA, if_revision=first)
    await works.restart()
    await works.apply(Undo(edit.number))
    row = await topic_row(works)
    assert (row.retention_ms, row.retention_bytes, row.revision) == (None, 77, first + 2)


async def test_a_plan_for_a_topic_that_was_removed_does_not_fit_the_next_of_its_name(
    works: Works,
) -> None:
    await works.plant.topic("orders", 1)
    plan = await works.operations.plan(RemoveTopic("orders"))
    await works.plant.catalogue.remove("orders")
    await works.plant.topic("orders", 1)
    with pytest.raises(RevisionMoved):
        await works.apply(plan.change, if_revision=plan.revision)
    assert works.plant.catalogue.get("orders")


async def test_an_edit_of_a_topic_that_was_made_anew_is_not_taken_back(works: Works) -> None:
    await works.plant.topic("orders", 1)
    edit = await works.apply(EditTopic("orders", retention_ms=60_000))
    await works.plant.catalogue.remove("orders")
    with pytest.raises(NotUndoable, match="its topic was removed"):
        await works.operations.plan(Undo(edit.number))
    await works.plant.topic("orders", 1)
    with pytest.raises(NotUndoable, match="its topic was removed"):
        await works.operations.plan(Undo(edit.number))


async def test_a_plan_says_what_retention_takes_at_once_and_who_has_not_read_it(
    works: Works,
) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.group("$share/billing/orders/#", Earliest())
    await works.plant.publish(stream, 10)
    assert await works.plant.log.roll(stream.storage_topic_id)
    await works.plant.publish(stream, 10)
    plan = await works.operations.plan(EditTopic("orders", retention_bytes=100))
    taken, unread = plan.effects
    assert taken.startswith("Retention takes 10 records, ")
    assert unread == "billing@orders/# has not acknowledged 10 of them."
    assert (await works.operations.plan(EditTopic("orders", 60_000))).effects == (
        "Retention takes nothing of what is there now.",
    )
    assert works.plant.log.bounds(stream).start == 0


async def test_a_topic_that_becomes_sync_is_done_once_what_came_before_is_durable(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.plant.topic("orders", 1)
    monkeypatch.setattr("dssd.operations.kinds.full_disk.FULL_DISK_RETRY_S", 0)
    usual, synced = works.plant.log.sync, asyncio.Event()
    refusals = [DiskFull(), DiskFull()]

    async def sync(storage_topic_id: int) -> None:
        if refusals:
            raise refusals.pop()
        await synced.wait()
        await usual(storage_topic_id)

    monkeypatch.setattr(works.plant.log, "sync", sync)
    to_os = await works.apply(EditTopic("orders", durability="os"))
    assert to_os.state == "done"
    edit = await works.operations.apply(EditTopic("orders", durability="sync"), caller=ANA)
    assert (await topic_row(works)).durability == "sync", "what comes from now on is durable"
    await works.until(lambda: not refusals)
    assert works.operations.get(edit.number).state == "running"
    with pytest.raises(OperationInProgress):
        await works.operations.apply(EditTopic("orders", retention_ms=9), caller=ANA)
    await works.restart()
    assert (await works.ended(edit.number)).state == "done", "the next daemon has it synced"


async def test_a_topic_that_is_removed_ends_what_is_done_to_it(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.plant.catalogue.create(NewTopic("orders", 1, durability="os"))
    before_sync = asyncio.Event()
    usual = works.plant.log.sync

    async def sync(storage_topic_id: int) -> None:
        await before_sync.wait()
        await usual(storage_topic_id)

    monkeypatch.setattr(works.plant.log, "sync", sync)
    edit = await works.operations.apply(EditTopic("orders", durability="sync"), caller=ANA)
    await works.plant.catalogue.remove("orders")
    before_sync.set()
    assert (await works.ended(edit.number)).state == "failed"


async def full_disk(storage_topic_id: int) -> None:
    raise DiskFull()


async def test_an_edit_to_sync_ends_with_an_error_where_the_disk_stays_full(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.plant.catalogue.create(NewTopic("orders", 1, durability="os"))
    monkeypatch.setattr("dssd.operations.kinds.full_disk.FULL_DISK_RETRY_S", 0)
    monkeypatch.setattr("dssd.operations.kinds.full_disk.FULL_DISK_WAIT_MS_MAX", 20)
    monkeypatch.setattr(works.plant.log, "sync", full_disk)
    ended = await works.apply(EditTopic("orders", durability="sync"))
    assert ended.state == "failed"
    assert ended.failure.startswith("The disk was full for")
    assert (await topic_row(works)).durability == "sync"
    back = await works.apply(Undo(ended.number))
    assert (back.state, (await topic_row(works)).durability) == ("done", "os")


async def test_a_topic_is_removed_although_an_edit_of_it_waits_for_room(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.plant.catalogue.create(NewTopic("orders", 1, durability="os"))
    monkeypatch.setattr("dssd.operations.kinds.full_disk.FULL_DISK_RETRY_S", 0)
    usual, tried = works.plant.log.sync, asyncio.Event()

    async def sync(storage_topic_id: int) -> None:
        if works.plant.catalogue.has_storage_topic(storage_topic_id):
            tried.set()
            raise DiskFull()
        await usual(storage_topic_id)

    monkeypatch.setattr(works.plant.log, "sync", sync)
    edit = await works.operations.apply(EditTopic("orders", durability="sync"), caller=ANA)
    await tried.wait()
    assert (await works.apply(RemoveTopic("orders"))).state == "done"
    assert (await works.ended(edit.number)).state == "failed"


async def test_a_topic_that_is_removed_while_it_is_edited_stays_removed(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.plant.topic("orders", 1)
    usual = works.plant.store.read

    async def read(kind: Any, key: Any) -> object:  # noqa: ANN401 # as of the store
        found = await usual(kind, key)
        if kind is TopicRow:
            await works.plant.catalogue.remove("orders")
        return found

    monkeypatch.setattr(works.plant.store, "read", read)
    with pytest.raises(VersionMoved):
        await works.operations.apply(EditTopic("orders", retention_ms=9), caller=ANA)
    assert await works.plant.store.scan(TopicRow) == []
    assert list(works.operations.newest()) == []
    with pytest.raises(TopicNotFound):
        works.plant.catalogue.get("orders")


async def test_a_caller_that_goes_away_leaves_the_change_committed_and_followed(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.plant.group("$share/billing/orders/#")
    usual, reached, may_go_on = works.plant.store.commit, asyncio.Event(), asyncio.Event()

    async def commit(*given: object) -> list[int]:
        reached.set()
        await may_go_on.wait()
        return await usual(*given)  # type: ignore[arg-type] # as it was given

    monkeypatch.setattr(works.plant.store, "commit", commit)
    applying = asyncio.create_task(
        works.operations.apply(EditGroup("billing", ack_wait_ms=7), caller=ANA)
    )
    await reached.wait()
    applying.cancel()
    await asyncio.sleep(0)
    may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await applying
    assert works.plant.groups.find("billing").ack_wait_ms == 7
    assert [event.kind.code for event in works.told] == ["operation.applied"]
