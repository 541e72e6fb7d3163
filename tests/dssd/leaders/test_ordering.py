"""Which groups may be ordered, and what a topic may not do while one reads it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dss_core.errors import (
    GroupExists,
    OrderNeedsOneTopic,
    OrderSpansStorageTopics,
    TopicDividesOrder,
    TopicReadInOrder,
)
from dss_core.filters import SubscriptionFilter
from dss_sim.played_groups import Plant
from dssd.leaders.declarations import AskedRetries
from dssd.leaders.ordering import begin_of
from dssd.machines.start_point import AtTime, Earliest, Now, StartPoint
from dssd.store.memory import MemoryStore
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import NewTopic

ORDERED = AskedRetries(5, ordered=True)


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Plant]:
    plant = Plant(tmp_path / "log", MemoryStore())
    await plant.start()
    yield plant
    await plant.stop()


async def ordered(
    plant: Plant, filter_: str = "orders/#", start: StartPoint | None = None
) -> GroupRow:
    parsed = SubscriptionFilter.parse(f"$share/g/{filter_}")
    return await plant.groups.declare(parsed, start=start, retries=ORDERED)


@pytest.mark.parametrize("filter_", ["orders/#", "orders/eu/+", "orders", "+/x", "+/+/y/#"])
async def test_a_filter_within_one_topic_may_be_ordered(plant: Plant, filter_: str) -> None:
    patterns = ("orders/#",) if filter_.startswith("orders") else ("+/x", "+/+/y/#")
    await plant.catalogue.create(NewTopic("orders", 1, patterns=patterns))
    group = await ordered(plant, filter_)
    assert (group.ordered, group.on_dead_letter, group.keyless) == (True, "block", "deliver")
    parsed, unordered = SubscriptionFilter.parse(f"$share/g/{filter_}"), AskedRetries(ordered=False)
    with pytest.raises(GroupExists):
        await plant.groups.declare(parsed, if_not_exists=True, retries=unordered)


@pytest.mark.parametrize(
    ("filter_", "why", "command"),
    [
        ("bills/#", "meets none yet", "dssctl topics create bills"),
        ("+/us", "meets more than one: orders, quotes", "groups create 'g@orders/#' --ordered"),
        ("audit/#", "meets more than audits, so topics that are made later too", "g@audit/eu/#"),
    ],
)
async def test_a_filter_that_may_meet_two_topics_may_not(
    plant: Plant, filter_: str, why: str, command: str
) -> None:
    await plant.topic("orders", 1)
    await plant.topic("quotes", 1)
    await plant.catalogue.create(NewTopic("audits", 1, patterns=("audit/eu/#",)))
    with pytest.raises(OrderNeedsOneTopic) as refused:
        await ordered(plant, filter_)
    assert why in refused.value.message
    assert command in refused.value.hint_text
    assert plant.groups.groups() == ()


async def grow(plant: Plant) -> None:
    topic = plant.catalogue.get("orders")
    await plant.catalogue.add_storage_topic(topic.topic_id, topic.produce_ordinal + 1, 2)
    await plant.catalogue.switch(topic.topic_id, topic.produce_ordinal + 1)


async def test_a_group_that_would_read_two_storage_topics_is_told_where_to_begin(
    plant: Plant,
) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 3)
    await grow(plant)
    with pytest.raises(OrderSpansStorageTopics, match="orders/0 is sealed") as refused:
        await ordered(plant, start=Earliest())
    begin = begin_of(plant.catalogue.get("orders"))
    assert refused.value.hint_text.endswith(f"--ordered --max-deliver 5 --start {begin}")
    begin_us = plant.catalogue.get("orders").producing.begins_us
    assert begin == f"@{begin_us // 1_000_000}.{begin_us % 1_000_000:06}"
    for start in (Now(), AtTime(begin_us)):
        await plant.groups.remove((await ordered(plant, start=start)).group_id)


async def test_a_topic_is_not_switched_while_an_ordered_group_reads_it(plant: Plant) -> None:
    await plant.topic("orders", 1)
    group = await ordered(plant)
    with pytest.raises(TopicReadInOrder, match="g@orders/#"):
        await grow(plant)
    topic = plant.catalogue.get("orders")
    assert (topic.produce_ordinal, len(topic.storage_topics)) == (0, 2)
    await plant.groups.remove(group.group_id)
    await plant.catalogue.switch(topic.topic_id, 1)
    assert plant.catalogue.get("orders").produce_ordinal == 1


async def test_of_a_switch_and_a_declaration_at_a_time_one_is_refused(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 1)
    found = await asyncio.gather(
        grow(plant), ordered(plant, start=Earliest()), return_exceptions=True
    )
    refused = [each for each in found if isinstance(each, BaseException)]
    [one] = refused
    assert isinstance(one, TopicReadInOrder | OrderSpansStorageTopics), one


async def test_no_new_topic_owns_a_part_of_what_an_ordered_group_reads(plant: Plant) -> None:
    await plant.topic("orders", 1)
    await ordered(plant)
    await plant.catalogue.remove("orders")
    with pytest.raises(TopicDividesOrder, match="a part of orders/#"):
        await plant.catalogue.create(NewTopic("eu", 1, patterns=("orders/eu/#",)))
    await plant.topic("orders", 1)
    await plant.topic("bills", 1)
