"""Operations on ordered groups and their topics: what keeps the order of keys, and is refused."""

import asyncio
import json
from dataclasses import replace

import pytest

from dss_core.changes import (
    Direction,
    EditGroup,
    GrowTopic,
    MoveCursors,
    SwitchTopic,
    ToEarliest,
    Undo,
)
from dss_core.errors import (
    OrderComesWithQueues,
    OrderNeedsOneTopic,
    OrderSpansStorageTopics,
    TopicReadInOrder,
)
from dss_core.filters import SubscriptionFilter
from dssd.leaders.declarations import AskedRetries
from dssd.machines.start_point import Earliest
from dssd.store.rows import GroupRow
from support.operated_groups import ANA, Works

GET = EditGroup("g", max_deliver=3, ordered=True)


async def ordered(works: Works) -> GroupRow:
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    return await works.plant.groups.declare(parsed, retries=AskedRetries(5, ordered=True))


def group(works: Works) -> GroupRow:
    return works.plant.groups.find("g")


async def test_a_live_group_becomes_ordered_with_its_queues_and_is_so_no_more_without(
    works: Works,
) -> None:
    await works.plant.topic("orders", 1)
    before = await works.plant.group("$share/g/orders/#")
    plan = await works.operations.plan(GET)
    assert "ordered from no to yes, backoff from none to 1s,5s,30s,5m" in plan.summary
    assert "on-dead-letter from skip to block" in plan.summary
    assert any("holds up its key until it is done" in each for each in plan.effects)
    got = await works.apply(GET)
    assert (group(works).ordered, group(works).on_dead_letter) == (True, "block")
    with pytest.raises(OrderComesWithQueues):
        await works.operations.plan(EditGroup("g", ordered=False))
    await works.apply(EditGroup("g", max_deliver=0))
    assert replace(group(works), revision=before.revision) == before
    await works.apply(EditGroup("g", max_deliver=3))
    with pytest.raises(OrderComesWithQueues, match="is not ordered"):
        await works.operations.plan(EditGroup("g", ordered=True))
    assert got.state == "done"


async def test_an_edit_that_made_a_group_ordered_is_taken_back(works: Works) -> None:
    await works.plant.topic("orders", 1)
    before = await works.plant.group("$share/g/orders/#")
    got = await works.apply(GET)
    undone = await works.apply(Undo(got.number))
    assert replace(group(works), revision=before.revision) == before
    await works.apply(Undo(undone.number))
    assert (group(works).ordered, group(works).on_dead_letter) == (True, "block")


async def test_a_group_over_topics_or_with_old_records_does_not_become_ordered(
    works: Works,
) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 2)
    await works.plant.group("$share/all/#", Earliest())
    await works.plant.group("$share/g/orders/#", Earliest())
    with pytest.raises(OrderNeedsOneTopic):
        await works.operations.plan(replace(GET, group="all"))
    await works.apply(GrowTopic("orders", 2))
    with pytest.raises(OrderSpansStorageTopics, match="orders/0 is sealed"):
        await works.operations.plan(GET)
    await works.plant.group("$share/late/orders/#")
    assert (await works.apply(replace(GET, group="late"))).state == "done"
    back = MoveCursors("late", Direction.REWIND, to=ToEarliest())
    with pytest.raises(OrderSpansStorageTopics) as refused:
        await works.operations.plan(back)
    assert "dssctl offsets rewind 'late@orders/#' --to @" in refused.value.hint_text
    within = await works.operations.plan(replace(back, streams=("orders/1/0",)))
    assert [each.stream for each in within.streams] == ["orders/1/0"]


async def test_whether_a_dead_letter_blocks_changes_while_nobody_holds_a_lane(
    works: Works,
) -> None:
    await works.plant.topic("orders", 1)
    member = works.plant.member(await ordered(works), "ann")
    member.want()
    await member.granted(1)
    change = EditGroup("g", on_dead_letter="skip")
    plan = await works.operations.plan(change)
    assert plan.effects[0].startswith("ann gives its streams back")
    assert plan.effects[-1].startswith("A key goes on behind its dead letters.")
    row = await works.operations.apply(change, caller=ANA)
    assert group(works).on_dead_letter == "block"
    await works.given_back(member, 0)
    await member.granted(1)
    assert (await works.ended(row.number)).state == "done"
    assert (group(works).on_dead_letter, group(works).max_deliver) == ("skip", 5)
    back = await works.operations.plan(EditGroup("g", on_dead_letter="block"))
    assert back.effects[-1] == "A dead letter holds up its key, also one that is dead by now."


async def test_what_becomes_of_records_without_a_key_changes_at_once(works: Works) -> None:
    await works.plant.topic("orders", 1)
    await ordered(works)
    edit = await works.apply(EditGroup("g", keyless="dead"))
    assert json.loads(edit.after) == {"keyless": "dead"}
    assert group(works).keyless == "dead"
    await works.apply(Undo(edit.number))
    assert group(works).keyless == "deliver"


async def test_a_topic_that_an_ordered_group_reads_may_be_added_to_but_not_switched(
    works: Works,
) -> None:
    await works.plant.topic("orders", 1)
    row = await ordered(works)
    for change in (GrowTopic("orders", 2), SwitchTopic("orders")):
        if isinstance(change, SwitchTopic):
            topic = works.plant.catalogue.get("orders")
            await works.plant.catalogue.add_storage_topic(topic.topic_id, 1, 2)
        with pytest.raises(TopicReadInOrder, match="g@orders/#") as refused:
            await works.operations.plan(change)
        assert "dssctl groups edit 'g@orders/#' --max-deliver 0" in refused.value.hint_text
    await works.plant.groups.remove(row.group_id)
    assert (await works.apply(SwitchTopic("orders"))).state == "done"


async def test_a_switch_that_an_ordered_group_overtook_ends_and_changes_nothing(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.plant.topic("orders", 1)
    goes_on, switch = asyncio.Event(), works.plant.catalogue.switch

    async def late(topic_id: int, ordinal: int) -> None:
        await goes_on.wait()
        await switch(topic_id, ordinal)

    monkeypatch.setattr(works.plant.catalogue, "switch", late)
    row = await works.operations.apply(GrowTopic("orders", 2), caller=ANA)
    await ordered(works)
    goes_on.set()
    ended = await works.ended(row.number)
    assert (ended.state, works.plant.catalogue.get("orders").produce_ordinal) == ("failed", 0)
    assert ended.failure.startswith("The topic orders cannot be switched")
