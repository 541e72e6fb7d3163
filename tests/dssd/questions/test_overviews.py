"""What a list shows of each group: as a survey says, worked out only where something changed."""

import asyncio
from dataclasses import replace

import pytest

from dss_core.changes import SkipRecords
from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.played_groups import LOOK_AGAIN_S, PATIENCE_S
from dss_sim.played_sessions import Hall
from dssd.leaders.filtered_lag import CountBudget
from dssd.machines.fate import NO_COUNTS
from dssd.machines.messages import StreamReport, UpdateProgress
from dssd.machines.start_point import Earliest
from dssd.operations.operations import Caller, Operations
from dssd.questions.overviews import Overview
from dssd.questions.questions import Questions
from dssd.store.rows import ProgressRow
from support.lane_rows import laned_group, queues_of, store_lane

GROUP = "$share/g/orders/#"


async def overview(questions: Questions) -> Overview:
    (found,) = await questions.overviews.all()
    return found


async def agrees(hall: Hall, questions: Questions) -> Overview:
    """The overview, which says what a survey says where no leader came or went between the two."""
    (group,) = hall.plant.groups.groups()
    registry = hall.plant.registry
    async with asyncio.timeout(PATIENCE_S):
        while True:
            before_ms = registry.leader_since_ms(group.group_id)
            found = await overview(questions)
            survey = await registry.survey(group)
            since_ms = registry.leader_since_ms(group.group_id)
            if since_ms == before_ms:
                assert found == Overview.of_survey(group, survey, questions.sampler, since_ms)
                return found


async def until_lag(questions: Questions, lag: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await overview(questions)).lag != lag:  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)


async def orders(hall: Hall, records: int) -> tuple[StreamId, ...]:
    streams = await hall.plant.topic("orders", 2)
    await hall.plant.publish(streams[0], records)
    await hall.plant.group(GROUP, Earliest())
    return streams


async def test_an_overview_follows_a_group_from_its_rows_over_a_leader_to_its_rows(
    hall: Hall, questions: Questions
) -> None:
    streams = await orders(hall, 5)
    assert (await agrees(hall, questions)).lag == 5
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        grant = (await client.records(5))[0][0]
        await agrees(hall, questions)
        await client.ack(grant, 0, 3)
        await until_lag(questions, 2)
        assert (await agrees(hall, questions)).state in ("active", "rebalancing")
        await hall.plant.publish(streams[1], 4)
        assert (await agrees(hall, questions)).lag == 6
        await hall.plant.publish(streams[0], 3)
        assert (await agrees(hall, questions)).lag == 9
    (group,) = hall.plant.groups.groups()
    async with asyncio.timeout(PATIENCE_S):
        while hall.plant.registry.snapshot(group.group_id):  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)
    assert (await agrees(hall, questions)).state == "idle"


async def test_rows_are_read_again_after_a_leader_was_there_between_two_looks(
    hall: Hall, questions: Questions, operations: Operations
) -> None:
    await orders(hall, 5)
    assert (await overview(questions)).lag == 5
    row = await operations.apply(
        SkipRecords("g", "orders/0/0", 0, 2), caller=Caller("local:ana", "unix:")
    )
    (group,) = hall.plant.groups.groups()
    async with asyncio.timeout(PATIENCE_S):
        while operations.get(row.number).state != "done":  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)
        while hall.plant.registry.snapshot(group.group_id):  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)
    assert (await agrees(hall, questions)).lag == 3


async def test_nothing_is_read_of_a_group_that_did_not_change(
    hall: Hall, questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    await orders(hall, 5)
    before = await overview(questions)

    def not_again(*_: object, **__: object) -> None:
        raise AssertionError("it is known")

    monkeypatch.setattr(hall.plant.store, "scan", not_again)
    monkeypatch.setattr(hall.plant.log, "count", not_again)
    monkeypatch.setattr(hall.plant.log, "time_at", not_again)
    assert await overview(questions) == before


async def test_a_topic_that_comes_or_goes_is_noticed(hall: Hall, questions: Questions) -> None:
    await orders(hall, 5)
    await overview(questions)
    await hall.plant.catalogue.remove("orders")
    assert (await overview(questions)).streams == 0
    (stream,) = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 1)
    found = await overview(questions)
    assert (found.streams, found.lag) == (1, 1)


