import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dss_core.errors import (
    DiskFull,
    GroupAmbiguous,
    GroupDestroyed,
    GroupExists,
    GroupNotFound,
    GroupOfAnotherKind,
    IllegalArgument,
    InternalTopic,
    OffsetOutOfRange,
    QueueNotDeclared,
    StartConflict,
    StreamNotFound,
)
from dss_core.filters import SubscriptionFilter
from dss_sim.played_groups import Plant
from dssd.leaders.declarations import AskedRetries
from dssd.leaders.groups import TOMBSTONE_MS, Groups, Joined
from dssd.limits import ACK_WAIT_MS
from dssd.machines.start_point import AtOffset, AtTime, Earliest, Now, StartPoint
from dssd.store.port import Delete, Precondition, Put, Write
from dssd.store.rows import GroupNameRow, GroupRow, ProgressRow, TopicRow

SESSION = bytes(range(16))


async def joined(plant: Plant, text: str, start: StartPoint | None = None) -> Joined:
    return await plant.groups.join(
        SubscriptionFilter.parse(text),
        start=start,
        ack_wait_ms=None,
        session_id=SESSION,
        subscription=3,
    )


async def floors(plant: Plant, group: GroupRow) -> list[int]:
    rows = await plant.store.scan(ProgressRow, (group.group_id,))
    return [found.row.floor for found in rows]


async def test_the_first_use_declares_a_shared_group_at_the_present_ends(plant: Plant) -> None:
    streams = await plant.topic("orders", 2)
    await plant.publish(streams[0], 5)
    first = await joined(plant, "$share/billing/orders/#")
    assert first.declared
    assert (first.group.name, first.group.filter, first.group.kind) == (
        "billing",
        "orders/#",
        "shared",
    )
    assert (first.group.start, first.group.ack_wait_ms) == ("now", ACK_WAIT_MS)
    assert await floors(plant, first.group) == [5, 0]
    again = await joined(plant, "$shares/billing/orders/#")
    assert again == Joined(first.group, declared=False)


async def test_each_start_is_resolved_for_every_stream_when_it_is_declared(plant: Plant) -> None:
    streams = await plant.topic("orders", 2)
    await plant.publish(streams[0], 5)
    await plant.publish(streams[1], 7)
    starts: dict[StartPoint, list[int]] = {
        Earliest(): [0, 0],
        Now(): [5, 7],
        AtTime(1): [0, 0],
        AtTime(1 << 60): [5, 7],
    }
    for number, (start, expected) in enumerate(starts.items()):
        group = await plant.group(f"$share/g{number}/orders/#", start)
        assert await floors(plant, group) == expected


async def test_an_offset_needs_a_single_stream_that_holds_it(plant: Plant) -> None:
    [stream] = await plant.topic("single", 1)
    await plant.topic("double", 2)
    await plant.publish(stream, 5)
    group = await plant.group("$share/g/single/#", AtOffset(3))
    assert await floors(plant, group) == [3]
    with pytest.raises(OffsetOutOfRange):
        await plant.group("$share/far/single/#", AtOffset(6))
    for filter_text in ("double/#", "nothing/#"):
        with pytest.raises(IllegalArgument):
            await plant.group(f"$share/g/{filter_text}", AtOffset(0))


async def test_an_offset_is_one_of_the_stream_that_is_written_to_and_what_is_sealed_lies_before(
    plant: Plant,
) -> None:
    [*old] = await plant.topic("orders", 2)
    await plant.publish(old[0], 5)
    topic_id = plant.catalogue.get("orders").topic_id
    for ordinal, partitions in ((1, 1), (2, 3)):
        await plant.catalogue.add_storage_topic(topic_id, ordinal, partitions)
        if ordinal == 1:
            await plant.catalogue.switch(topic_id, ordinal)
    [stream] = plant.catalogue.get("orders").producing.streams()
    await plant.publish(stream, 7)
    group = await plant.group("$share/g/orders/#", AtOffset(6))
    assert await floors(plant, group) == [5, 0, 6], "what waits for a switch begins at 0"
    with pytest.raises(OffsetOutOfRange):
        await plant.group("$share/far/orders/#", AtOffset(8))


