"""A topic of a data directory that an older version wrote grows under this one."""

from collections import defaultdict
from pathlib import Path

import pytest

import dss_client
from dss_client import Client
from dss_client.changes import GrowTopic
from dssd.data_directory import STORE_NAME
from dssd.store import schema
from support.daemon_process import running, short_directory
from support.older_store import write_as_of
from support.proof_share import FULL, share
from support.syscall_faults import data_in, serving

FILTER = "$share/readers/orders/#"
KEYS = [b"%d" % number for number in range(12)]
EACH = 3
"""Records of a key before and behind each change."""


async def send(client: Client, first: int) -> None:
    async with client.producer("orders") as producer:
        for number in range(first, first + EACH):
            await producer.send_columns([b"%d" % number] * len(KEYS), KEYS)


async def take(client: Client, count: int) -> None:
    """As a member of the group, acknowledge so many."""
    async with client.subscribe(FILTER) as subscription:
        left = count
        while left:
            for record in await subscription.fetch(left, 1.0):
                await record.ack()
                left -= 1
        await subscription.drain()


async def born(directory: Path) -> None:
    """Records of a topic of two partitions, and a group that has read some of them."""
    async with running(*serving(directory, "old")) as daemon:
        async with dss_client.connect("member", endpoint=daemon.endpoint) as client:
            await client.topics.create("orders", partitions=2)
            await client.groups.create(FILTER, start="earliest")
            await send(client, 0)
            await take(client, len(KEYS))
        assert await daemon.stop() == 0


async def growing(client: Client) -> None:
    for turn, partitions in enumerate((6, 4), start=1):
        row = await client.operations.apply(GrowTopic("orders", partitions))
        assert (await client.operations.ended(row.number)).state == "done"
        await send(client, turn * EACH)


async def check(client: Client) -> None:
    found: dict[bytes | None, list[int]] = defaultdict(list)
    async for record in client.read("orders/#"):
        found[record.key].append(int(record.payload))
    assert found == {key: list(range(3 * EACH)) for key in KEYS}
    left = (3 * EACH - 1) * len(KEYS)
    assert (await client.groups.describe("readers")).group.lag == left
    if FULL:
        # Streams that were lent before the restart are lent again seconds after it.
        await take(client, left)
        assert (await client.groups.describe("readers")).group.lag == 0
    # The oldest formats did not count what was done.
    sums = [each for each in await client.groups.verify("readers", scan=True) if each.began == 0]
    added = [each.problem for each in sums if not each.stream.startswith("orders/0/")]
    assert added == [""] * (6 + 4)


@pytest.mark.parametrize("format_", share([1], range(1, schema.FORMAT)))
async def test_all_records_are_read_in_order_before_and_behind_the_growth(format_: int) -> None:
    with short_directory() as directory:
        await born(directory)
        await write_as_of(data_in(directory) / STORE_NAME, format_)
        async with running(*serving(directory, "new")) as daemon:
            async with dss_client.connect("member", endpoint=daemon.endpoint) as client:
                await growing(client)
                await check(client)
            assert await daemon.stop() == 0
            assert "Traceback" not in daemon.said
