"""Snapshots of a log and a store in this process."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from dss_core.errors import BackupFailed, BackupUnderWay, NoRoomForBackup
from dss_core.ids import StreamId
from dssd.backups import snapshots
from dssd.backups.snapshots import Snapshot, Snapshots
from dssd.clock import Clock
from dssd.log.segment_log import SegmentLog
from dssd.store.sqlite import SqliteStore
from dssd.topics.catalogue import Catalogue
from support.log_in_process import Shelf


class Served(NamedTuple):
    shelf: Shelf
    store: SqliteStore
    snapshots: Snapshots
    folder: Path


@asynccontextmanager
async def serving(tmp_path: Path) -> AsyncIterator[Served]:
    store = await SqliteStore.open(tmp_path / "store.sqlite")

    def fail(error: BaseException) -> None:
        raise AssertionError from error

    log = await SegmentLog.open(tmp_path / "log", store, storage_topics=(), on_failure=fail)
    catalogue = await Catalogue.open(store, log)
    folder = tmp_path / "snapshot"
    taking = Snapshots(folder, store, log.files(), catalogue.incarnation, Clock())
    yield Served(Shelf(catalogue, log), store, taking, folder)
    await log.close()
    await store.close()


def content_of(snapshot: Snapshot) -> dict[str, bytes]:
    return {each.name: each.path.read_bytes()[: each.bytes] for each in snapshot.files}


async def test_it_has_what_was_there_and_nothing_that_came_later(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        topic = await served.shelf.topic("orders")
        await served.shelf.store(topic, b"before")
        async with served.snapshots.taken() as snapshot:
            await served.shelf.store(topic, b"behind")
            content = content_of(snapshot)
            storage = topic.producing.storage_topic_id
            assert snapshot.ends.ends[storage] == (1,)
            [segment] = [each for name, each in content.items() if name.endswith(".seg")]
            assert b"before" in segment
            assert b"behind" not in segment
            assert "store.sqlite" in content
        assert not served.folder.exists()


async def test_what_retention_and_removal_take_meanwhile_stays_until_it_is_left(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as served:
        topic = await served.shelf.topic("orders")
        await served.shelf.store(topic, b"old")
        storage = topic.producing.storage_topic_id
        await served.shelf.log.roll(storage)
        async with served.snapshots.taken() as snapshot:
            await served.shelf.log.trim(StreamId(storage, 0), 1)
            await served.shelf.log.remove_storage_topic(storage)
            assert not list((tmp_path / "log").glob("*.seg"))
            held = [content for name, content in content_of(snapshot).items() if ".seg" in name]
            assert any(b"old" in each for each in held)


async def test_the_time_of_a_write_counts_once_no_other_can_have_the_same(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.shelf.store(await served.shelf.topic("orders"), b"x")
        [path] = (tmp_path / "log").glob("*.seg")
        async with served.snapshots.taken() as fresh:
            assert {each.modified_ns for each in fresh.files} == {0}
        settled_ns = path.stat().st_mtime_ns - 2 * snapshots.SETTLED_NS
        os.utime(path, ns=(settled_ns, settled_ns))
        async with served.snapshots.taken() as later:
            times = {each.name: each.modified_ns for each in later.files}
            assert times[f"log/{path.name}"] == settled_ns
            assert times["store.sqlite"] == 0


async def test_one_is_taken_at_a_time_and_the_next_one_after_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        async with served.snapshots.taken():
            with pytest.raises(BackupUnderWay):
                async with served.snapshots.taken():
                    pass
        async with served.snapshots.taken():
            pass


async def test_who_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        taken = asyncio.Event()

        async def take() -> None:
            async with served.snapshots.taken():
                taken.set()
                await asyncio.Event().wait()

        taking = asyncio.create_task(take())
        await taken.wait()
        taking.cancel()
        await asyncio.wait({taking})
        assert not served.folder.exists()


async def test_a_backup_that_stands_still_is_given_up_before_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "ROOM_LOOK_S", 0.001)
    async with serving(tmp_path) as served:

        async def stand_still() -> None:
            async with asyncio.timeout(60), served.snapshots.taken():
                monkeypatch.setattr(snapshots, "BACKUP_STORE_SPARE_BYTES", 1 << 60)
                await asyncio.Event().wait()

        with pytest.raises(BackupFailed, match="what retention gives up meanwhile"):
            await stand_still()
        assert not served.folder.exists()
        monkeypatch.undo()
        async with served.snapshots.taken():
            pass


async def test_too_little_room_for_the_store_is_told_before_it_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "BACKUP_STORE_SPARE_BYTES", 1 << 60)
    async with serving(tmp_path) as served:
        with pytest.raises(NoRoomForBackup):
            async with served.snapshots.taken():
                pass
        assert not served.folder.exists()


async def test_a_file_that_lost_its_end_is_no_backup(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.shelf.store(await served.shelf.topic("orders"), b"x" * 1_000)
        [segment] = (tmp_path / "log").glob("*.seg")
        whole = segment.read_bytes()
        segment.write_bytes(whole[:100])
        with pytest.raises(BackupFailed, match="100 bytes"):
            async with served.snapshots.taken():
                pass
        segment.write_bytes(whole)
