"""What groups kept of topics that were removed does not stay in the store of a real daemon."""

from pathlib import Path

import dss_client
from dssd.data_directory import DataDirectory
from dssd.store.paging import scan_all
from dssd.store.port import Put
from dssd.store.rows import GrantRow, ProgressRow, StorageTopicRow
from dssd.store.sqlite import SqliteStore
from support.daemon_process import DaemonProcess, running, short_directory

ROUNDS = 20
PARTITIONS = 4


async def stop(daemon: DaemonProcess) -> None:
    """Gracefully, so that what waits to be committed is."""
    assert await daemon.stop() == 0, daemon.said


async def stray_rows(home: Path) -> list[tuple[str, int]]:
    """The rows that name no storage topic; those of the topic that stays must all be there."""
    with DataDirectory(home) as directory:
        store = await SqliteStore.open(directory.store_path)
        there = {found.row.storage_topic_id for found in await scan_all(store, StorageTopicRow)}
        grants = [found.row.storage_topic_id for found in await scan_all(store, GrantRow)]
        progress = [found.row.storage_topic_id for found in await scan_all(store, ProgressRow)]
        await store.close()
    assert len([each for each in grants if each in there]) == PARTITIONS
    assert len([each for each in progress if each in there]) == PARTITIONS
    strays = [("grant", each) for each in grants if each not in there]
    return strays + [("progress", each) for each in progress if each not in there]


async def leave_a_row(home: Path) -> None:
    """As an older version of the daemon left them."""
    with DataDirectory(home) as directory:
        store = await SqliteStore.open(directory.store_path)
        [some, *_] = [found.row for found in await scan_all(store, GrantRow)]
        stray = GrantRow(some.group_id, 1 << 30, 0, 1, None, None, 0)
        await store.commit([Put(stray)])
        await store.close()


async def test_topics_that_come_and_go_leave_no_rows() -> None:
    with short_directory() as short:
        home = short / "data"
        # Each has an address of its own: gRPC waits before it tries one again that was lost.
        first, second = f"unix:{short / '1.sock'}", f"unix:{short / '2.sock'}"
        async with (
            running("--data-dir", str(home), "--listen", first) as daemon,
            dss_client.connect(endpoint=first) as client,
        ):
            await client.topics.create("stays", partitions=PARTITIONS)
            await client.groups.create("$share/g/#", start="earliest")
            async with client.subscribe("$share/g/#") as subscription:
                for number in range(ROUNDS):
                    await client.topics.create(f"t{number}", partitions=PARTITIONS)
                    async with client.producer(f"t{number}") as producer:
                        await producer.send(b"x")
                    [record] = await subscription.fetch(1)
                    await record.ack()
                    await client.topics.remove(f"t{number}", force=True)
            await stop(daemon)
        assert await stray_rows(home) == []
        await leave_a_row(home)
        async with (
            running("--data-dir", str(home), "--listen", second) as daemon,
            dss_client.connect(endpoint=second) as client,
        ):
            await client.topics.create("later", partitions=1)
            await stop(daemon)
        assert await stray_rows(home) == []
