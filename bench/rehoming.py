"""How long what waits in queues takes to go to the streams of a topic that has grown.

All records of an ordered group have failed and wait, so that its streams are read to their ends;
then the topic grows. It counts from the end of the operation to when all new streams are lent.
"""

import asyncio
import logging
import time

import steps
from processes import running_daemon
from results import Row
from workload import TOPIC

import dss_client
from dss_client import Client, DeliveredRecord
from dss_core.changes import GrowTopic

WAITING = 10_000
PARTITIONS = 4, 8
BACK_OFF_S = 3_600.0
"""Longer than a round."""


def rows() -> dict[str, Row]:
    """Those that `measured` fills."""
    return {
        "rehomed": Row("a switch, 10,000 waiting, until all is re-homed and lent", "s", "<= 1"),
        "rehomed_step": Row("  the longest step of the daemon", "ms", "<= 5"),
    }


async def measured(table: dict[str, Row]) -> None:
    """One round."""
    client_log = logging.getLogger("dss_client")
    before = client_log.level
    # Each of the failures would be a warning.
    client_log.setLevel(logging.CRITICAL)
    try:
        table["rehomed"].add(await _switch_s())
        table["rehomed_step"].add(await _switch_step_ms())
    finally:
        client_log.setLevel(before)


async def _switch_s() -> float:
    async with running_daemon() as daemon, dss_client.connect(endpoint=daemon.endpoint) as client:
        await _filled(client)
        return await _switched_s(client)


async def _switch_step_ms() -> float:
    """By a daemon that times its steps, and takes longer for it."""
    async with (
        running_daemon(program=(steps.PROGRAM,)) as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await _filled(client)
        await steps.longest_ms(daemon)
        await _switched_s(client)
        return await steps.longest_ms(daemon)


async def _filled(client: Client) -> None:
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
        await _all_wait(client)
        running.cancel()


async def _all_wait(client: Client) -> None:
    """Look until everything is in the retry queues."""
    while True:
        group = (await client.groups.describe("g")).group
        if (group.retrying, group.lag) == (WAITING, 0):
            return
        await asyncio.sleep(0.02)


async def _switched_s(client: Client) -> float:
    async with client.subscribe(f"$share/g/{TOPIC}/#"):
        await _are(client, ["granted"] * PARTITIONS[0])
        row = await client.operations.apply(
            GrowTopic(TOPIC, PARTITIONS[1]), reason="to see how long it takes"
        )
        await client.operations.ended(row.number)
        began_s = time.perf_counter()
        await _are(client, ["finished"] * PARTITIONS[0] + ["granted"] * PARTITIONS[1])
        return time.perf_counter() - began_s


async def _are(client: Client, states: list[str]) -> None:
    """Look until the streams of the group are in these states."""
    while sorted(each.state for each in await client.grants.list("g")) != states:  # noqa: ASYNC110 - only a look tells
        await asyncio.sleep(0.01)
