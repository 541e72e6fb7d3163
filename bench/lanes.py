"""What queues cost a group of which nothing fails, how quickly failures are moved, how long lanes
take to be lent again with all that waits in them, and how quickly dead letters come back."""

import asyncio
import re
import signal
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bulk import most_resident_mib
from processes import Daemon, run_program, running_daemon
from processor_time import own_s
from results import Row
from workload import PARTITIONS, TOPIC, key_of_each_partition

import dss_client
from dss_core.changes import RedriveDeadLetters
from dss_core.limits import REDRIVE_RATE_MAX

CONSUMED = 3_000_000
BESIDE = 6_000_000
PUBLISHED = 3_000_000
ELSEWHERE = "elsewhere"
"""A topic that nobody reads."""
TURNS = 4
"""Of others with and without a redrive beside them, each with a lane of its own."""
FAILING = 200_000
DEAD = 200_000
FRAME_RECORDS = 100
WAITING_FEW = 10_000
WAITING = 1_000_000
FAIL_SECONDS_MAX = 240.0
LENT_SECONDS_MAX = 60.0
BACK_OFF_S = 3_600.0
"""Longer than a round: what failed waits until it ends."""


@dataclass(frozen=True, slots=True)
class Lent:
    """Lanes were lent, and gave their first new record each."""

    seconds: float
    cpu_s: float
    """Of the daemon."""
    mib: float
    """The most that the daemon had held by then."""


@dataclass(frozen=True, slots=True)
class Others:
    """A group without failures was consumed by batch."""

    rate: float
    """Millions of records a second."""
    cpu_s: float
    """Of the daemon."""


@dataclass(slots=True)
class Back:
    """What came back from the dead letters of a lane, and was acknowledged."""

    records: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class LentAgain:
    """The same lanes in two groups."""

    empty: Lent
    """With nothing in them."""
    waiting: Lent


async def declare(daemon: Daemon, *names: str, start: str = "earliest") -> None:
    """Groups with queues."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        for name in names:
            await client.groups.create(
                f"$share/{name}/{TOPIC}/#", start=start, max_deliver=5, backoff=[BACK_OFF_S]
            )


async def filled(daemon: Daemon, records: int) -> int:
    """The bench's topic, with about so many records."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create(TOPIC, partitions=PARTITIONS)
    made = await run_program("produce_prebuilt", daemon.endpoint, str(records), str(FRAME_RECORDS))
    return int(made["records"])


async def fail(daemon: Daemon, mode: str, group: str, records: int) -> float:
    """Let so many records fail; thousands a second."""
    arguments = (daemon.endpoint, mode, group, str(records))
    result = await run_program("fail", *arguments, seconds_max=FAIL_SECONDS_MAX)
    return float(result["records"]) / float(result["seconds"]) / 1e3


async def entry_syncs(port: int) -> int:
    """Syncs of log files that appends waited for, since the daemon started."""
    url = f"http://127.0.0.1:{port}/metrics"
    answer = await asyncio.to_thread(urllib.request.urlopen, url, timeout=10)
    with answer:
        found = re.search(rb"^dss_sync_duration_seconds_count (\d+)", answer.read(), re.MULTILINE)
    assert found is not None
    return int(found[1])


async def lent_again(records: int) -> LentAgain:
    """By a daemon that was started anew, where so many records wait."""
    async with running_daemon() as daemon:
        records = await filled(daemon, records)
        await declare(daemon, "waiting")
        await declare(daemon, "empty", start="now")
        await fail(daemon, "batch", "waiting", records)
        await daemon.end(signal.SIGTERM)
        await daemon.start()
        empty = await lent(daemon, "empty")
        # At first it waits for whoever held the lanes under the daemon before.
        await lent(daemon, "waiting")
        return LentAgain(empty, await lent(daemon, "waiting"))


async def fill_with_dead(daemon: Daemon, *groups: str) -> None:
    """Every record of the topic is a dead letter of these groups."""
    records = await filled(daemon, DEAD)
    await declare(daemon, *groups)
    for group in groups:
        await fail(daemon, "reject", group, records)


