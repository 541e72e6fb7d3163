"""The rows of removed topics go, those of every other topic stay."""

import asyncio
from collections.abc import Sequence

import pytest

from dss_core.errors import DiskFull
from dss_sim.played_groups import Plant
from dssd.leaders import actor
from dssd.leaders.gone_streams import GONE_ROWS_PER_COMMIT_MAX, GoneStreams
from dssd.machines.start_point import Earliest
from dssd.store.paging import scan_all
from dssd.store.port import Precondition, Put, Write
from dssd.store.rows import GrantRow, GroupRow, ProgressRow, Row


async def kept(plant: Plant) -> set[tuple[str, int]]:
    """The kind and the storage topic of every row that is about a stream."""
    grants = await scan_all(plant.store, GrantRow)
    progress = await scan_all(plant.store, ProgressRow)
    return {
        *(("grant", found.row.storage_topic_id) for found in grants),
        *(("progress", found.row.storage_topic_id) for found in progress),
    }


def of_topic(streams: Sequence[tuple[int, int]]) -> set[tuple[str, int]]:
    return {(kind, storage_topic) for kind in ("grant", "progress") for storage_topic, _ in streams}


async def read_by_member(plant: Plant, name: str, streams: int) -> GroupRow:
    """A group that has lent all its streams."""
    group = await plant.group(f"$share/{name}/#", Earliest())
    member = plant.member(group, name)
    member.want()
    await member.granted(streams)
    return group


def grant_row(group: GroupRow, storage_topic_id: int, partition: int) -> GrantRow:
    return GrantRow(group.group_id, storage_topic_id, partition, 1, None, None, 0)


async def test_a_removed_topic_takes_its_rows_along_in_all_groups(plant: Plant) -> None:
    gone = GoneStreams(plant.store, plant.catalogue, plant.groups)
    orders = await plant.topic("orders", 3)
    stays = await plant.topic("stays", 2)
    await read_by_member(plant, "led", 5)
    idle = await plant.group("$share/idle/orders/#", Earliest())
    await plant.store.commit([Put(grant_row(idle, *orders[0]))])
    assert await kept(plant) == of_topic(orders) | of_topic(stays)
    await plant.catalogue.remove("orders")
    await gone.collect()
    assert await kept(plant) == of_topic(stays)


async def test_a_removed_topic_takes_the_rows_of_its_queues_along(plant: Plant) -> None:
    gone = GoneStreams(plant.store, plant.catalogue, plant.groups)
    [orders] = await plant.topic("orders", 1)
    [stays] = await plant.topic("stays", 1)
    group = await plant.group("$share/g/#")
    rows: list[Row] = []
    for stream in (orders, stays):
        topic = plant.catalogue.topic_of(stream)
        await plant.catalogue.make_queues(group.group_id, topic)
        queues = plant.catalogue.queues_of(group.group_id, stream)
        assert queues is not None
        rows += [ProgressRow(group.group_id, *each, 0, b"", 0, b"", False, 0) for each in queues]
    await plant.store.commit([Put(row) for row in rows])
    kept_queues = plant.catalogue.queues_of(group.group_id, stays)
    assert kept_queues is not None
    await plant.catalogue.remove("orders")
    await gone.collect()
    left = {number for _, number in await kept(plant)}
    assert left == {stays.storage_topic_id, *(each.storage_topic_id for each in kept_queues)}


async def test_a_start_collects_what_was_left_and_nothing_else(plant: Plant) -> None:
    stays = await plant.topic("stays", 3)
    group = await read_by_member(plant, "led", 3)
    nowhere = 1_000_000
    left = 2 * GONE_ROWS_PER_COMMIT_MAX + 1
    rows: list[Row] = [grant_row(group, nowhere, partition) for partition in range(left)]
    rows += [
        ProgressRow(group.group_id, nowhere + at, 0, 0, b"", 0, b"", False, 0) for at in range(left)
    ]
    await plant.store.commit([Put(row) for row in rows])
    gone = GoneStreams(plant.store, plant.catalogue, plant.groups)
    assert await gone.sweep() == 2 * left
    assert await kept(plant) == of_topic(stays)
    assert await gone.sweep() == 0


async def test_a_commit_of_a_leader_brings_no_row_of_a_removed_topic_back(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actor, "FULL_DISK_RETRY_S", 0.005)
    gone = GoneStreams(plant.store, plant.catalogue, plant.groups)
    orders = await plant.topic("orders", 1)
    stays = await plant.topic("stays", 1)
    group = await plant.group("$share/g/#", Earliest())
    usual = plant.store.commit
    asked, may_go = asyncio.Event(), asyncio.Event()

    async def commit(
        writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        if any(isinstance(write, Put) and isinstance(write.row, GrantRow) for write in writes):
            asked.set()
            if not may_go.is_set():
                raise DiskFull
        return await usual(writes, preconditions)

    monkeypatch.setattr(plant.store, "commit", commit)
    member = plant.member(group, "ann")
    member.want()
    await asked.wait()
    await plant.catalogue.remove("orders")
    await gone.collect()
    may_go.set()
    [stream] = await member.granted(1)
    assert stream.stream == stays[0]
    assert not await kept(plant) & of_topic(orders)


async def test_rows_go_once_a_full_disk_has_room(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.leaders.gone_streams.FULL_DISK_RETRY_S", 0.005)
    gone = GoneStreams(plant.store, plant.catalogue, plant.groups)
    await plant.topic("orders", 2)
    await read_by_member(plant, "led", 2)
    await plant.catalogue.remove("orders")
    usual = plant.store.commit
    refused: list[int] = []

    async def commit(
        writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        if len(refused) < 2:
            refused.append(len(writes))
            raise DiskFull
        return await usual(writes, preconditions)

    monkeypatch.setattr(plant.store, "commit", commit)
    await gone.collect()
    assert await kept(plant) == set()
