"""Removals of groups and topics: what is told before, what goes, and what stays."""

import asyncio
import json

import pytest

from dss_core.changes import Direction, MoveCursors, RemoveGroup, RemoveTopic, ToLatest, Undo
from dss_core.errors import (
    GroupNotFound,
    NotUndoable,
    OperationInProgress,
    TopicInUse,
    TopicNotFound,
)
from dssd.machines.messages import Invalidate
from dssd.machines.start_point import Earliest
from dssd.operations.limits import GROUPS_NAMED_MAX
from dssd.store.port import Put
from dssd.store.rows import (
    BanRow,
    GrantRow,
    GroupRow,
    PendingMoveRow,
    ProgressRow,
    StorageTopicRow,
    StreamSetRow,
    TopicRow,
)
from support.laned_groups import laned
from support.operated_groups import ANA, Works
from support.queued_entries import Failed

PER_GROUP = (GroupRow, GrantRow, ProgressRow, StreamSetRow, PendingMoveRow, BanRow)


async def read_topic(works: Works, records: int = 10, consumed: int = 4) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, records)
    await works.plant.group("$share/billing/orders/#", Earliest())
    await works.consumed("billing", consumed)


async def test_a_removal_of_a_group_says_what_goes_and_takes_all_its_rows(works: Works) -> None:
    await read_topic(works)
    member = works.plant.member(works.plant.groups.find("billing"), "bob")
    member.want()
    group = works.plant.groups.find("billing")
    plan = await works.operations.plan(RemoveGroup("billing"))
    assert (plan.kind, plan.not_undoable_because) == ("groups.rm", "its progress is deleted")
    assert plan.summary == "remove billing@orders/#: 1 member, a lag of 6 records"
    assert plan.members == ("ann",)
    await works.plant.store.commit([Put(BanRow(group.group_id, "eve", 9, 1))])
    removal = await works.apply(plan.change, if_revision=plan.revision, reason="ended")
    assert (removal.state, removal.failure) == ("done", "")
    await member.next(Invalidate)
    for kind in PER_GROUP:
        assert await works.plant.store.scan(kind) == []
    with pytest.raises(NotUndoable, match="its progress is deleted"):
        await works.operations.plan(Undo(removal.number))
    with pytest.raises(GroupNotFound):
        await works.operations.plan(RemoveGroup("billing"))


async def test_removals_say_how_many_dead_letters_and_waiting_retries_go(works: Works) -> None:
    failed = [Failed(offset) for offset in range(5)]
    await laned(works, *failed[:2], retrying=failed[2:])
    queued = "3 records that wait to be tried again, 2 dead letters"
    plan = await works.operations.plan(RemoveGroup("g"))
    assert plan.summary == f"remove g@orders/#: 0 members, a lag of 0 records, {queued}"
    assert plan.effects[1] == f"The records in its queues go too: {queued}."
    plan = await works.operations.plan(RemoveTopic("orders", force=True))
    stays = "it stays, with no stream to read."
    assert plan.effects[1] == f"g@orders/# loses {queued}; {stays}"


async def test_groups_that_a_removal_of_a_topic_does_not_name_are_summed_up(works: Works) -> None:
    await laned(works, Failed(0), Failed(1))
    [stream] = works.plant.catalogue.get("orders").streams()
    await works.plant.publish(stream, 3)
    for number in range(GROUPS_NAMED_MAX):
        await works.plant.group(f"$share/x{number}/orders/#", Earliest())
    plan = await works.operations.plan(RemoveTopic("orders", force=True))
    [first, *named, rest] = plan.effects[1:]
    assert first.startswith("g@orders/# loses 3 records"), "what loses most is named first"
    assert len(named) == GROUPS_NAMED_MAX - 1
    assert rest == "1 more group reads it, and loses 3 records more."


async def test_a_group_on_which_an_operation_runs_is_not_removed(works: Works) -> None:
    await read_topic(works)
    moving = MoveCursors("billing", Direction.SKIP, to=ToLatest())
    await works.operations.apply(moving, caller=ANA)
    with pytest.raises(OperationInProgress):
        await works.operations.apply(RemoveGroup("billing"), caller=ANA)


async def test_a_removal_that_a_daemon_left_undone_is_done_by_the_next(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await read_topic(works)
    stuck = asyncio.Event()

    async def wait(*_: object, **__: object) -> None:
        await stuck.wait()

    monkeypatch.setattr(works.plant.groups, "remove", wait)
    monkeypatch.setattr(works.plant.catalogue, "remove", wait)
    of_group = await works.operations.apply(RemoveGroup("billing"), caller=ANA)
    of_topic = await works.operations.apply(RemoveTopic("orders", force=True), caller=ANA)
    await works.restart()
    assert (await works.ended(of_group.number)).state == "done"
    assert (await works.ended(of_topic.number)).state == "done"
    assert await works.plant.store.scan(TopicRow) == []
    assert works.plant.groups.groups() == ()


async def test_what_was_made_anew_under_the_name_stays(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.plant.topic("orders", 1)
    usual, may_go_on = works.plant.catalogue.remove, asyncio.Event()

    async def late(name: str, *, topic_id: int) -> None:
        await may_go_on.wait()
        await usual(name, topic_id=topic_id)

    monkeypatch.setattr(works.plant.catalogue, "remove", late)
    removal = await works.operations.apply(RemoveTopic("orders"), caller=ANA)
    await usual("orders")
    [stream] = await works.plant.topic("orders", 1)
    may_go_on.set()
    assert (await works.ended(removal.number)).state == "done"
    assert works.plant.catalogue.get("orders").streams() == (stream,)


async def test_a_group_that_reads_another_topic_too_is_not_said_to_be_left_without(
    works: Works,
) -> None:
    await works.plant.topic("orders", 1)
    await works.plant.topic("payments", 1)
    await works.plant.group("$share/audit/#", Earliest())
    plan = await works.operations.plan(RemoveTopic("orders", force=True))
    assert plan.effects == (
        "0 records, 0 bytes in 1 stream are deleted.",
        "audit@# has acknowledged all of it.",
    )


async def test_a_removal_of_a_topic_says_what_goes_and_who_reads_it(works: Works) -> None:
    await read_topic(works)
    with pytest.raises(TopicInUse, match="billing"):
        await works.operations.plan(RemoveTopic("orders"))
    await works.plant.group("$share/audit/#", Earliest())
    plan = await works.operations.plan(RemoveTopic("orders", force=True))
    size = works.plant.log.bounds(works.plant.catalogue.get("orders").streams()[0]).bytes
    rest = "records that it has not acknowledged; it stays, with no stream to read."
    assert plan.effects == (
        f"10 records, {size} bytes in 1 stream are deleted.",
        f"audit@# loses 10 {rest}",
        f"billing@orders/# loses 6 {rest}",
    )
    assert plan.members == ("ann",)
    removal = await works.apply(plan.change)
    assert (removal.state, json.loads(removal.before)["plan"]) == ("done", list(plan.effects))
    for kind in (TopicRow, StorageTopicRow):
        assert await works.plant.store.scan(kind) == []
    with pytest.raises(TopicNotFound):
        await works.operations.plan(RemoveTopic("orders"))
