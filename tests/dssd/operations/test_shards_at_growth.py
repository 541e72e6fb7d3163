"""Counts of shards that go with a growth: offered, set behind the switch, undone by themselves."""

import asyncio

import pytest

from dss_core.changes import EditGroup, GroupShards, GrowTopic, SetShardCount, Undo
from dss_core.errors import (
    IllegalArgument,
    NotUndoable,
    OperationInProgress,
    RevisionMoved,
    ShardCountUnfit,
    ShardsNeedOrder,
)
from dss_core.filters import SubscriptionFilter
from dssd.leaders.declarations import AskedRetries
from dssd.store.rows import GroupRow, OperationRow
from support.operated_groups import ANA, Works

GROWN = GrowTopic("orders", 12, with_shards=True)


@pytest.fixture
async def group(works: Works) -> GroupRow:
    """Four shards over six partitions: of twelve, six are the ones that fit."""
    await works.plant.topic("orders", 6)
    return await ordered(works, "g", 4)


async def ordered(works: Works, name: str, shards: int | None) -> GroupRow:
    parsed = SubscriptionFilter.parse(f"$share/{name}/orders/#")
    return await works.plant.groups.declare(
        parsed, retries=AskedRetries(5, ordered=True, shards=shards)
    )


def shards_of(works: Works, name: str = "g") -> int:
    return works.plant.groups.find(name).shards


def partitions(works: Works) -> int:
    return works.plant.catalogue.get("orders").producing.partitions


def counts_set(works: Works) -> list[OperationRow]:
    return [row for row in works.operations.newest() if row.kind == "shards.set-count"]


async def test_a_growth_says_which_count_fits_and_with_shards_it_is_set_and_undone_by_itself(
    works: Works, group: GroupRow
) -> None:
    told = (await works.operations.plan(GrowTopic("orders", 12))).effects
    command = "dssctl shards set-count 'g@orders/#' 6"
    assert (
        "g@orders/# has 4 shards then: even in orders/1, uneven in what is older, and not aligned. "
        f"6 fit better, even, and aligned: --with-shards sets that count, or later {command}"
    ) in told
    plan = await works.operations.plan(GROWN)
    assert isinstance(plan.change, GrowTopic)
    assert plan.change.shard_counts == (GroupShards("g@orders/#", 6, group.revision),)
    assert (
        "g@orders/# is cut into 6 shards instead of 4, once orders/1 takes records: even, and "
        "aligned."
    ) in plan.effects
    assert any("dssctl ops undo takes back; the growth stays" in each for each in plan.effects)
    grown = await works.apply(plan.change, if_revision=plan.revision, reason="more of them")
    assert (grown.state, partitions(works), shards_of(works)) == ("done", 12, 6)
    [count] = counts_set(works)
    assert (count.state, count.principal, count.reason) == ("done", ANA.principal, "more of them")
    assert count.origin == f"operation {grown.number}"
    with pytest.raises(NotUndoable):
        await works.operations.plan(Undo(grown.number))
    await works.apply(Undo(count.number))
    assert (partitions(works), shards_of(works)) == (12, 4)


async def test_groups_that_fit_and_those_without_a_count_stay_as_they_are(works: Works) -> None:
    await works.plant.topic("orders", 6)
    before = [await ordered(works, "fits", 3), await ordered(works, "based", None)]
    plan = await works.operations.plan(GROWN)
    assert plan.effects[-3].startswith("--with-shards changes nothing: each group")
    await works.apply(plan.change)
    assert [works.plant.groups.find(row.name) for row in before] == before
    assert counts_set(works) == []


async def test_without_a_group_that_has_shards_it_says_so_and_grows(works: Works) -> None:
    await works.plant.topic("orders", 6)
    await works.plant.group("$share/plain/orders/#")
    plan = await works.operations.plan(GROWN)
    assert "--with-shards changes nothing: no group with shards reads it." in plan.effects
    assert (await works.apply(GROWN)).state == "done"
    assert partitions(works) == 12


async def test_a_plan_does_not_outlive_a_change_of_one_of_its_groups(
    works: Works, group: GroupRow
) -> None:
    plan = await works.operations.plan(GROWN)
    cut = await works.apply(SetShardCount("g", 3))
    with pytest.raises(RevisionMoved, match=f"operation {cut.number} applied shards.set-count"):
        await works.operations.apply(plan.change, caller=ANA, if_revision=plan.revision)
    assert (partitions(works), shards_of(works)) == (6, 3)


@pytest.mark.parametrize(
    ("named", "shards", "refusal"),
    [
        ("g", 0, ShardCountUnfit),
        ("g", 13, ShardCountUnfit),
        ("plain", 2, ShardsNeedOrder),
        ("other", 2, IllegalArgument),
    ],
)
async def test_counts_that_nobody_planned_are_refused_and_nothing_is_changed(
    works: Works, group: GroupRow, named: str, shards: int, refusal: type[Exception]
) -> None:
    await works.plant.group("$share/plain/orders/#")
    await works.plant.topic("others", 6)
    parsed = SubscriptionFilter.parse("$share/other/others/#")
    await works.plant.groups.declare(parsed, retries=AskedRetries(5, ordered=True))
    row = works.plant.groups.find(named)
    count = GroupShards(named, shards, row.revision)
    with pytest.raises(refusal):
        await works.operations.apply(GrowTopic("orders", 12, shard_counts=(count,)), caller=ANA)
    assert (partitions(works), works.plant.groups.find(named)) == (6, row)


async def test_a_group_that_changes_while_its_topic_is_switched_is_told_and_not_cut(
    works: Works, group: GroupRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with works.plant.catalogue.unchanging():
        growing = await works.operations.apply(GROWN, caller=ANA)
        with pytest.raises(OperationInProgress):
            await works.operations.apply(SetShardCount("g", 3), caller=ANA)
        edited = await works.apply(EditGroup("g", ack_wait_ms=1_000))
    ended = await works.ended(growing.number)
    assert (ended.state, partitions(works), shards_of(works)) == ("failed", 12, 4)
    assert ended.failure.startswith("orders has grown. g@orders/# was not cut into 6 shards: ")
    assert f"operation {edited.number} applied groups.edit" in ended.failure
    assert ended.failure.endswith("Then: dssctl shards set-count 'g@orders/#' 6")
    assert ended.not_undoable_because


async def test_a_growth_that_a_daemon_left_before_its_counts_is_done_by_the_next(
    works: Works, group: GroupRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(works.plant.catalogue, "switch", wait)
    growing = await works.operations.apply(GROWN, caller=ANA)
    await works.restart()
    assert (await works.ended(growing.number)).state == "done"
    assert (partitions(works), shards_of(works), len(counts_set(works))) == (12, 6, 1)


async def test_a_count_that_a_daemon_set_before_it_ended_is_not_set_again_by_the_next(
    works: Works, group: GroupRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(works.operations, "ended", wait)
    growing = await works.operations.apply(GROWN, caller=ANA)
    await works.until(lambda: shards_of(works) == 6)
    await works.restart()
    assert (await works.ended(growing.number)).state == "done"
    [count] = counts_set(works)
    assert count.operation_id == f"dssd-{growing.number}.1"
    assert works.plant.groups.find("g").revision == group.revision + 1
