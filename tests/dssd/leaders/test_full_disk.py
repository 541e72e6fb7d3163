"""Leaders on a full disk: what they promise waits for room, and nobody's daemon ends."""

import asyncio
from collections.abc import Sequence

import pytest

from dss_core.errors import DiskFull
from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.played_groups import PATIENCE_S, Member, Plant
from dssd.leaders import actor
from dssd.machines.leader.events import CursorMove, MoveCursors
from dssd.machines.messages import GrantedStream, ProgressSaved
from dssd.store.port import Precondition, Store, Write
from dssd.store.rows import GroupRow, ProgressRow


class FullDisk:
    """Refuses commits of a store while it is full."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        self.refused = asyncio.Event()
        usual = store.commit

        async def commit(
            writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
        ) -> list[int]:
            if self.is_full:
                self.refused.set()
                raise DiskFull
            return await usual(writes, preconditions)

        monkeypatch.setattr(store, "commit", commit)


@pytest.fixture
def disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    monkeypatch.setattr(actor, "FULL_DISK_RETRY_S", 0.005)
    return FullDisk(store, monkeypatch)


async def granted(plant: Plant) -> tuple[GroupRow, Member, GrantedStream]:
    await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#")
    ann = plant.member(group, "ann")
    ann.want()
    [stream] = await ann.granted(1)
    return group, ann, stream


async def stored_floor(plant: Plant, group: GroupRow, stream: StreamId) -> int:
    found = await plant.store.read(ProgressRow, (group.group_id, *stream))
    assert found is not None
    return found.row.floor


async def test_progress_is_stored_once_there_is_room(plant: Plant, disk: FullDisk) -> None:
    group, ann, grant = await granted(plant)
    disk.is_full = True
    ann.report(grant, 5)
    await disk.refused.wait()
    assert await stored_floor(plant, group, grant.stream) == 0
    disk.is_full = False
    while (await ann.next(ProgressSaved)).progress != Progress(5):
        pass
    assert await stored_floor(plant, group, grant.stream) == 5


async def test_a_stop_does_not_wait_for_room(plant: Plant, disk: FullDisk) -> None:
    group, ann, grant = await granted(plant)
    disk.is_full = True
    ann.report(grant, 5)
    await disk.refused.wait()
    await plant.stop()
    assert await stored_floor(plant, group, grant.stream) == 0


async def test_a_leader_that_cannot_claim_is_started_again_by_the_next_request(
    plant: Plant, disk: FullDisk
) -> None:
    await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#")
    disk.is_full = True
    ann = plant.member(group, "ann")
    ann.want()
    await disk.refused.wait()
    disk.is_full = False
    while plant.registry.snapshot(group.group_id) is None:
        ann.want()
        await asyncio.sleep(0)
    await ann.granted(1)


async def test_what_an_operation_asked_of_a_leader_that_cannot_claim_is_done_once_there_is_room(
    plant: Plant, disk: FullDisk
) -> None:
    [stream] = await plant.topic("orders", 1)
    group = await plant.group("$share/g/orders/#")
    concluded: asyncio.Queue[int] = asyncio.Queue()
    plant.registry.watch_concluded(concluded.put_nowait)
    disk.is_full = True
    move = CursorMove(stream, 7, (), ((0, 5),))
    plant.registry.instruct(group.group_id, MoveCursors(7, (move,)))
    await disk.refused.wait()
    disk.is_full = False
    async with asyncio.timeout(PATIENCE_S):
        assert await concluded.get() == 7
    assert await stored_floor(plant, group, stream) == 5
