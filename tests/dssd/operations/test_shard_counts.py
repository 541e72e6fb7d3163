"""Changes of a group's number of shards: planned, applied to a live group, refused, undone."""

import pytest

from dss_core.changes import AddStorageTopic, GrowTopic, SetShardCount, TransferGrant, Undo
from dss_core.errors import (
    GroupExistsOtherwise,
    IllegalArgument,
    NotUndoable,
    OperationInProgress,
    RevisionMoved,
    ShardCountUnfit,
    ShardsNeedOrder,
)
from dss_core.filters import SubscriptionFilter
from dssd.leaders.declarations import AskedRetries
from dssd.machines.start_point import Earliest
from dssd.questions.shards import Sharded, sharded
from dssd.store.rows import GroupRow
from support.operated_groups import ANA, Works


async def ordered(
    works: Works, *, shards: int | None = None, allocation: str | None = None
) -> GroupRow:
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    asked = AskedRetries(5, ordered=True, shards=shards, allocation=allocation)
    return await works.plant.groups.declare(parsed, retries=asked)


def group(works: Works) -> GroupRow:
    return works.plant.groups.find("g")


def holders(works: Works) -> dict[int, tuple[str, int]]:
    """Who has each partition, and under which grant."""
    live = works.plant.registry.snapshot(group(works).group_id)
    assert live is not None
    return {each.stream.partition: (each.client_id, each.grant_epoch) for each in live.streams}


async def look(works: Works) -> Sharded:
    plant = works.plant
    return sharded(group(works), await plant.registry.survey(group(works)), plant.catalogue)


async def test_an_ordered_group_has_as_many_shards_as_its_topic_has_for_a_base(
    works: Works,
) -> None:
    await works.plant.topic("orders", 6)
    row = await ordered(works)
    assert (row.allocation, row.shards) == ("shard", 0)
    found = await look(works)
    assert [each.streams for each in found.each] == [(f"orders/0/{at}",) for at in range(6)]
    assert (found.shards, found.even, found.aligned, found.better) == (6, True, True, ())


async def test_a_live_group_is_cut_anew_and_only_what_changes_its_owner_moves(
    works: Works,
) -> None:
    await works.plant.topic("orders", 12)
    row = await ordered(works, shards=3)
    members = [works.plant.member(row, name) for name in ("ann", "bob", "cid")]
    for member in members:
        member.want()
    for member in members:
        await member.granted(4)
    held = holders(works)
    plan = await works.operations.plan(SetShardCount("g", 6))
    assert plan.summary == "cut g@orders/# into 6 shards: 0 streams change hands"
    assert plan.moves == ()
    assert "orders/0: 12 partitions, 2 a shard." in plan.effects
    assert "Even: each shard has as many streams as any other." in plan.effects
    done = await works.apply(SetShardCount("g", 6))
    assert (done.state, group(works).shards) == ("done", 6)
    assert holders(works) == held
    assert [len(each.streams) for each in (await look(works)).each] == [2] * 6
    plan = await works.operations.plan(Undo(done.number))
    assert plan.summary.startswith(f"take back operation {done.number}: cut g@orders/# into 3")
    await works.apply(Undo(done.number))
    assert group(works).shards == 3


async def test_a_plan_tells_an_uneven_count_and_which_counts_would_be_better(
    works: Works,
) -> None:
    await works.plant.topic("orders", 12)
    await ordered(works)
    plan = await works.operations.plan(SetShardCount("g", 5))
    told = "\n".join(plan.effects)
    assert "orders/0: 12 partitions, 2 or 3 a shard." in told
    assert "Uneven: some shards have more streams than others" in told
    assert "Counts near it that are even and aligned: 4 or 6 or 3." in told
    assert "Nobody is a member now" in told


async def test_members_beyond_the_shards_stand_by(works: Works) -> None:
    await works.plant.topic("orders", 2)
    row = await ordered(works)
    members = [works.plant.member(row, name) for name in ("ann", "bob", "cid")]
    for member in members:
        member.want()
    for member in members[:2]:
        await member.granted(1)
    found = await look(works)
    assert found.without == ("cid",)
    plan = await works.operations.plan(SetShardCount("g", 1))
    assert plan.effects[-1] == "2 members have no shard, and stand by."


@pytest.mark.parametrize(("shards", "near"), [(0, 1), (13, 12)])
async def test_no_shards_and_more_than_partitions_are_refused_and_nothing_is_changed(
    works: Works, shards: int, near: int
) -> None:
    await works.plant.topic("orders", 12)
    with pytest.raises(ShardCountUnfit) as made:
        await ordered(works, shards=shards)
    assert f"The nearest count: --shards {near}." in made.value.hint_text
    before = await ordered(works)
    with pytest.raises(ShardCountUnfit) as refused:
        await works.operations.apply(SetShardCount("g", shards), caller=ANA)
    assert f"dssctl shards set-count 'g@orders/#' {near}" in refused.value.hint_text
    assert group(works) == before


