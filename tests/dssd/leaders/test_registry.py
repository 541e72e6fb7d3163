import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dss_core.errors import DiskFull, GroupDestroyed, GroupNotFound
from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.played_groups import LOOK_AGAIN_S, PATIENCE_S, QUICK, Member, Plant
from dssd.leaders.actor import LeaderActor
from dssd.leaders.registry import Registry
from dssd.machines.leader.events import PauseGroup
from dssd.machines.messages import (
    Disconnect,
    Grant,
    Invalidate,
    LeaderConnectResponse,
    LeaderWanted,
    Ping,
    PingResponse,
    ProgressSaved,
    Revoke,
    Revoked,
    RevokeFinished,
)
from dssd.machines.start_point import Earliest
from dssd.store.port import Precondition, Put, Write
from dssd.store.rows import EventRow, GrantRow, GroupRow, LeaderRow, ProgressRow
from support.heard_events import Heard


async def stored_floor(plant: Plant, group: GroupRow, stream: StreamId) -> int:
    found = await plant.store.read(ProgressRow, (group.group_id, *stream))
    assert found is not None
    return found.row.floor


async def stored_grant(plant: Plant, group: GroupRow, stream: StreamId) -> GrantRow:
    found = await plant.store.read(GrantRow, (group.group_id, *stream))
    assert found is not None
    return found.row


async def leader_task(group: GroupRow) -> asyncio.Task[None]:
    [task] = [
        task
        for task in asyncio.all_tasks()
        if task.get_name() == f"leader of group {group.group_id}"
    ]
    return task


def goodbye(plant: Plant, member: Member, *reports: object) -> None:
    message = Disconnect(member.borrower_id, member.epoch, reports)  # type: ignore[arg-type]
    plant.registry.to_leader(member.group.group_id, message)


async def test_the_first_request_starts_the_leader_and_grants_what_is_stored(
    plant: Plant,
) -> None:
    streams = await plant.topic("orders", 3)
    await plant.publish(streams[1], 7)
    group = await plant.group("$share/g/orders/#")
    assert plant.registry.snapshot(group.group_id) is None
    ann = plant.member(group, "ann")
    ann.want()
    response = await ann.next(LeaderConnectResponse)
    assert response.leader_epoch == 1
    granted = await ann.granted(3)
    assert {one.stream: one.progress for one in granted} == {
        streams[0]: Progress(0),
        streams[1]: Progress(7),
        streams[2]: Progress(0),
    }
    assert (await stored_grant(plant, group, streams[0])).borrower_id == b"ann"


async def test_acknowledged_progress_is_durable_when_it_is_said_to_be(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 9)
    group = await plant.group("$share/g/orders/#", Earliest())
    ann = plant.member(group, "ann")
    ann.want()
    [granted] = await ann.granted(1)
    ann.report(granted, 6)
    while (await ann.next(ProgressSaved)).progress != Progress(6):
        pass
    assert await stored_floor(plant, group, stream) == 6


async def test_a_second_member_gets_half_by_the_whole_handshake(plant: Plant) -> None:
    await plant.topic("orders", 4)
    group = await plant.group("$share/g/orders/#")
    ann, bob = plant.member(group, "ann"), plant.member(group, "bob")
    ann.want()
    held = {one.stream: one for one in await ann.granted(4)}
    bob.want()
    for _ in range(2):
        revoke = await ann.next(Revoke)
        ann.report(held[revoke.stream], 0, final=True)
        revoked = await ann.next(Revoked)
        plant.registry.to_leader(
            group.group_id,
            RevokeFinished(b"ann", ann.epoch, revoked.stream, revoked.grant_epoch),
        )
    taken = await bob.granted(2)
    assert {one.grant_epoch for one in taken} == {2}
    view = plant.registry.snapshot(group.group_id)
    assert view is not None
    assert sorted(member.streams for member in view.members) == [2, 2]


