"""Leaders of groups that have queues, over a real catalogue."""

import asyncio

import pytest

from dss_core.errors import DiskFull, GroupExists
from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.played_groups import Member, Plant
from dssd.leaders import lane_topics
from dssd.leaders.declarations import AskedRetries
from dssd.machines.messages import Grant, GrantedStream, ProgressSaved, StreamReport, UpdateProgress
from dssd.machines.queues import Queues, QueueState
from dssd.store.rows import GroupRow, ProgressRow
from dssd.topics.catalogue import Topic

RETRIES = AskedRetries(3, (10, 20), 5, 6)


async def laned(plant: Plant, retries: AskedRetries = RETRIES) -> GroupRow:
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    return await plant.groups.declare(parsed, retries=retries)


def said(granted: GrantedStream, queues: Queues, floor: int = 0) -> StreamReport:
    return StreamReport(
        granted.stream, granted.grant_epoch, Progress(floor), floor, sent=floor, queues=queues
    )


async def report_queues(member: Member, granted: GrantedStream, queues: Queues) -> None:
    message = UpdateProgress(member.borrower_id, member.epoch, (said(granted, queues),))
    member.plant.registry.to_leader(member.group.group_id, message)
    while (await member.next(ProgressSaved)).queues != queues:
        pass


async def test_a_group_with_queues_has_them_before_a_stream_is_lent(plant: Plant) -> None:
    streams = await plant.topic("orders", 2)
    group = await laned(plant)
    ann = plant.member(group, "ann")
    ann.want()
    for granted in await ann.granted(2):
        named = plant.catalogue.queues_of(group.group_id, granted.stream)
        assert named is not None
        assert granted.queues == tuple(map(QueueState, named))
    assert len(streams) == 2


async def test_a_topic_that_appears_is_lent_with_its_queues(plant: Plant) -> None:
    group = await laned(plant)
    ann = plant.member(group, "ann")
    ann.want()
    await plant.topic("orders", 1)
    [granted] = await ann.granted(1)
    assert len(granted.queues) == 2


async def test_a_topic_that_goes_while_its_queues_are_made_is_not_lent(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = await laned(plant)
    ann = plant.member(group, "ann")
    ann.want()
    usual, making, go_on = plant.catalogue.make_queues, asyncio.Event(), asyncio.Event()

    async def make_late(group_id: int, topic: Topic) -> None:
        making.set()
        await go_on.wait()
        await usual(group_id, topic)

    monkeypatch.setattr(plant.catalogue, "make_queues", make_late)
    await plant.topic("orders", 1)
    await making.wait()
    await plant.catalogue.remove("orders")
    go_on.set()
    [new] = await plant.topic("orders", 1)
    grant = await ann.next(Grant)
    assert [each.stream for each in grant.streams] == [new]


async def test_what_is_known_of_queues_survives_a_restart(plant: Plant) -> None:
    await plant.topic("orders", 1)
    group = await laned(plant)
    ann = plant.member(group, "ann")
    ann.want()
    [granted] = await ann.granted(1)
    retry, dead = (each.stream for each in granted.queues)
    queues = (QueueState(retry, Progress(1), 3), QueueState(dead, Progress(0), 1))
    await report_queues(ann, granted, queues)
    await plant.stop()
    assert await floor_of(plant, group, retry) == 1
    await plant.start()
    bob = plant.member(plant.groups.get(group.group_id), "bob")
    bob.want()
    [again] = await bob.granted(1)
    assert again.queues == queues


async def floor_of(plant: Plant, group: GroupRow, stream: StreamId) -> int:
    found = await plant.store.read(ProgressRow, (group.group_id, *stream))
    assert found is not None
    return found.row.floor


async def test_a_queue_of_which_nothing_is_known_has_no_row(plant: Plant) -> None:
    await plant.topic("orders", 1)
    group = await laned(plant)
    ann = plant.member(group, "ann")
    ann.want()
    [granted] = await ann.granted(1)
    retry, dead = granted.queues
    await report_queues(ann, granted, (QueueState(retry.stream, Progress(0), 1), dead))
    assert await floor_of(plant, group, retry.stream) == 0
    assert await plant.store.read(ProgressRow, (group.group_id, *dead.stream)) is None


async def test_queues_are_made_once_the_disk_has_room(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_topics, "FULL_DISK_RETRY_S", 0.005)
    group = await laned(plant)
    ann = plant.member(group, "ann")
    ann.want()
    usual, tries = plant.catalogue.make_queues, 0

    async def make_at_the_third(group_id: int, topic: Topic) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise DiskFull
        await usual(group_id, topic)

    monkeypatch.setattr(plant.catalogue, "make_queues", make_at_the_third)
    await plant.topic("orders", 1)
    [granted] = await ann.granted(1)
    assert granted.queues


async def test_a_leader_that_finds_no_room_for_queues_is_asked_for_again(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await plant.topic("orders", 1)
    group = await laned(plant)
    usual, refused = plant.catalogue.make_queues, asyncio.Event()

    async def refuse(group_id: int, topic: Topic) -> None:
        refused.set()
        raise DiskFull

    monkeypatch.setattr(plant.catalogue, "make_queues", refuse)
    ann = plant.member(group, "ann")
    ann.want()
    await refused.wait()
    monkeypatch.setattr(plant.catalogue, "make_queues", usual)
    while plant.registry.snapshot(group.group_id) is None:
        ann.want()
        await asyncio.sleep(0)
    assert len(await ann.granted(1)) == 1


async def test_the_rows_of_queues_go_with_the_group(plant: Plant) -> None:
    await plant.topic("orders", 1)
    group = await laned(plant)
    ann = plant.member(group, "ann")
    ann.want()
    [granted] = await ann.granted(1)
    retry, dead = granted.queues
    await report_queues(ann, granted, (QueueState(retry.stream, Progress(0), 1), dead))
    await plant.groups.remove(group.group_id)
    assert await plant.store.scan(ProgressRow) == []
    assert plant.catalogue.internal_topics() == ()


async def test_declared_again_a_group_must_be_as_it_is_said_to_be(plant: Plant) -> None:
    group = await laned(plant)
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    for asked in (RETRIES, AskedRetries(), AskedRetries(3)):
        again = await plant.groups.declare(parsed, if_not_exists=True, retries=asked)
        assert again == group
    with pytest.raises(GroupExists):
        await plant.groups.declare(parsed, if_not_exists=True, retries=AskedRetries(4))


async def test_a_plain_group_makes_no_queues(plant: Plant) -> None:
    await plant.topic("orders", 1)
    group = await plant.group("$share/plain/orders/#")
    ann = plant.member(group, "ann")
    ann.want()
    [granted] = await ann.granted(1)
    assert granted.queues == ()
    assert plant.catalogue.internal_topics() == ()