async def test_nothing_behind_what_a_group_gets_is_passed_by_where_a_switch_comes_as_it_starts(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await plant.topic("orders", 2)
    await plant.publish(old[0], 5)
    topic_id = plant.catalogue.get("orders").topic_id
    await plant.catalogue.add_storage_topic(topic_id, 1, 1)

    class Turn:
        """Others run before the third stream."""

        rounds = 0

        async def give_way(self) -> None:
            self.rounds += 1
            if self.rounds == 3:
                await plant.publish(old[1], 2)
                await plant.catalogue.switch(topic_id, 1)
                await plant.publish(plant.catalogue.get("orders").producing.streams()[0], 3)

    monkeypatch.setattr("dssd.leaders.group_start.LoopTurn", Turn)
    group = await plant.group("$share/g/orders/#", Now())
    assert await floors(plant, group) == [5, 0, 0]


async def test_another_start_on_an_existing_group_is_an_error(plant: Plant) -> None:
    await joined(plant, "$share/g/orders/#", Earliest())
    await joined(plant, "$share/g/orders/#", Earliest())
    await joined(plant, "$share/g/orders/#", None)
    with pytest.raises(StartConflict):
        await joined(plant, "$share/g/orders/#", Now())


async def test_a_queue_is_declared_by_operators_only(plant: Plant) -> None:
    with pytest.raises(QueueNotDeclared):
        await joined(plant, "$queue/work/orders/#")
    declared = await plant.group("$queue/work/orders/#")
    assert declared.kind == "queue"
    assert await joined(plant, "$queue/work/orders/#") == Joined(declared, declared=False)


@pytest.mark.parametrize(
    ("declared", "asked"),
    [("$queue/g/orders/#", "$share/g/orders/#"), ("$share/g/orders/#", "$queue/g/orders/#")],
)
async def test_a_queue_and_a_shared_group_do_not_stand_for_each_other(
    plant: Plant, declared: str, asked: str
) -> None:
    group = await plant.group(declared)
    parsed = SubscriptionFilter.parse(asked)
    with pytest.raises(GroupOfAnotherKind) as joining:
        await joined(plant, asked)
    assert joining.value.hint_text.startswith(f"Write '{declared}'")
    with pytest.raises(GroupOfAnotherKind):
        await plant.groups.declare(parsed, if_not_exists=True)
    with pytest.raises(GroupOfAnotherKind):
        plant.groups.find(asked)
    assert plant.groups.find(declared) == group
    assert plant.groups.groups() == (group,)


async def test_a_private_subscription_is_an_exclusive_group_of_its_session(plant: Plant) -> None:
    private = (await joined(plant, "orders/#")).group
    assert private.kind == "exclusive"
    assert private.name == "~000102030405/3"
    assert private.session_id == SESSION
    assert (await joined(plant, "orders/#")).group == private


async def test_declaring_twice_is_an_error_unless_it_is_accepted(plant: Plant) -> None:
    first = await plant.group("$share/g/orders/#", Earliest())
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    with pytest.raises(GroupExists):
        await plant.groups.declare(parsed)
    assert await plant.groups.declare(parsed, if_not_exists=True) == first
    with pytest.raises(StartConflict):
        await plant.groups.declare(parsed, start=Now(), if_not_exists=True)


async def test_concurrent_first_uses_make_one_group(plant: Plant) -> None:
    await plant.topic("orders")
    answers = await asyncio.gather(
        *(joined(plant, "$share/g/orders/#", Earliest()) for _ in range(20))
    )
    assert {answer.group.group_id for answer in answers} == {plant.groups.find("g").group_id}
    assert [answer.declared for answer in answers].count(True) == 1


async def test_an_ack_wait_out_of_bounds_is_refused(plant: Plant) -> None:
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    for ack_wait_ms in (0, 1 << 40):
        with pytest.raises(IllegalArgument):
            await plant.groups.declare(parsed, ack_wait_ms=ack_wait_ms)


async def test_a_group_is_found_by_every_way_of_writing_it(plant: Plant) -> None:
    one = await plant.group("$share/one/orders/#")
    two = await plant.group("$queue/two/orders/#")
    other = await plant.group("$share/two/bills/#")
    assert plant.groups.find("one") == one
    assert plant.groups.find("one@orders/#") == one
    assert plant.groups.find("$share/one/orders/#") == one
    assert plant.groups.find("$queue/two/orders/#") == two
    assert plant.groups.find("two@bills/#") == other
    with pytest.raises(GroupAmbiguous) as ambiguous:
        plant.groups.find("two")
    assert ambiguous.value.fields["candidates"] == "two@bills/#, two@orders/#"
    for text in ("three", "one@bills/#", "$share/one/bills/#"):
        with pytest.raises(GroupNotFound):
            plant.groups.find(text)


async def test_a_removed_group_is_not_resurrected_by_its_members(plant: Plant) -> None:
    group = (await joined(plant, "$share/g/orders/#")).group
    await plant.groups.remove(group.group_id)
    with pytest.raises(GroupDestroyed):
        await joined(plant, "$share/g/orders/#")
    with pytest.raises(GroupDestroyed):
        plant.groups.get(group.group_id)
    with pytest.raises(GroupNotFound):
        plant.groups.find("g")
    assert await floors(plant, group) == []


async def test_a_removal_during_a_first_use_is_not_undone_by_it(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    next_id = plant.store.next_id

    async def made_and_removed_meanwhile() -> int:
        monkeypatch.setattr(plant.store, "next_id", next_id)
        group = await plant.group("$share/g/orders/#")
        await plant.groups.remove(group.group_id)
        return await next_id()

    monkeypatch.setattr(plant.store, "next_id", made_and_removed_meanwhile)
    with pytest.raises(GroupDestroyed):
        await joined(plant, "$share/g/orders/#")
    assert plant.groups.groups() == ()


async def test_nothing_is_left_of_what_a_leader_stored_while_its_group_was_removed(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#")
    commit = plant.store.commit

    async def leader_first(
        writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        if any(isinstance(write, Delete) and write.kind is GroupRow for write in writes):
            late = ProgressRow(group.group_id, 99, 0, 5, b"", 5, b"", False, 0)
            await commit([Put(late)])
        return await commit(writes, preconditions)

    monkeypatch.setattr(plant.store, "commit", leader_first)
    await plant.groups.remove(group.group_id)
    assert await plant.store.scan(ProgressRow) == []


async def test_a_removed_group_takes_its_queues_along(plant: Plant) -> None:
    [stream] = await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#")
    await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    queues = plant.catalogue.queues_of(group.group_id, stream)
    assert queues is not None
    for queue in queues:
        await plant.publish(queue, 1)
    before = len(list(plant.directory.iterdir()))
    await plant.groups.remove(group.group_id)
    assert plant.catalogue.internal_topics() == ()
    assert len(list(plant.directory.iterdir())) < before
    with pytest.raises(StreamNotFound):
        plant.log.bounds(queues[0])


async def test_queues_that_a_crash_left_behind_their_group_or_its_loss_are_collected_at_the_start(
    plant: Plant,
) -> None:
    [stream] = await plant.topic("orders", 1)
    gone, plain, stays = [
        await plant.groups.declare(
            SubscriptionFilter.parse(f"$share/{name}/orders/#"), retries=retries
        )
        for name, retries in (
            ("gone", AskedRetries(3)),
            ("plain", AskedRetries()),
            ("stays", AskedRetries(3)),
        )
    ]
    for group in (gone, plain, stays):
        await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    await plant.stop()
    await plant.store.commit([Delete(GroupRow, (gone.group_id,))])
    await plant.start()
    assert {each.group_id for each in plant.catalogue.internal_topics()} == {stays.group_id}
    assert plant.catalogue.queues_of(stays.group_id, stream) is not None


async def test_a_group_is_removed_though_the_disk_has_no_room_to_remove_its_queues(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#")
    await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    usual = plant.store.commit

    async def full(
        writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        if any(isinstance(write, Delete) and write.kind is TopicRow for write in writes):
            raise DiskFull
        return await usual(writes, preconditions)

    with monkeypatch.context() as patched:
        patched.setattr(plant.store, "commit", full)
        await plant.groups.remove(group.group_id)
    assert plant.groups.groups() == ()
    assert len(plant.catalogue.internal_topics()) == 2
    await plant.groups.collect_lost_queues()
    assert plant.catalogue.internal_topics() == ()


async def test_a_subscription_to_an_internal_topic_is_refused(plant: Plant) -> None:
    await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#")
    await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    for queue in plant.catalogue.internal_topics():
        for text in (f"{queue.name}/#", f"$share/h/{queue.name}"):
            with pytest.raises(InternalTopic):
                await joined(plant, text)
    assert plant.groups.groups() == (group,)


async def test_a_session_owns_its_private_groups(plant: Plant) -> None:
    private = (await joined(plant, "orders/#")).group
    await joined(plant, "$share/g/orders/#")
    assert plant.groups.owned(SESSION) == (private,)
    await plant.groups.remove(private.group_id)
    assert plant.groups.owned(SESSION) == ()


async def test_old_tombstones_are_collected_while_the_daemon_runs(plant: Plant) -> None:
    old = await plant.group("$share/old/orders/#")
    again = await plant.group("$share/again/orders/#")
    await plant.groups.remove(old.group_id)
    await plant.groups.remove(again.group_id)
    await plant.group("$share/again/orders/#")
    plant.clock.ahead_ms = TOMBSTONE_MS + 1
    await plant.groups.collect_tombstones()
    assert [found.row.name for found in await plant.store.scan(GroupNameRow)] == ["again"]
    for gone in (old, again):
        with pytest.raises(GroupNotFound):
            plant.groups.get(gone.group_id)
    assert (await joined(plant, "$share/old/orders/#")).declared


async def test_declaring_a_removed_group_clears_its_tombstone_under_a_new_id(plant: Plant) -> None:
    old = await plant.group("$share/g/orders/#")
    await plant.groups.remove(old.group_id)
    new = await plant.group("$share/g/orders/#")
    assert new.group_id != old.group_id
    assert not (await joined(plant, "$share/g/orders/#")).declared
    with pytest.raises(GroupDestroyed):
        plant.groups.get(old.group_id)


async def test_a_removed_private_group_leaves_nothing(plant: Plant) -> None:
    private = (await joined(plant, "orders/#")).group
    await plant.groups.remove(private.group_id)
    assert await plant.store.scan(GroupNameRow) == []
    assert (await joined(plant, "orders/#")).declared


async def test_groups_and_tombstones_survive_a_restart_for_seven_days(plant: Plant) -> None:
    kept = await plant.group("$share/kept/orders/#")
    gone = await plant.group("$share/gone/orders/#")
    await plant.groups.remove(gone.group_id)
    await plant.stop()
    await plant.start()
    assert plant.groups.groups() == (kept,)
    with pytest.raises(GroupDestroyed):
        await joined(plant, "$share/gone/orders/#")
    plant.clock.ahead_ms = TOMBSTONE_MS + 1
    later = await Groups.open(plant.store, plant.catalogue, plant.log, plant.clock)
    assert [found.row.name for found in await plant.store.scan(GroupNameRow)] == ["kept"]
    with pytest.raises(GroupNotFound):
        later.get(gone.group_id)


async def test_a_removal_is_told_to_those_who_watch(plant: Plant) -> None:
    told: list[GroupRow] = []
    stop = plant.groups.watch_removed(told.append)
    first = await plant.group("$share/a/orders/#")
    second = await plant.group("$share/b/orders/#")
    await plant.groups.remove(first.group_id)
    stop()
    await plant.groups.remove(second.group_id)
    assert told == [first]


async def test_a_change_of_a_group_is_told_to_those_who_watch(plant: Plant) -> None:
    told: list[GroupRow] = []
    group = await plant.group("$share/a/orders/#")
    stop = plant.groups.watch_changed(told.append)
    edited = replace(group, ack_wait_ms=7)
    plant.groups.note_changed(edited)
    assert plant.groups.as_it_is(group) == edited
    await plant.groups.remove(group.group_id)
    plant.groups.note_changed(group)
    stop()
    assert told == [edited]
    assert plant.groups.as_it_is(edited) == edited
