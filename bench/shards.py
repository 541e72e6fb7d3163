"""What another count of shards costs a live ordered group: idle with many keys that wait, and under
load, where a *stand-still* is what lies between two records that one stream hands out; and what a
switch costs while records wait.
"""

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import rehoming
import steps
from processes import Daemon, running_daemon
from results import Row
from workload import PARTITIONS, TOPIC

import dss_client
from dss_client import Client, Subscription
from dss_core.changes import SetShardCount

GROUP = "sharded"
FILTER = f"$share/{GROUP}/{TOPIC}/#"
WAITING = 100_000
MEMBERS = 3
COUNTS = (7, 12)
"""By turns: with three members the first moves some streams, and the second brings them back."""
CHANGES = 6
CHANGE_EVERY_S = 1.5
SENT_EVERY_S = 0.004
KEYS = 480
COMES_IN_S = 3_600.0
"""Nothing that waits comes again while it is measured."""


def rows() -> dict[str, Row]:
    """Those that `measured` fills."""
    return {
        "count_idle": Row("shards set-count, 100,000 keys waiting, idle", "s", "<= 5"),
        "count_step": Row("  the longest step of the daemon", "ms", "<= 5"),
        "count_moved": Row("  under load, a stream that moves stands still", "ms", "<= 2,000"),
        "count_stays": Row("  one that stays", "ms", "", "between two counts", "<= 1.5"),
        **rehoming.rows(),
    }


async def measured(table: dict[str, Row]) -> None:
    """One round."""
    async with sharded(FILTER) as (daemon, client), waiting(daemon, client):
        table["count_idle"].add(await count_s(client))
    # This daemon takes longer, for it times its steps.
    async with sharded(FILTER, steps.PROGRAM) as (daemon, client), waiting(daemon, client):
        await steps.longest_ms(daemon)
        await count_s(client)
        table["count_step"].add(await steps.longest_ms(daemon))
    async with sharded(FILTER) as (daemon, client):
        moved_ms, stays_ms, calm_ms = await loaded(daemon, client)
    table["count_moved"].add(moved_ms)
    table["count_stays"].add(stays_ms, calm_ms)
    await rehoming.measured(table)


@asynccontextmanager
async def sharded(group: str, *program: str) -> AsyncIterator[tuple[Daemon, Client]]:
    """A daemon with the bench's topic, and an ordered group."""
    async with (
        running_daemon(program=program or ("-m", "dssd")) as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await client.topics.create(TOPIC, partitions=PARTITIONS)
        await client.groups.create(
            group, start="earliest", ordered=True, max_deliver=5, backoff=[COMES_IN_S]
        )
        yield daemon, client


@asynccontextmanager
async def members(daemon: Daemon) -> AsyncIterator[list[Subscription]]:
    """So many members, each with its share."""
    async with AsyncExitStack() as stack:
        found = []
        for at in range(MEMBERS):
            connected = dss_client.connect(f"member-{at}", endpoint=daemon.endpoint)
            client = await stack.enter_async_context(connected)
            found.append(await stack.enter_async_context(client.subscribe(FILTER)))
        yield found


@asynccontextmanager
async def waiting(daemon: Daemon, client: Client) -> AsyncIterator[None]:
    """Members, while so many keys wait in the queues."""
    async with client.producer(TOPIC) as producer:
        keys = [b"waits-%06d" % each for each in range(WAITING)]
        await producer.send_columns(payloads=keys, keys=keys)
    async with client.subscribe(FILTER) as subscription:
        refused = 0
        async for batch in subscription.batches():
            await batch.nak(error="a failure of the bench")
            refused += len(batch)
            if refused >= WAITING:
                break
        while (await client.groups.describe(GROUP)).group.retrying < WAITING:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    async with members(daemon):
        await until_shared(client)
        yield


async def count_s(client: Client) -> float:
    """A change of the count."""
    began = time.perf_counter()
    applied = await client.operations.apply(SetShardCount(GROUP, COUNTS[0]))
    await client.operations.ended(applied.number)
    return time.perf_counter() - began


async def until_shared(client: Client) -> None:
    """Every stream is with one of the members."""
    while True:
        grants = (await client.groups.describe(GROUP)).grants
        holders = {each.client_id for each in grants if each.state == "granted"}
        if len(holders) == MEMBERS and all(each.state == "granted" for each in grants):
            return
        await asyncio.sleep(0.05)


async def loaded(daemon: Daemon, client: Client) -> tuple[float, float, float]:
    """The longest stand-stills, in ms: of streams that moved, of those that stayed, and of those
    between two counts."""
    handed: dict[str, list[float]] = defaultdict(list)
    async with members(daemon) as subscriptions, asyncio.TaskGroup() as tasks:
        works = [tasks.create_task(_take(each, handed), name="member") for each in subscriptions]
        works.append(tasks.create_task(_send(client), name="producer"))
        await until_shared(client)
        await asyncio.sleep(CHANGE_EVERY_S)
        moved, stays, calm = [0.0], [0.0], [0.0]
        for at in range(CHANGES):
            before = await _holders(client)
            began = time.perf_counter()
            calm.append(_longest(handed, handed, began - CHANGE_EVERY_S, began))
            count = COUNTS[at % len(COUNTS)]
            applied = await client.operations.apply(SetShardCount(GROUP, count))
            await client.operations.ended(applied.number)
            await asyncio.sleep(CHANGE_EVERY_S)
            after, ends = await _holders(client), began + CHANGE_EVERY_S
            other = {stream for stream in after if after[stream] != before[stream]}
            moved.append(_longest(handed, other, began, ends))
            stays.append(_longest(handed, after.keys() - other, began, ends))
        for work in works:
            work.cancel()
    return max(moved), max(stays), max(calm)


async def _take(subscription: Subscription, handed: dict[str, list[float]]) -> None:
    async for record in subscription:
        handed[record.stream].append(time.perf_counter())
        await record.ack()


async def _send(client: Client) -> None:
    """One record to each of some keys, all streams in turn."""
    keys = itertools.cycle(b"key-%04d" % each for each in range(KEYS))
    async with client.producer(TOPIC) as producer:
        while True:
            some = [next(keys) for _ in range(2 * PARTITIONS)]
            await producer.send_columns(payloads=some, keys=some)
            await asyncio.sleep(SENT_EVERY_S)


async def _holders(client: Client) -> dict[str, tuple[str, int]]:
    grants = (await client.groups.describe(GROUP)).grants
    return {each.stream: (each.client_id, each.grant_epoch) for each in grants}


def _longest(
    handed: dict[str, list[float]], streams: "set[str] | dict[str, list[float]]",
    begins: float, ends: float,
) -> float:  # fmt: skip
    longest_s = 0.0
    for stream in streams:
        times = [each for each in handed[stream] if begins <= each <= ends]
        for one, next_one in itertools.pairwise([begins, *times]):
            longest_s = max(longest_s, next_one - one)
    return longest_s * 1e3
