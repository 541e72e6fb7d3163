"""How long the daemon takes to answer operators: lists of many groups, and why a record waits.

A figure is the processor time that all threads of the daemon spent during a call, so what else the
machine does matters little; what else the daemon does counts. Five hundred groups read one topic of
64 streams, some of them with a member; one group has a million records before it.
"""

import asyncio
import contextlib
import statistics
from collections.abc import AsyncIterator
from dataclasses import dataclass

from processes import Daemon, run_program, within
from processor_time import Meter
from workload import KEYS, TOPIC

import dss_client

GROUPS = 500
LIVE_GROUPS = 50
STREAMS = 64
WIDE = "wide"
LAG_RECORDS = 1_000_000
FRAME_RECORDS = 1_000
UNSENT = b"a key that nobody sent"
SETTLE_SECONDS_MAX = 60.0
POLL_S = 0.1
QUIET_S = 2.0
"""Until members were sent what came: that is no part of a list."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Medians, in milliseconds."""

    listed_ms: float
    grown_ms: float
    """After records came in every stream."""
    offset_ms: float
    key_ms: float
    """Of a key with open records."""
    absent_key_ms: float
    """Of one that no record has: all of its partition is looked at."""


async def answered(daemon: Daemon) -> Answered:
    """Ask a fresh daemon."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        meter = Meter((await client.daemon.status()).pid)
        await _fill(client, daemon)
        async with _members(daemon, client):
            await client.groups.list()
            listed = await meter.median_ms(lambda: client.groups.list(sort="lag"))
            grown = []
            for _ in range(3):
                await _publish_everywhere(client)
                await asyncio.sleep(QUIET_S)
                grown.append(await meter.median_ms(lambda: client.groups.list(sort="lag"), calls=1))
        why = client.groups.why
        stream = next(each.stream for each in await client.grants.list("late") if each.end)
        return Answered(
            listed,
            statistics.median(grown),
            await meter.median_ms(lambda: why("late", stream=stream, offset=FRAME_RECORDS * 50)),
            await meter.median_ms(lambda: why("late", key=KEYS[7])),
            await meter.median_ms(lambda: _absent(client)),
        )


async def _absent(client: dss_client.Client) -> None:
    with contextlib.suppress(dss_client.DssError):
        answer = await client.groups.why("late", key=UNSENT)
        assert not answer.records


async def _fill(client: dss_client.Client, daemon: Daemon) -> None:
    await client.groups.create(f"$share/late/{TOPIC}/#", start="earliest")
    await run_program("produce_prebuilt", daemon.endpoint, str(LAG_RECORDS), str(FRAME_RECORDS))
    await client.topics.create(WIDE, partitions=STREAMS)
    await _publish_everywhere(client)
    for number in range(GROUPS):
        await client.groups.create(f"$share/group-{number}/{WIDE}/#", start="earliest")


async def _publish_everywhere(client: dss_client.Client) -> None:
    async with client.producer(WIDE) as producer:
        for number in range(STREAMS * 20):
            await producer.enqueue(b"x", key=b"key-%d" % number)


@contextlib.asynccontextmanager
async def _members(daemon: Daemon, client: dss_client.Client) -> AsyncIterator[None]:
    """One member of some of the groups, which consumes nothing."""
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as member,
        contextlib.AsyncExitStack() as subscribed,
    ):
        for number in range(LIVE_GROUPS):
            subscription = member.subscribe(f"$share/group-{number}/{WIDE}/#")
            await subscribed.enter_async_context(subscription)
        async with within(SETTLE_SECONDS_MAX, "members to hold their streams"):
            while len(await client.groups.list(filter="members>0")) < LIVE_GROUPS:  # noqa: ASYNC110 - a list alone tells
                await asyncio.sleep(POLL_S)
        yield