async def test_rates_and_the_age_of_the_oldest_record_come_from_samples(
    hall: Hall, questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = await orders(hall, 1)
    clock, sampler = hall.plant.clock, questions.sampler
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        grant = (await client.records(1))[0][0]
        await client.ack(grant, 0, 1)
        await until_lag(questions, 0)
        at_ms = clock.now_ms()
        monkeypatch.setattr(type(clock), "now_ms", lambda _self: at_ms)
        await sampler.look()
        await hall.plant.publish(streams[0], 50)
        at_ms += 5_000
        await sampler.look()
        found = await overview(questions)
        assert found.arrivals.minute == pytest.approx(10)
        assert found.acks.minute == 0
        assert found.drain_ms is None
        floor_us = found.oldest_unacked_us
        assert floor_us is not None
        assert floor_us <= clock.wall_us() - 5_000_000
        group = found.group
        age = sampler.age_of(streams[0], 1)
        assert age is not None
        assert (age.ms, age.at_least) == (5_000, False)
        assert sampler.movement(group.group_id, streams[0]).still_ms == 5_000


async def test_a_list_after_a_removed_group_forgets_it(hall: Hall, questions: Questions) -> None:
    await orders(hall, 5)
    await overview(questions)
    (group,) = hall.plant.groups.groups()
    await hall.plant.groups.remove(group.group_id)
    assert await questions.overviews.all() == []
    assert not await hall.plant.store.scan(ProgressRow)


async def test_what_a_filter_takes_of_a_topic_is_counted_where_the_list_may_read(
    hall: Hall, questions: Questions
) -> None:
    (stream,) = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 3, "orders/us")
    await hall.plant.publish(stream, 2, "orders/eu")
    await hall.plant.group("$share/g/orders/eu", Earliest())
    bound = await overview(questions)
    assert (bound.lag, bound.lag_exact) == (5, False)
    (counted,) = await questions.overviews.all(budget=CountBudget())
    assert (counted.lag, counted.lag_exact) == (2, True)
    assert counted.oldest_unacked_us == await hall.plant.log.time_at(stream, 3)
    assert await overview(questions) == counted
    await hall.plant.publish(stream, 1, "orders/us")
    assert not (await overview(questions)).lag_exact
    (counted,) = await questions.overviews.all(budget=CountBudget())
    assert (counted.lag, counted.lag_exact) == (2, True)


async def test_a_look_that_is_given_up_hides_no_growth_from_the_next(
    hall: Hall, questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = await orders(hall, 5)
    await overview(questions)
    await hall.plant.publish(streams[0], 2)

    def given_up(_group_id: int) -> None:
        raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(hall.plant.registry, "glance", given_up)
        with pytest.raises(asyncio.CancelledError):
            await questions.overviews.all()
    assert (await overview(questions)).lag == 7


async def test_what_began_since_the_last_look_is_in_the_rates(
    hall: Hall, questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, sampler, shift_ms = hall.plant.clock, questions.sampler, 0
    now_ms = type(clock).now_ms
    monkeypatch.setattr(type(clock), "now_ms", lambda self: now_ms(self) + shift_ms)
    began_ms = clock.now_ms()
    await sampler.look()
    streams = await orders(hall, 50)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        grant = (await client.records(50))[0][0]
        await client.ack(grant, 0, 50)
        await until_lag(questions, 0)
        shift_ms += 5_000
        await sampler.look()
        per_s = 50_000 / (clock.now_ms() - began_ms)
        found = await overview(questions)
        assert found.fates.acked == 50
        for rates in (found.arrivals, found.acks):
            assert rates == pytest.approx((per_s, per_s), rel=0.1)
        of_stream = sampler.movement(found.group.group_id, streams[0])
        assert of_stream.acks.minute == pytest.approx(per_s, rel=0.1)
        shift_ms += 5_000
        await sampler.look()
    monkeypatch.setattr(hall.plant.registry, "live_progress", lambda _group_id: {})
    shift_ms += 5_000
    await sampler.look()
    assert (await overview(questions)).acks.five_minutes > 1, "also once its leader has ended"


async def test_what_was_there_at_the_first_look_is_in_no_rate(
    hall: Hall, questions: Questions
) -> None:
    await orders(hall, 50)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        grant = (await client.records(50))[0][0]
        await client.ack(grant, 0, 50)
        await until_lag(questions, 0)
        await questions.sampler.look()
        found = await overview(questions)
        assert (found.arrivals, found.acks) == ((0, 0), (0, 0))


async def test_what_waits_in_queues_is_counted_from_rows_and_from_reports(
    hall: Hall, questions: Questions
) -> None:
    (stream,) = await hall.plant.topic("orders", 1)
    group = await laned_group(hall.plant, GROUP)
    retry, dead = queues_of(hall.plant, group, stream)
    await hall.plant.publish(retry, 4)
    await hall.plant.publish(dead, 3)
    levels = [
        (Progress(0), NO_COUNTS),
        (Progress(1, ((2, 3),)), NO_COUNTS),
        (Progress(0), NO_COUNTS),
    ]
    await store_lane(hall.plant, group, stream, levels)
    found = await agrees(hall, questions)
    assert (found.retrying, found.dead) == (2, 3)
    ann = hall.plant.member(group, "ann")
    ann.want()
    [granted] = await ann.granted(1)
    queues = (replace(granted.queues[0], progress=Progress(4)), granted.queues[1])
    said = StreamReport(stream, granted.grant_epoch, Progress(0), 0, sent=0, queues=queues)
    hall.plant.registry.to_leader(
        group.group_id, UpdateProgress(ann.borrower_id, ann.epoch, (said,))
    )
    async with asyncio.timeout(PATIENCE_S):
        while (await overview(questions)).retrying:  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)
    assert (await agrees(hall, questions)).dead == 3
