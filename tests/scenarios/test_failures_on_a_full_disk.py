"""Records that fail while the disk is full rest where they are, say so, and are moved later."""

import asyncio
from pathlib import Path

import dss_client
from dss_client import Client, DeliveredRecord
from support.daemon_process import running, short_directory
from support.prerequisites import MOUNT, leave_out
from support.small_disk import CannotMount, fill, mounted

FILTER = "$share/g/orders/#"
DISK_BYTES = 48 << 20
PAYLOAD = bytes(100_000)
"""More than the last pages of the files have left."""
PATIENCE_S = 20.0
POLL_S = 0.05


async def until_it_stands(client: Client, *wanted: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            group = (await client.groups.describe("g")).group
            if (group.lag, group.retrying, group.dead) == wanted:
                return
            await asyncio.sleep(POLL_S)


async def filled(client: Client) -> None:
    await client.topics.create("orders", partitions=1)
    await client.groups.create(FILTER, start="earliest", max_deliver=2, backoff=[60])
    async with client.producer("orders") as producer:
        for _ in range(4):
            await producer.send(PAYLOAD)


async def test_what_fails_on_a_full_disk_rests_says_so_and_is_moved_once_there_is_room() -> None:
    with short_directory() as directory:
        try:
            with mounted(directory / "disk", DISK_BYTES) as disk:
                await fails_on(disk, directory)
        except CannotMount as why:
            leave_out(MOUNT, str(why))


async def until_it_is_told(client: Client, record: DeliveredRecord) -> None:
    """While an append is tried, nobody knows yet that the disk refuses it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            answer = await client.groups.why("g", stream=record.stream, offset=record.offset)
            if "full disk" in answer.records[0].reason.sentence:
                return


async def fails_on(disk: Path, directory: Path) -> None:
    data = ("--data-dir", str(disk / "data"), "--listen", f"unix:{directory}/s")
    async with (
        running(*data) as daemon,
        dss_client.connect("c", endpoint=daemon.endpoint) as client,
    ):
        await filled(client)
        async with client.subscribe(FILTER) as subscription:
            refused, rejected, *others = await subscription.fetch(4, PATIENCE_S)
            filler = fill(disk)
            await refused.nak(error="no")
            await rejected.reject("never")
            for record in others:
                await record.ack(sync=True)
            await until_it_stands(client, 2, 0, 0)
            for each in (refused, rejected):
                await until_it_is_told(client, each)
            filler.unlink()
            await until_it_stands(client, 0, 1, 1)
        (retry,) = [each async for each in client.queues.retries("g")]
        (dead,) = [each async for each in client.queues.dead_letters("g")]
        assert (retry.offset, retry.error, retry.attempt) == (0, "no", 1)
        assert (dead.offset, dead.error, dead.cause) == (1, "never", "rejected")
        sums = await client.groups.verify("g", scan=True)
        assert not any(each.problem for each in sums)
