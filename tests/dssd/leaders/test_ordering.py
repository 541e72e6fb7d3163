"""Which groups may be ordered, and which topics may not be made beside one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dss_core.errors import (
    GroupExists,
    OrderNeedsOneTopic,
    TopicDividesOrder,
)
from dss_core.filters import SubscriptionFilter
from dss_sim.played_groups import Plant
from dssd.leaders.declarations import AskedRetries
from dssd.machines.start_point import Earliest, Now, StartPoint
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


async def test_a_group_may_begin_at_the_first_of_several_storage_topics(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 3)
    await grow(plant)
    for start in (Earliest(), Now()):
        await plant.groups.remove((await ordered(plant, start=start)).group_id)


async def test_no_new_topic_owns_a_part_of_what_an_ordered_group_reads(plant: Plant) -> None:
    await plant.topic("orders", 1)
    await ordered(plant)
    await plant.catalogue.remove("orders")
    with pytest.raises(TopicDividesOrder, match="a part of orders/#"):
        await plant.catalogue.create(NewTopic("eu", 1, patterns=("orders/eu/#",)))
    await plant.topic("orders", 1)
    await plant.topic("bills", 1)
