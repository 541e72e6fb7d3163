"""What queues cost a group of which nothing fails, how quickly failures are moved, and how long
lanes take to be lent again with all that waits in them."""

import time

from processes import Daemon
from workload import TOPIC

import dss_client

CONSUMED = 3_000_000
FAILING = 200_000
BACK_OFF_S = 3_600.0
"""Longer than a round: what failed waits until it ends."""


async def declare(daemon: Daemon, *names: str) -> None:
    """Groups with queues, from the beginning of the topic."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        for name in names:
            await client.groups.create(
                f"$share/{name}/{TOPIC}/#", start="earliest", max_deliver=5, backoff=[BACK_OFF_S]
            )


async def seconds_to_open(daemon: Daemon, group: str) -> float:
    """From a subscription to the first new record of it: by then a lane was read."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        async with client.producer(TOPIC) as producer:
            await producer.send(b"new")
        began = time.perf_counter()
        async with client.subscribe(f"$share/{group}/{TOPIC}/#") as subscription:
            (first,) = await subscription.fetch(1, timeout=60)
            seconds = time.perf_counter() - began
            await first.ack()
    return seconds
