"""The servicers of groups and grants, called as gRPC calls them, over a real log and registry."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dss_api.v1 import groups_pb2, types_pb2
from dss_core.errors import (
    FilterUnreadable,
    GroupAmbiguous,
    GroupExists,
    GroupNotFound,
    IllegalArgument,
    IllegalFilter,
    OrderUnreadable,
    QueueWithoutGroup,
    StartConflict,
    StreamNotRead,
)
from dss_core.filters import SubscriptionFilter
from dss_sim.played_groups import Plant
from dssd.leaders.declarations import QUEUE_RECORDS
from dssd.leaders.lag import GroupSurvey
from dssd.leaders.unused_groups import UnusedGroups
from dssd.loop_yield import LoopTurn
from dssd.questions.questions import Questions
from dssd.rpc.groups import GrantsServicer, GroupsServicer
from dssd.store.memory import MemoryStore
from dssd.store.rows import GroupRow
from support.loop_yields import turns_of_others

STREAMS = 50

NOBODY: Any = None
NO_OPERATIONS: Any = SimpleNamespace(kind_of=None, newest=list)
"""No sessions and no operations: what asks them is tested in `tests/dssd/questions`."""
NO_CONTEXT: Any = None
"""These handlers do not ask their context anything."""


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Plant]:
    made = Plant(tmp_path, MemoryStore())
    await made.start()
    yield made
    await made.stop()


def questions_of(plant: Plant) -> Questions:
    parts = (plant.groups, plant.registry, plant.catalogue, plant.log)
    return Questions(*parts, NOBODY, NO_OPERATIONS, plant.clock)


def unused_of(plant: Plant) -> UnusedGroups:
    return UnusedGroups(plant.store, plant.groups, plant.registry, plant.clock)


@pytest.fixture
def groups(plant: Plant) -> GroupsServicer:
    return GroupsServicer(
        plant.groups, plant.registry, plant.catalogue, questions_of(plant), unused_of(plant)
    )


@pytest.fixture
def grants(plant: Plant) -> GrantsServicer:
    return GrantsServicer(plant.groups, plant.registry, questions_of(plant).sampler)


def earliest() -> types_pb2.Start:
    return types_pb2.Start(earliest=True)


async def create(
    groups: GroupsServicer,
    text: str,
    start: types_pb2.Start | None = None,
    *,
    ack_wait_ms: int | None = None,
    if_not_exists: bool = False,
) -> groups_pb2.Group:
    request = groups_pb2.CreateGroupRequest(
        filter=text, start=start, ack_wait_ms=ack_wait_ms, if_not_exists=if_not_exists
    )
    return await groups.Create(request, NO_CONTEXT)


async def test_a_group_is_created_with_queues_and_says_so(groups: GroupsServicer) -> None:
    request = groups_pb2.CreateGroupRequest(
        filter="$share/billing/orders/#", max_deliver=3, backoff_ms=[0, 20], queue_bytes=7
    )
    made = await groups.Create(request, NO_CONTEXT)
    assert (made.max_deliver, list(made.backoff_ms)) == (3, [0, 20])
    assert (made.queue_records, made.queue_bytes) == (QUEUE_RECORDS, 7)
    assert (made.retrying, made.dead) == (0, 0)


async def test_a_plain_group_says_nothing_of_queues(groups: GroupsServicer) -> None:
    made = await create(groups, "$share/billing/orders/#")
    assert (made.max_deliver, list(made.backoff_ms), made.queue_records) == (0, [], 0)


async def test_a_created_group_is_described_as_it_stands(
    plant: Plant, groups: GroupsServicer
) -> None:
    streams = await plant.topic("orders", 2)
    await plant.publish(streams[1], 5)
    made = await create(groups, "$queue/work/orders/#", start=earliest(), ack_wait_ms=1_000)
    assert (made.name, made.filter, made.start) == ("work", "orders/#", "earliest")
    assert made.kind == groups_pb2.GROUP_KIND_QUEUE
    assert (made.state, made.borrowers, made.streams) == ("idle", 0, 2)
    assert (made.lag, made.lag_exact, made.leader_epoch) == (5, True, 0)
    assert made.oldest_unacked_us == await plant.log.time_at(streams[1], 0)
    assert made.ack_wait_ms == 1_000


@pytest.mark.parametrize("is_named", [False, True])
async def test_a_stream_that_went_since_the_group_was_asked_has_no_offsets(
    plant: Plant, groups: GroupsServicer, monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    await plant.topic("orders", 1)
    topic_id = plant.catalogue.get("orders").topic_id
    await plant.catalogue.add_storage_topic(topic_id, 1, 2)
    await plant.catalogue.switch(topic_id, 1)
    await create(groups, "$share/billing/orders/#", start=earliest())
    survey = plant.registry.survey

    async def and_it_goes(group: GroupRow, turn: LoopTurn) -> GroupSurvey:
        found = await survey(group, turn)
        await plant.catalogue.drop_storage_topics(topic_id, [0])
        return found

    monkeypatch.setattr(plant.registry, "survey", and_it_goes)
    named = ["orders/0/0"] if is_named else []
    request = groups_pb2.GroupOffsetsRequest(group="billing", streams=named)
    if is_named:
        with pytest.raises(StreamNotRead):
            await groups.Offsets(request, NO_CONTEXT)
    else:
        reply = await groups.Offsets(request, NO_CONTEXT)
        found = [(each.ordinal, each.partition, each.partitions) for each in reply.streams]
        assert found == [(1, 0, 2), (1, 1, 2)]


async def test_a_group_speaks_the_protocol_that_was_asked_for_or_borrows(
    groups: GroupsServicer,
) -> None:
    assert (await create(groups, "$share/g/orders/#")).protocol == groups_pb2.GROUP_PROTOCOL_BORROW
    lease = groups_pb2.GROUP_PROTOCOL_LEASE
    request = groups_pb2.CreateGroupRequest(filter="$share/l/orders/#", protocol=lease)
    assert (await groups.Create(request, NO_CONTEXT)).protocol == lease
    unknown: Any = 99
    request = groups_pb2.CreateGroupRequest(filter="$share/x/orders/#", protocol=unknown)
    with pytest.raises(IllegalArgument):
        await groups.Create(request, NO_CONTEXT)


async def test_without_a_start_it_begins_now(plant: Plant, groups: GroupsServicer) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 5)
    made = await create(groups, "$share/g/orders/#")
    assert (made.start, made.lag) == ("now", 0)
    assert not made.HasField("oldest_unacked_us")


async def test_members_and_their_grants_are_described(
    plant: Plant, groups: GroupsServicer, grants: GrantsServicer
) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 5)
    await create(groups, "$share/g/orders/#", start=earliest())
    ann, bob = (plant.member(plant.groups.find("g"), name) for name in ("ann", "bob"))
    ann.want()
    bob.want()
    await ann.granted(1)
    described = await groups.Describe(
        groups_pb2.DescribeGroupRequest(group="g@orders/#"), NO_CONTEXT
    )
    assert (described.group.borrowers, described.group.standby) == (2, 1)
    assert [(one.client_id, one.streams, one.standby) for one in described.borrowers] == [
        ("ann", 1, False),
        ("bob", 0, True),
    ]
    [grant] = described.grants
    assert (grant.stream, grant.client_id, grant.grant_epoch) == ("orders/0/0", "ann", 1)
    assert (grant.end, grant.lag, grant.progress.floor) == (5, 5, 0)
    listed = await grants.List(groups_pb2.ListGrantsRequest(group="g"), NO_CONTEXT)
    assert [one.stream for one in listed.grants] == ["orders/0/0"]


async def test_private_groups_are_listed_only_when_asked_for(
    plant: Plant, groups: GroupsServicer, grants: GrantsServicer
) -> None:
    await plant.topic("orders", 1)
    await create(groups, "$share/b/orders/#")
    await create(groups, "$share/a/orders/#")
    await plant.groups.join(
        SubscriptionFilter.parse("orders/#"),
        start=None,
        ack_wait_ms=None,
        session_id=b"s" * 16,
        subscription=1,
    )
    some = await groups.List(groups_pb2.ListGroupsRequest(), NO_CONTEXT)
    assert [group.name for group in some.groups] == ["a", "b"]
    every = await groups.List(groups_pb2.ListGroupsRequest(all=True), NO_CONTEXT)
    assert [group.kind for group in every.groups].count(groups_pb2.GROUP_KIND_EXCLUSIVE) == 1
    listed = await grants.List(groups_pb2.ListGrantsRequest(), NO_CONTEXT)
    assert len(listed.grants) == 3


async def test_removing_tells_whether_there_was_anything(
    plant: Plant, groups: GroupsServicer
) -> None:
    await create(groups, "$share/g/orders/#")
    request = groups_pb2.RemoveGroupRequest(group="g", if_exists=True)
    assert (await groups.Remove(request, NO_CONTEXT)).removed
    assert not (await groups.Remove(request, NO_CONTEXT)).removed
    with pytest.raises(GroupNotFound):
        await groups.Remove(groups_pb2.RemoveGroupRequest(group="g"), NO_CONTEXT)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("orders/#", IllegalArgument),
        ("$queue/orders", QueueWithoutGroup),
        ("$share/g", IllegalFilter),
        ("", IllegalFilter),
        ("$share/g/a/#/b", IllegalFilter),
    ],
)
async def test_text_that_names_no_group_is_refused(
    groups: GroupsServicer, text: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await create(groups, text)


async def test_conflicts_have_their_own_conditions(groups: GroupsServicer) -> None:
    await create(groups, "$share/g/orders/#", start=earliest())
    with pytest.raises(GroupExists):
        await create(groups, "$share/g/orders/#")
    with pytest.raises(StartConflict):
        await create(
            groups, "$share/g/orders/#", start=types_pb2.Start(now=True), if_not_exists=True
        )
    await create(groups, "$share/g/bills/#")
    with pytest.raises(GroupAmbiguous):
        await groups.Describe(groups_pb2.DescribeGroupRequest(group="g"), NO_CONTEXT)


@pytest.mark.usefixtures("short_turns")
async def test_many_streams_are_listed_with_others_in_between(
    plant: Plant, groups: GroupsServicer, grants: GrantsServicer
) -> None:
    await plant.topic("wide", STREAMS)
    await create(groups, "$share/g/wide/#")
    listed = groups.List(groups_pb2.ListGroupsRequest(), NO_CONTEXT)
    assert await turns_of_others(listed) >= STREAMS
    described = groups.Describe(groups_pb2.DescribeGroupRequest(group="g"), NO_CONTEXT)
    assert await turns_of_others(described) >= 2 * STREAMS
    granted = grants.List(groups_pb2.ListGrantsRequest(), NO_CONTEXT)
    assert await turns_of_others(granted) >= 2 * STREAMS


@pytest.mark.usefixtures("short_turns")
async def test_a_topic_may_be_removed_while_a_group_is_surveyed(
    plant: Plant, groups: GroupsServicer
) -> None:
    await plant.topic("wide", STREAMS)
    await plant.topic("kept", 1)
    await create(groups, "$share/g/#")
    listing = asyncio.create_task(groups.List(groups_pb2.ListGroupsRequest(), NO_CONTEXT))
    await asyncio.sleep(0)
    await plant.catalogue.remove("wide")
    [listed] = (await listing).groups
    assert 1 <= listed.streams <= STREAMS + 1


async def test_a_list_is_filtered_sorted_and_paged_by_the_daemon(
    plant: Plant, groups: GroupsServicer
) -> None:
    (stream,) = await plant.topic("orders", 1)
    for name, records in (("a", 3), ("b", 2), ("c", 0)):
        await create(groups, f"$share/{name}/orders/#")
        await plant.publish(stream, records or 1)

    async def listed(**asked: Any) -> tuple[list[str], str]:  # noqa: ANN401 - fields of a request
        reply = await groups.List(groups_pb2.ListGroupsRequest(**asked), NO_CONTEXT)
        return [group.name for group in reply.groups], reply.next_page_token

    assert await listed(filter="lag>1,state=idle", sort="-lag") == (["b", "a"], "")
    first, token = await listed(sort="lag", page_size=2)
    assert first == ["a", "b"]
    assert await listed(sort="lag", page_size=2, page_token=token) == (["c"], "")
    with pytest.raises(IllegalArgument):
        await listed(page_token="17x")
    with pytest.raises(FilterUnreadable):
        await listed(filter="lag>")
    with pytest.raises(OrderUnreadable):
        await listed(sort="colour")
