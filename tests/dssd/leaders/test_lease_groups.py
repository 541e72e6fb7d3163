"""Groups of the lease protocol over real leaders: what is durable, and what is left of it."""

import pytest

from dss_core.errors import GroupExists
from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.played_groups import Member, Plant
from dssd.machines.messages import (
    Disconnect,
    LeaseStreams,
    RenewStreamLease,
    StreamReport,
    TakenState,
    UpdateStreams,
    UpdateStreamStates,
)
from dssd.store.rows import GroupRow, LeaderRow, StreamSetRow

PARSED = SubscriptionFilter.parse("$share/g/orders/#")


async def lease_group(plant: Plant) -> GroupRow:
    return await plant.groups.declare(PARSED, protocol="lease")


async def versions(plant: Plant) -> dict[bytes, int]:
    found = await plant.store.scan(StreamSetRow)
    return {each.row.session_id: each.row.set_version for each in found}


def report(stream: StreamId, grant_epoch: int) -> StreamReport:
    return StreamReport(stream, grant_epoch, Progress(0), 0, sent=0)


def show(member: Member, got: LeaseStreams | UpdateStreams, *, final: bool = False) -> None:
    """Answer a set: all of it is held, and what is taken over is given back or not."""
    taken = got.taken_over if isinstance(got, UpdateStreams) else ()
    message = UpdateStreamStates(
        member.borrower_id,
        got.leader_epoch,
        1,
        got.version,
        tuple(report(each.stream, each.grant_epoch) for each in got.streams),
        None,
        tuple(TakenState(report(each.stream, each.grant_epoch), final) for each in taken),
        asks_renewal=True,
    )
    member.plant.registry.to_leader(member.group.group_id, message)


async def settled(member: Member) -> LeaseStreams:
    """The member asks, gets its first set and shows it."""
    member.want()
    got = await member.next(LeaseStreams)
    show(member, got)
    await member.next(RenewStreamLease)
    return got


async def test_a_set_is_durable_with_its_version_when_it_is_said(plant: Plant) -> None:
    streams = await plant.topic("orders", 3)
    group = await lease_group(plant)
    ann = plant.member(group, "ann")
    ann.want()
    got = await ann.next(LeaseStreams)
    assert [each.stream for each in got.streams] == list(streams)
    assert await versions(plant) == {b"ann": got.version}


async def test_a_second_member_gets_half_by_the_whole_handshake(plant: Plant) -> None:
    await plant.topic("orders", 4)
    group = await lease_group(plant)
    ann, bob = plant.member(group, "ann"), plant.member(group, "bob")
    await settled(ann)
    bob.want()
    update = await ann.next(UpdateStreams)
    assert (len(update.streams), len(update.taken_over)) == (2, 2)
    show(ann, update, final=True)
    first = await bob.next(LeaseStreams)
    show(bob, first)
    held = len(first.streams)
    while held < 2:
        got = await bob.next(UpdateStreams)
        show(bob, got)
        held = len(got.streams)
    view = plant.registry.snapshot(group.group_id)
    assert view is not None
    assert sorted(member.streams for member in view.members) == [2, 2]


async def test_versions_go_on_under_the_next_leader(plant: Plant) -> None:
    await plant.topic("orders", 1)
    group = await lease_group(plant)
    ann = plant.member(group, "ann")
    got = await settled(ann)
    await plant.stop()
    await plant.start()
    back = plant.member(plant.groups.find("g"), "ann again", "ann")
    assert (await settled(back)).version > got.version


async def test_nothing_is_left_of_a_session_that_said_goodbye(plant: Plant) -> None:
    await plant.topic("orders", 2)
    group = await lease_group(plant)
    ann, bob = plant.member(group, "ann"), plant.member(group, "bob")
    await settled(ann)
    plant.registry.to_leader(group.group_id, Disconnect(b"ann", ann.epoch, ()))
    await settled(bob)
    assert set(await versions(plant)) == {b"bob"}


async def test_nothing_is_left_of_a_removed_group(plant: Plant) -> None:
    await plant.topic("orders", 1)
    group = await lease_group(plant)
    await settled(plant.member(group, "ann"))
    await plant.groups.remove(group.group_id)
    assert await versions(plant) == {}
    assert await plant.store.scan(LeaderRow) == []


async def test_an_existing_group_of_another_protocol_is_an_error(plant: Plant) -> None:
    group = await lease_group(plant)
    assert group.protocol == "lease"
    assert await plant.groups.declare(PARSED, if_not_exists=True) == group
    assert await plant.groups.declare(PARSED, if_not_exists=True, protocol="lease") == group
    with pytest.raises(GroupExists):
        await plant.groups.declare(PARSED, if_not_exists=True, protocol="borrow")
