import asyncio

import pytest

from dss_core.filters import TopicFilter
from dss_core.limits import ACKED_RANGES_MAX
from dss_core.progress import Progress
from dss_sim.played_groups import Plant
from dssd.leaders.filtered_lag import CountBudget
from dssd.leaders.lag import selects_whole
from dssd.leaders.progress_columns import packed_ranges
from dssd.machines.messages import (
    LeaderConnectResponse,
    ProgressSaved,
    Stall,
    StreamReport,
    UpdateProgress,
)
from dssd.machines.start_point import Earliest
from dssd.store.port import Put
from dssd.store.rows import CeilingRow, LeaderRow, ProgressRow
from dssd.topics.catalogue import NewTopic

UNREADABLE = "cannot be read behind 4; the read is tried again"
DAMAGED = "holds damaged records behind 4, and the group stalls at damage"


def progress_row(group_id: int, stream: tuple[int, int], floor: int, ranges: bytes) -> ProgressRow:
    return ProgressRow(group_id, *stream, floor, ranges, floor, b"", False, 0)


async def test_lag_is_counted_from_rows_without_starting_a_leader(plant: Plant) -> None:
    streams = await plant.topic("orders", 3)
    for stream, records in zip(streams, (10, 20, 0), strict=True):
        await plant.publish(stream, records or 1)
    group = await plant.group("$share/g/orders/#", Earliest())
    ranges = packed_ranges(((6, 8), (9, 10)))
    await plant.store.commit([Put(progress_row(group.group_id, streams[0], 4, ranges))])
    survey = await plant.registry.survey(group)
    assert [one.lag for one in survey.streams] == [3, 20, 1]
    assert (survey.lag, survey.lag_exact) == (24, True)
    assert (survey.state, survey.leader_epoch, survey.members) == ("idle", 0, ())
    assert survey.oldest_unacked_us == await plant.log.time_at(streams[0], 4)
    assert plant.registry.snapshot(group.group_id) is None
    assert await plant.store.scan(LeaderRow) == []


async def test_offsets_that_no_record_has_are_no_backlog(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 5)
    await plant.stop()
    await plant.store.commit([Put(CeilingRow(*stream, 100))])
    await plant.start()
    group = await plant.group("$share/g/orders/#", Earliest())
    assert (await plant.registry.survey(group)).lag == 5
    await plant.publish(stream, 3)
    row = progress_row(group.group_id, stream, 4, packed_ranges(((5, 101),)))
    await plant.store.commit([Put(row)])
    survey = await plant.registry.survey(group)
    assert (survey.lag, survey.lag_exact) == (3, True), "of 4, 101 and 102"


async def test_a_group_without_backlog_has_no_oldest_record(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 10)
    survey = await plant.registry.survey(await plant.group("$share/g/orders/#"))
    assert (survey.lag, survey.lag_exact, survey.oldest_unacked_us) == (0, True, None)


async def test_lag_is_an_upper_bound_where_the_filter_takes_a_part_of_a_topic(
    plant: Plant,
) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 10, "orders/us")
    survey = await plant.registry.survey(await plant.group("$share/g/orders/eu/#", Earliest()))
    assert (survey.lag, survey.lag_exact) == (10, False)


async def test_what_a_filter_takes_is_counted_as_far_as_the_budget_goes(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    for subject, records in (("us", 10), ("eu/a", 3), ("us", 5), ("eu/b", 2), ("us", 1)):
        await plant.publish(stream, records, f"orders/{subject}")
    group = await plant.group("$share/g/orders/eu/#", Earliest())
    row = progress_row(group.group_id, stream, 2, packed_ranges(((11, 12),)))
    await plant.store.commit([Put(row)])
    survey = await plant.registry.survey(group, budget=CountBudget())
    assert (survey.lag, survey.lag_exact) == (4, True), "10, 12, 18 and 19"
    assert survey.oldest_unacked_us == await plant.log.time_at(stream, 10)
    assert survey.streams[0].oldest_unacked_us == survey.oldest_unacked_us
    spent = CountBudget(reads=1)
    survey = await plant.registry.survey(group, budget=spent)
    assert (survey.lag, survey.lag_exact, spent.spent) == (18, False, True)


async def test_a_group_whose_filter_rejects_all_that_is_left_has_no_backlog(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 10, "orders/us")
    group = await plant.group("$share/g/orders/eu/#", Earliest())
    survey = await plant.registry.survey(group, budget=CountBudget())
    assert (survey.lag, survey.lag_exact, survey.oldest_unacked_us) == (0, True, None)


async def test_a_stream_born_after_the_declaration_counts_from_zero(plant: Plant) -> None:
    group = await plant.group("$share/g/#")
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 10)
    assert (await plant.registry.survey(group)).lag == 10