async def test_a_closed_session_loses_its_streams_to_others_at_once(plant: Plant) -> None:
    await plant.topic("orders", 2)
    group = await plant.group("$share/g/orders/#")
    ann, bob = plant.member(group, "ann"), plant.member(group, "bob")
    ann.want()
    bob.want()
    await ann.granted(1)
    await bob.granted(1)
    plant.registry.session_closed(b"ann", {group.group_id}, None)
    [granted] = await bob.granted(1)
    assert granted.grant_epoch == 2


async def test_only_the_leaders_of_a_closed_session_hear_of_it(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await plant.topic("orders", 1)
    names = "mine", "theirs", "nobodys"
    mine, theirs, led_by_nobody = [await plant.group(f"$share/{name}/orders/#") for name in names]
    for group in (mine, theirs):
        member = plant.member(group, group.name)
        member.want()
        await member.granted(1)
    told: list[int] = []

    def hear(actor: LeaderActor, session_id: bytes, silent_ms: int | None) -> None:
        assert silent_ms == 3
        told.append(actor.group.group_id)

    monkeypatch.setattr(LeaderActor, "close_session", hear)
    plant.registry.session_closed(b"ann", {mine.group_id, led_by_nobody.group_id}, 3)
    assert told == [mine.group_id]


async def test_a_topic_that_is_made_later_joins_by_notification(plant: Plant) -> None:
    group = await plant.group("$share/g/#")
    ann = plant.member(group, "ann")
    ann.want()
    await ann.next(LeaderConnectResponse)
    streams = await plant.topic("orders", 2)
    granted = await ann.granted(2)
    assert {one.stream for one in granted} == set(streams)
    await plant.catalogue.remove("orders")
    gone = [await ann.next(Invalidate), await ann.next(Invalidate)]
    assert {message.stream for message in gone} == set(streams)


async def test_members_of_a_removed_group_are_told_and_cannot_bring_it_back(
    plant: Plant,
) -> None:
    await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#")
    ann = plant.member(group, "ann")
    ann.want()
    await ann.granted(1)
    await plant.groups.remove(group.group_id)
    assert (await ann.next(Invalidate)).reason == GroupDestroyed.code
    ann.want()
    assert (await ann.next(Invalidate)).reason == GroupDestroyed.code
    assert await plant.store.scan(LeaderRow) == []
    assert await plant.store.scan(GrantRow) == []


async def test_a_group_that_never_was_is_answered_too(plant: Plant) -> None:
    group = await plant.group("$share/g/orders/#")
    ann = plant.member(replace(group, group_id=group.group_id + 1_000), "ann")
    ann.want()
    assert (await ann.next(Invalidate)).reason == GroupNotFound.code


async def test_a_message_without_a_leader_is_lost(plant: Plant) -> None:
    group = await plant.group("$share/g/orders/#")
    plant.registry.to_leader(group.group_id, Ping(b"ann", 1, 0))
    assert plant.registry.snapshot(group.group_id) is None


async def test_a_leader_stops_when_its_group_is_idle_and_the_next_one_goes_on(
    plant: Plant,
) -> None:
    [stream] = await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#")
    ann = plant.member(group, "ann")
    ann.want()
    [granted] = await ann.granted(1)
    leading = await leader_task(group)
    goodbye(plant, ann, ann.report(granted, 4))
    await asyncio.wait([leading])
    assert plant.registry.snapshot(group.group_id) is None
    assert await stored_floor(plant, group, stream) == 4
    row = await stored_grant(plant, group, stream)
    assert (row.grant_epoch, row.session_id, row.borrower_id) == (1, None, None)
    bob = plant.member(group, "bob")
    bob.want()
    [again] = await bob.granted(1)
    assert bob.epoch == 2
    assert (again.grant_epoch, again.progress, again.suspect_end) == (2, Progress(4), 4)


async def test_a_leader_that_lost_its_claim_writes_nothing_and_stops(plant: Plant) -> None:
    # What the holder has is kept for it for longer than a slow machine takes.
    await plant.stop()
    await plant.start(replace(QUICK, reserve_percent=1_000))
    [stream] = await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#")
    ann = plant.member(group, "ann")
    ann.want()
    [granted] = await ann.granted(1)
    leading = await leader_task(group)
    usurper = LeaderRow(group.group_id, b"another", 9, 0)
    await plant.store.commit([Put(usurper)])
    held = ann.report(granted, 5)
    await asyncio.wait([leading])
    assert await stored_floor(plant, group, stream) == 0
    ann.want(held)
    assert (await ann.next(LeaderConnectResponse)).leader_epoch == 10
    # The next leader adopts the holder: what it reported counts, under the grant that it has.
    while (await ann.next(ProgressSaved)).progress != Progress(5):
        pass
    assert await stored_floor(plant, group, stream) == 5
    row = await stored_grant(plant, group, stream)
    assert (row.grant_epoch, row.borrower_id) == (granted.grant_epoch, b"ann")


async def test_a_graceful_stop_saves_progress_and_restores_each_sessions_streams(
    plant: Plant,
) -> None:
    streams = await plant.topic("orders", 2)
    group = await plant.group("$share/g/orders/#")
    ann, bob = plant.member(group, "ann"), plant.member(group, "bob")
    ann.want()
    bob.want()
    [of_ann], [of_bob] = await ann.granted(1), await bob.granted(1)
    goodbye(plant, ann, ann.report(of_ann, 3))
    goodbye(plant, bob, bob.report(of_bob, 4))
    await plant.stop()
    assert await stored_floor(plant, group, of_ann.stream) == 3
    await plant.start(replace(QUICK, reserve_percent=1_000))
    again = plant.member(group, "bob again", session="bob")
    again.want()
    [granted] = await again.granted(1)
    assert granted.stream == of_bob.stream
    assert (granted.progress, granted.suspect_end) == (Progress(4), 4)
    assert {of_ann.stream, of_bob.stream} == set(streams)
    view = plant.registry.snapshot(group.group_id)
    assert view is not None
    assert [one.state for one in view.streams if one.stream == of_ann.stream] == ["free"]


async def test_after_a_kill_what_was_perhaps_delivered_comes_marked(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    await plant.publish(stream, 20)
    group = await plant.group("$share/g/orders/#", Earliest())
    ann = plant.member(group, "ann")
    ann.want()
    [granted] = await ann.granted(1)
    ann.report(granted, 6)
    while (await ann.next(ProgressSaved)).progress != Progress(6):
        pass
    await plant.stop()
    await plant.start()
    again = plant.member(group, "ann again", session="ann")
    again.want()
    [redelivered] = await again.granted(1)
    assert (redelivered.progress, redelivered.frontier) == (Progress(6), 6)
    assert redelivered.suspect_end == 20


async def test_an_exclusive_group_serves_its_own_session_only(plant: Plant) -> None:
    await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#")
    exclusive = replace(group, kind="exclusive", session_id=b"ann")
    await plant.store.commit([Put(exclusive)])
    await plant.stop()
    await plant.start()
    bob = plant.member(exclusive, "bob")
    bob.want()
    assert (await bob.next(Invalidate)).reason == GroupNotFound.code
    ann = plant.member(exclusive, "ann")
    ann.want()
    await ann.granted(1)


async def test_pings_are_answered_by_the_leader(plant: Plant) -> None:
    group = await plant.group("$share/g/orders/#")
    ann = plant.member(group, "ann")
    ann.want()
    await ann.next(LeaderConnectResponse)
    plant.registry.to_leader(group.group_id, Ping(b"ann", ann.epoch, 77))
    assert (await ann.next(PingResponse)).sent_ms == 77


async def test_a_detached_borrower_hears_nothing_more(plant: Plant) -> None:
    await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#")
    ann, bob = plant.member(group, "ann"), plant.member(group, "bob")
    ann.want()
    await ann.next(LeaderConnectResponse)
    ann.detach()
    bob.want()
    await bob.next(LeaderConnectResponse)
    assert ann.inbox.empty()


async def test_a_failing_store_ends_the_registry_loudly(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> list[int]:
        raise OSError("the disk is on fire")

    group = await plant.group("$share/g/orders/#")
    monkeypatch.setattr(plant.store, "commit", broken)
    with pytest.raises(BaseExceptionGroup) as raised:
        await lead_for_ever(plant, group)
    assert raised.group_contains(OSError)


async def lead_for_ever(plant: Plant, group: GroupRow) -> None:
    registry = Registry(plant.store, plant.groups, plant.catalogue, plant.log, plant.clock)
    async with registry:
        registry.to_leader(group.group_id, LeaderWanted(b"ann", 0, b"s", "ann"))
        await asyncio.Event().wait()


async def test_a_grant_of_many_streams_is_one_message(plant: Plant) -> None:
    await plant.topic("orders", 64)
    group = await plant.group("$share/g/orders/#")
    ann = plant.member(group, "ann")
    ann.want()
    assert len((await ann.next(Grant)).streams) == 64


async def test_a_leader_that_begins_while_sessions_end_concludes_no_pause_of_their_clients(
    plant: Plant,
) -> None:
    await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#")
    concluded: asyncio.Queue[int] = asyncio.Queue()
    plant.registry.watch_concluded(concluded.put_nowait)
    plant.registry.note_sessions_ending()
    plant.registry.instruct(group.group_id, PauseGroup(7, paused=True))
    plant.registry.instruct(group.group_id, PauseGroup(8, paused=False))
    # That it was paused is taken back, so there is nothing more to wait for.
    assert await concluded.get() == 7
    await plant.stop()
    assert concluded.empty()


async def test_a_lost_member_is_told_of_in_time_though_nothing_more_comes_to_its_leader(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.leaders.lost_members.TAKE_OVER_MS_MAX", 20)
    heard = Heard()
    idle = replace(QUICK, idle_ms=3_600_000, lease_ms=3_600_000)
    monkeypatch.setattr(plant.registry, "_timing", idle)
    monkeypatch.setattr(plant.registry, "_teller", heard)
    await plant.topic("orders", 2)
    group = await plant.group("$share/g/orders/#")
    ann = plant.member(group, "ann")
    ann.want()
    await ann.granted(2)
    plant.registry.session_missed(ann.session_id, [group.group_id])
    plant.registry.to_leader(group.group_id, Disconnect(ann.borrower_id, ann.epoch, ()))
    async with asyncio.timeout(PATIENCE_S):
        while not heard.events:  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)
    [event] = heard.events
    assert event.sentence.startswith("ann went without leaving; of 2 streams, nobody has taken 2")


@pytest.mark.parametrize("full", [False, True])
async def test_a_stream_of_a_lost_member_is_given_away_with_what_tells_of_it(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """But not where there is no room for that."""
    usual = plant.store.commit

    async def commit(writes: Sequence[Write], preconditions: Sequence[Precondition] = ()) -> object:
        if full and any(isinstance(each, Put) and type(each.row) is EventRow for each in writes):
            raise DiskFull
        return await usual(writes, preconditions)

    monkeypatch.setattr(plant.store, "commit", commit)
    monkeypatch.setattr(plant.registry, "_teller", Heard())
    await plant.topic("orders", 2)
    group = await plant.group("$share/g/orders/#")
    ann, bob = plant.member(group, "ann"), plant.member(group, "bob")
    ann.want()
    await ann.granted(2)
    plant.registry.session_missed(ann.session_id, [group.group_id])
    plant.registry.session_closed(ann.session_id, {group.group_id}, None)
    bob.want()
    await bob.next(Grant)
    said = [found.row.sentence for found in await plant.store.scan(EventRow)]
    assert len(said) == (not full)
    assert all(each.startswith("ann went without leaving, with 2 streams;") for each in said)