async def lent(daemon: Daemon, group: str) -> Lent:
    """From a subscription to the first new record of each lane: by then all were read."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        pid = (await client.daemon.status()).pid
        async with client.producer(TOPIC) as producer:
            for key in key_of_each_partition():
                await producer.send(b"new", key=key)
        began, spent_s = time.perf_counter(), own_s(pid)
        async with client.subscribe(f"$share/{group}/{TOPIC}/#") as subscription:
            seen = set[str]()
            while len(seen) < PARTITIONS:
                (new,) = await subscription.fetch(1, timeout=LENT_SECONDS_MAX)
                seen.add(new.stream)
                await new.ack()
            seconds, cpu_s = time.perf_counter() - began, own_s(pid) - spent_s
    return Lent(seconds, cpu_s, most_resident_mib(pid) or 0.0)


async def redriven(daemon: Daemon, group: str) -> float:
    """Thousands of dead letters a second that come back and are acknowledged, all lanes at once."""
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(f"$share/{group}/{TOPIC}/#") as subscription,
    ):
        left = records = (await client.groups.describe(group)).group.dead
        began = time.perf_counter()
        await client.operations.apply(RedriveDeadLetters(group, rate=REDRIVE_RATE_MAX))
        async for batch in subscription.batches():
            await batch.ack()
            left -= len(batch)
            if left <= 0:
                break
        return records / (time.perf_counter() - began) / 1e3


async def others(daemon: Daemon, name: str, records: str) -> Others:
    """A fresh group takes all records."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        pid = (await client.daemon.status()).pid
    spent_s = own_s(pid)
    result = await run_program("consume", daemon.endpoint, "batch", name, records)
    rate = float(result["records"]) / float(result["seconds"]) / 1e6
    return Others(rate, own_s(pid) - spent_s)


async def published(daemon: Daemon) -> float:
    """Millions of records a second that producers of another topic get durable."""
    result = await run_program("produce_columns", daemon.endpoint, str(PUBLISHED), ELSEWHERE)
    return float(result["records"]) / float(result["seconds"]) / 1e6


@asynccontextmanager
async def redriving(daemon: Daemon, group: str, partition: int) -> AsyncIterator[Back]:
    """One lane brings dead letters back at the usual rate while the block runs, and says how many;
    what came since is passed by."""
    back = Back()
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        skipped = await client.operations.skip(group, to="latest")
        await client.operations.ended(skipped.number)
        change = RedriveDeadLetters(group, stream=f"{TOPIC}/0/{partition}")
        operation = await client.operations.apply(change)
        async with (
            client.subscribe(f"$share/{group}/{TOPIC}/#") as subscription,
            asyncio.TaskGroup() as tasks,
        ):
            taking = tasks.create_task(_acknowledge(subscription, back), name="what comes back")
            await back.begun.wait()
            yield back
            taking.cancel()
        await client.operations.cancel(operation.number)
        await client.operations.ended(operation.number)


async def _acknowledge(subscription: dss_client.Subscription, back: Back) -> None:
    async for batch in subscription.batches():
        await batch.ack()
        back.records += len(batch)
        back.begun.set()


async def lent_again_round(table: dict[str, Row]) -> None:
    """Lanes with nothing in them, with few, and with many that wait."""
    few = await lent_again(WAITING_FEW)
    table["lent"].add(few.empty.seconds * 1e3)
    table["lent_few"].add(few.waiting.seconds * 1e3, few.empty.seconds * 1e3)
    table["lent_few_more"].add((few.waiting.seconds - few.empty.seconds) * 1e3)
    many = await lent_again(WAITING)
    table["lent_many"].add(many.waiting.seconds)
    table["lent_many_cpu"].add(many.waiting.cpu_s)
    table["lent_many_mib"].add(many.waiting.mib - many.empty.mib)


async def redrive_round(table: dict[str, Row]) -> None:
    """All lanes alone, and one beside a group of which nothing fails."""
    async with running_daemon() as daemon:
        await fill_with_dead(daemon, "alone", "beside")
        table["redriven"].add(await redriven(daemon, "alone"))
        filled = await run_program("produce_prebuilt", daemon.endpoint, str(BESIDE), "1000")
        records = str(filled["records"])
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create(ELSEWHERE, partitions=PARTITIONS)
        for turn in range(TURNS):
            # Each begins as often as the other.
            if turn % 2:
                alone = await published(daemon)
                plain = await others(daemon, f"plain-{turn}", records)
            async with redriving(daemon, "beside", turn) as back:
                before = back.records
                ours = await others(daemon, f"others-{turn}", records)
                redriven_meanwhile = back.records - before
                beside = await published(daemon)
            if not turn % 2:
                alone = await published(daemon)
                plain = await others(daemon, f"plain-{turn}", records)
            table["published_beside"].add(beside, alone)
            table["redriven_beside"].add(ours.rate, plain.rate)
            table["redriven_cpu"].add((ours.cpu_s - plain.cpu_s) / redriven_meanwhile * 1e6)