async def test_a_live_group_shows_its_leaders_memory(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 10)
    group = await plant.group("$share/g/orders/#", Earliest())
    ann, bob = plant.member(group, "ann"), plant.member(group, "bob")
    ann.want()
    bob.want()
    await bob.next(LeaderConnectResponse)
    async with asyncio.timeout(60):
        [granted] = await ann.granted(1)
    ann.report(granted, 4)
    await ann.next(ProgressSaved)
    survey = await plant.registry.survey(group)
    assert survey.state == "active"
    assert survey.leader_epoch == 1
    assert survey.lag == 6
    assert [(one.client_id, one.streams) for one in survey.members] == [("ann", 1), ("bob", 0)]
    [one] = survey.streams
    assert (one.view.state, one.view.client_id, one.end) == ("granted", "ann", 10)


async def test_a_stream_whose_holder_is_stalled_shows_so_at_once(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 10)
    group = await plant.group("$share/g/orders/#", Earliest())
    ann = plant.member(group, "ann")
    ann.want()
    async with asyncio.timeout(60):
        [granted] = await ann.granted(1)
        for stall, state, reason in (
            (Stall.UNACKED, "stalled", "orders/0/0 waits for the record at 4"),
            (Stall.UNREADABLE, "stalled", f"orders/0/0 {UNREADABLE}"),
            (Stall.DAMAGED, "stalled", f"orders/0/0 {DAMAGED}"),
            (Stall.NONE, "active", ""),
        ):
            stuck = StreamReport(stream, granted.grant_epoch, Progress(4), 10, sent=10, stall=stall)
            update = UpdateProgress(ann.borrower_id, ann.epoch, (stuck,))
            plant.registry.to_leader(group.group_id, update)
            while (await ann.next(ProgressSaved)).progress != Progress(4):
                pass
            survey = await plant.registry.survey(group)
            assert (survey.state, survey.reason) == (state, reason)


async def test_a_stream_at_the_cap_of_ranges_shows_as_stalled(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#", Earliest())
    ranges = packed_ranges(tuple((2 * at + 1, 2 * at + 2) for at in range(ACKED_RANGES_MAX)))
    await plant.store.commit([Put(progress_row(group.group_id, stream, 0, ranges))])
    survey = await plant.registry.survey(group)
    assert survey.state == "stalled"
    assert survey.reason == "orders/0/0 waits for the record at 0"


async def test_rows_of_a_removed_topic_count_nothing(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 10)
    group = await plant.group("$share/g/orders/#", Earliest())
    await plant.catalogue.remove("orders")
    survey = await plant.registry.survey(group)
    assert (survey.lag, survey.streams) == (0, ())


@pytest.mark.parametrize(
    ("wanted", "patterns", "whole"),
    [
        ("orders/#", ("orders/#",), True),
        ("#", ("orders/#",), True),
        ("orders/+/eu", ("orders/a/eu", "orders/+/eu"), True),
        ("orders/#", ("orders",), True),
        ("+/#", ("orders/#",), True),
        ("orders/+", ("orders/#",), False),
        ("orders/eu/#", ("orders/#",), False),
        ("orders/eu", ("orders/+",), False),
        ("orders/#", ("orders/#", "bills/#"), False),
        ("orders", ("orders/#",), False),
        ("#", ("$system/#",), False),
        ("#", ("#",), True),
        ("a/b/#", ("a",), False),
    ],
)
async def test_a_filter_selects_whole_topics_or_says_that_it_does_not(
    plant: Plant, wanted: str, patterns: tuple[str, ...], whole: bool
) -> None:
    topic = await plant.catalogue.create(NewTopic("orders", 1, patterns=patterns))
    assert selects_whole(TopicFilter.parse(wanted), topic) is whole