async def test_a_group_without_order_has_no_shards(works: Works) -> None:
    await works.plant.topic("orders", 4)
    row = await works.plant.group("$share/g/orders/#")
    with pytest.raises(ShardsNeedOrder) as refused:
        await works.operations.plan(SetShardCount("g", 2))
    assert "'NAME@orders/#' --ordered --max-deliver 5 --shards 2" in refused.value.hint_text
    with pytest.raises(ShardsNeedOrder):
        await look(works)
    assert group(works) == row
    with pytest.raises(IllegalArgument, match="give --ordered as well"):
        AskedRetries(5, shards=2).of_new_group()
    with pytest.raises(IllegalArgument, match="leave one of them out"):
        AskedRetries(5, ordered=True, shards=2, allocation="sticky").of_new_group()


async def test_a_plan_does_not_outlive_a_change_of_its_group(works: Works) -> None:
    await works.plant.topic("orders", 12)
    await ordered(works)
    plan = await works.operations.plan(SetShardCount("g", 4))
    first = await works.apply(SetShardCount("g", 6))
    with pytest.raises(RevisionMoved):
        await works.operations.apply(plan.change, caller=ANA, if_revision=plan.revision)
    assert group(works).shards == 6
    await works.apply(SetShardCount("g", 3))
    with pytest.raises(NotUndoable, match="changed"):
        await works.operations.plan(Undo(first.number))
    assert (await works.operations.plan(SetShardCount("g", 3))).nothing_to_do


async def test_a_count_is_refused_while_an_operation_runs_on_the_topic_that_it_rests_on(
    works: Works,
) -> None:
    await works.plant.topic("orders", 4)
    row = await ordered(works)
    async with works.plant.catalogue.unchanging():
        adding = await works.operations.apply(AddStorageTopic("orders", 8), caller=ANA)
        with pytest.raises(OperationInProgress) as refused:
            await works.operations.apply(SetShardCount("g", 2), caller=ANA)
        assert str(adding.number) in refused.value.hint_text
        assert group(works) == row
    await works.ended(adding.number)
    assert (await works.apply(SetShardCount("g", 2))).state == "done"


async def test_a_group_of_before_is_shared_out_by_shards_from_its_first_count_on(
    works: Works,
) -> None:
    await works.plant.topic("orders", 4)
    row = await ordered(works, allocation="sticky")
    assert (row.allocation, row.shards) == ("sticky", 0)
    with pytest.raises(ShardsNeedOrder):
        await look(works)
    done = await works.apply(SetShardCount("g", 2))
    assert (group(works).allocation, group(works).shards) == ("shard", 2)
    await works.apply(Undo(done.number))
    assert (group(works).allocation, group(works).shards) == ("sticky", 0)


async def test_a_group_that_is_there_with_another_count_is_told_how_to_be_as_asked(
    works: Works,
) -> None:
    await works.plant.topic("orders", 4)
    await ordered(works, shards=2)
    with pytest.raises(GroupExistsOtherwise) as refused:
        await ordered(works, shards=4)
    assert "dssctl shards set-count 'g@orders/#' 4" in refused.value.hint_text


async def test_a_plan_that_grows_a_topic_tells_how_its_groups_are_cut_then(works: Works) -> None:
    await works.plant.topic("orders", 4)
    await ordered(works, shards=4)
    fits = await works.operations.plan(AddStorageTopic("orders", 8))
    cut = "g@orders/# has 4 shards then: "
    assert f"{cut}even, and aligned. It may have up to 8, for as many members." in fits.effects
    bent = await works.operations.plan(AddStorageTopic("orders", 6))
    assert (
        f"{cut}uneven, and not aligned. 6 fit better, even in orders/1, uneven in what is older, "
        "and not aligned: dssctl shards set-count 'g@orders/#' 6"
    ) in bent.effects


async def test_a_count_that_was_under_way_when_the_daemon_ended_is_done_by_the_next(
    works: Works,
) -> None:
    await works.plant.topic("orders", 4)
    row = await ordered(works, shards=1)
    for name in ("ann", "bob"):
        works.plant.member(row, name).want()
    running = await works.operations.apply(SetShardCount("g", 4), caller=ANA)
    assert (running.state, group(works).shards) == ("running", 4)
    await works.restart()
    assert (await works.ended(running.number)).state == "done"
    assert (group(works).shards, len((await look(works)).each)) == (4, 4)


async def test_a_stream_that_is_closed_neither_stays_with_anybody_nor_is_handed_to_one(
    works: Works,
) -> None:
    [first, _] = await works.plant.topic("orders", 2)
    await works.plant.publish(first, 2)
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    asked = AskedRetries(5, ordered=True)
    row = await works.plant.groups.declare(parsed, start=Earliest(), retries=asked)
    await works.apply(GrowTopic("orders", 4))
    member = works.plant.member(row, "ann")
    member.want()
    await member.granted(3)
    assert [len(each.streams) for each in (await look(works)).each] == [3, 2]
    plan = await works.operations.plan(SetShardCount("g", 4))
    assert any("3 streams stay" in each for each in plan.effects)
    handed = await works.operations.plan(TransferGrant("g", "orders/1/0", "ann"))
    assert (handed.moves, handed.nothing_to_do) == ((), True)
    assert handed.summary.endswith("it is closed")
