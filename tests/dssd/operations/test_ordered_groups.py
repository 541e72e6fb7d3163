"""Operations on ordered groups and their topics: what keeps the order of keys, and is refused."""

import json
from dataclasses import replace

import pytest

from dss_core.changes import (
    Direction,
    EditGroup,
    GrowTopic,
    MoveCursors,
    ToEarliest,
    Undo,
)
from dss_core.errors import (
    OrderComesWithQueues,
    OrderNeedsOneTopic,
)
from dss_core.filters import SubscriptionFilter
from dssd.leaders.declarations import AskedRetries
from dssd.leaders.lag import GroupSurvey, hindrance_sentence
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


async def test_a_group_over_topics_does_not_become_ordered(works: Works) -> None:
    await works.plant.topic("orders", 1)
    await works.plant.group("$share/all/#", Earliest())
    with pytest.raises(OrderNeedsOneTopic):
        await works.operations.plan(replace(GET, group="all"))


async def test_a_group_with_records_in_two_storage_topics_becomes_ordered(works: Works) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 2)
    before = await works.plant.group("$share/g/orders/#", Earliest())
    await works.apply(GrowTopic("orders", 2))
    assert (await works.apply(GET)).state == "done"
    member = works.plant.member(before, "ann")
    member.want()
    assert [each.stream for each in await member.granted(1)] == [stream]


async def test_what_was_read_to_the_end_is_read_again_while_later_streams_are_closed(
    works: Works,
) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 2)
    await works.apply(GrowTopic("orders", 2))
    await ordered(works)
    later = works.plant.catalogue.get("orders").producing.streams()
    await works.plant.publish(later[0], 3)
    back = MoveCursors("g", Direction.REWIND, to=ToEarliest(), streams=("orders/0/0",))
    plan = await works.operations.plan(back)
    assert [(each.stream, each.again) for each in plan.streams] == [("orders/0/0", 2)]
    [closed] = [each for each in plan.effects if "closed" in each]
    assert closed == (
        "orders/1/0, orders/1/1 are closed, and wait until orders/0/0 is read to the end again: "
        "3 records wait there. What was acknowledged there stays so."
    )
    row = await works.apply(back)
    assert row.state == "done"
    views = {each.view.stream: each for each in (await survey(works)).streams}
    assert (views[stream].view.state, views[stream].view.progress.floor) == ("free", 0)
    assert {views[each].view.state for each in later} == {"closed"}
    undone = await works.apply(Undo(row.number))
    assert undone.state == "done"
    member = works.plant.member(group(works), "ann")
    member.want()
    assert {each.stream for each in await member.granted(2)} == {*later}


async def survey(works: Works) -> GroupSurvey:
    return await works.plant.registry.survey(group(works))


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
    assert back.effects[-1] == "A dead letter holds up its key; so do those that are dead already."


async def test_what_becomes_of_records_without_a_key_changes_at_once(works: Works) -> None:
    await works.plant.topic("orders", 1)
    await ordered(works)
    edit = await works.apply(EditGroup("g", keyless="dead"))
    assert json.loads(edit.after) == {"keyless": "dead"}
    assert group(works).keyless == "dead"
    await works.apply(Undo(edit.number))
    assert group(works).keyless == "deliver"


async def test_a_growth_tells_which_ordered_groups_wait_and_what_is_appended_anew(
    works: Works,
) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 2)
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    retries = AskedRetries(5, ordered=True)
    await works.plant.groups.declare(parsed, start=Earliest(), retries=retries)
    await works.plant.group("$share/plain/orders/#")
    plan = await works.operations.plan(GrowTopic("orders", 2))
    [waits] = [each for each in plan.effects if "keeps the order of keys" in each]
    assert waits.startswith("g@orders/# keeps the order of keys: a stream of orders/1 is closed")
    assert "to the end; 1 of 1 have records left" in waits
    assert "their queues, 0 records now, move to queues of orders/1" in waits
    [beside] = [each for each in plan.effects if "side by side" in each]
    assert beside.startswith("plain@orders/#:")
    assert (await works.apply(GrowTopic("orders", 2))).state == "done"


async def test_the_streams_of_a_group_that_has_nothing_left_open_one_generation_after_another(
    works: Works,
) -> None:
    await works.plant.topic("orders", 2)
    for partitions in (4, 6):
        await works.apply(GrowTopic("orders", partitions))
    row = await ordered(works)
    member = works.plant.member(row, "ann")
    member.want()
    lent = await member.granted(6)
    last = works.plant.catalogue.get("orders").producing
    assert {each.stream for each in lent} == set(last.streams())


async def test_a_closed_stream_is_told_with_what_it_waits_for(works: Works) -> None:
    [stream] = await works.plant.topic("orders", 1)
    await works.plant.publish(stream, 2)
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    retries = AskedRetries(5, ordered=True)
    row = await works.plant.groups.declare(parsed, start=Earliest(), retries=retries)
    await works.apply(GrowTopic("orders", 2))
    member = works.plant.member(row, "ann")
    member.want()
    await member.granted(1)
    survey = await works.plant.registry.survey(row)
    assert [each.waits_for for each in survey.streams] == [(), ("orders/0/0",), ("orders/0/0",)]
    assert {each.view.state for each in survey.streams[1:]} == {"closed"}
    closed = survey.streams[1]
    sentence = hindrance_sentence(closed.view, closed.waits_for)
    assert sentence == "closed: waits for orders/0/0"
    many = hindrance_sentence(closed.view, [f"orders/0/{at}" for at in range(6)])
    assert many == "closed: waits for orders/0/0, orders/0/1, orders/0/2, orders/0/3 and 2 more"
