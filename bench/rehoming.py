"""How long what waits in queues takes to go to the streams of a topic that has grown.

Run by itself: ``python bench/rehoming.py``. All records of an ordered group have failed and wait,
so that its streams are read to their ends; then the topic grows. It counts from the end of the
operation to when all new streams are lent, and how long the daemon's loop was held at most.
"""

import asyncio
import logging
import re
import statistics
import time
import urllib.request

from processes import Daemon, running_daemon
from scrapes import free_port
from workload import TOPIC

import dss_client
from dss_client import Client, DeliveredRecord
from dss_core.changes import GrowTopic

ROUNDS = 5
WAITING = 10_000
PARTITIONS = 4, 8
BACK_OFF_S = 3_600.0
"""Longer than a round."""


async def filled(client: Client) -> None:
    """All records wait for their second attempt."""
    await client.topics.create(TOPIC, partitions=PARTITIONS[0])
    group = f"$share/g/{TOPIC}/#"
    await client.groups.create(
        group, start="earliest", ordered=True, max_deliver=5, backoff=[BACK_OFF_S]
    )
    async with client.producer(TOPIC) as producer:
        await producer.send_columns(
            payloads=[b"x" * 100] * WAITING, keys=[b"%d" % at for at in range(WAITING)]
        )

    async def fail(record: DeliveredRecord) -> None:
        raise ValueError("no price for it")

    async with client.subscribe(group) as subscription:
        running = asyncio.ensure_future(subscription.run(fail, concurrency=256))
        await all_wait(client)
        running.cancel()


async def all_wait(client: Client) -> None:
    """Look until everything is in the retry queues."""
    while True:
        group = (await client.groups.describe("g")).group
        if (group.retrying, group.lag) == (WAITING, 0):
            return
        await asyncio.sleep(0.02)


async def are(client: Client, states: list[str]) -> None:
    """Look until the streams of the group are in these states."""
    while sorted(each.state for each in await client.grants.list("g")) != states:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def delays(port: int) -> dict[float, float]:
    """How often the daemon's loop was late by so many milliseconds at most, so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    found = re.findall(r'dss_loop_delay_seconds_bucket\{le="([^"]+)"\} (\S+)', text)
    return {float(most) * 1e3: float(count) for most, count in found}


def longest_ms(before: dict[float, float], after: dict[float, float]) -> float:
    """The bucket of the longest delay in between."""
    more = {most: after[most] - before.get(most, 0) for most in after}
    return min(most for most in more if more[most] == max(more.values()))


async def round_of(daemon: Daemon, port: int) -> tuple[float, float]:
    """Seconds, and the longest delay of the daemon's loop in milliseconds."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await filled(client)
        async with client.subscribe(f"$share/g/{TOPIC}/#"):
            await are(client, ["granted"] * PARTITIONS[0])
            before = await asyncio.to_thread(delays, port)
            row = await client.operations.apply(
                GrowTopic(TOPIC, PARTITIONS[1]), reason="to see how long it takes"
            )
            await client.operations.ended(row.number)
            began_s = time.perf_counter()
            await are(client, ["finished"] * PARTITIONS[0] + ["granted"] * PARTITIONS[1])
            took_s = time.perf_counter() - began_s
            return took_s, longest_ms(before, await asyncio.to_thread(delays, port))


async def main() -> None:
    """Some rounds, each with a daemon of its own."""
    logging.getLogger("dss_client").setLevel(logging.CRITICAL)
    found = []
    for _ in range(ROUNDS):
        port = free_port()
        async with running_daemon("--metrics", f"127.0.0.1:{port}") as daemon:
            found.append(await round_of(daemon, port))
    for name, at in (("seconds", 0), ("longest delay of the loop, at most, ms", 1)):
        values = [each[at] for each in found]
        print(f"{name}: {statistics.median(values):.3f} ({min(values):.3f}..{max(values):.3f})")


asyncio.run(main())
