"""The same calls of JetStream, of the facade or of nats-py on a real NATS server.

Published by `publish_async`, so many on their way at most, all acknowledged at the end; then pulled
by fetches, each message acknowledged. The clock begins with the second message of either.
"""

import asyncio
import json
import sys
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import nats
from workload import PAYLOAD

import dss_client
from support.nats_oracle import nats_server

STREAM, SUBJECT = "BENCH", "bench.one"
ON_THEIR_WAY = 2_000
BATCH = 500


@asynccontextmanager
async def facade(endpoint: str, durability: str) -> AsyncIterator[Any]:
    async with dss_client.connect(endpoint=endpoint) as client:
        await client.topics.create(
            STREAM, partitions=1, patterns=["bench/+/#"], durability=durability
        )
        yield client.jetstream()


@asynccontextmanager
async def server() -> AsyncIterator[Any]:
    async with nats_server() as address:
        client = await nats.connect(address)
        js = client.jetstream()
        await js.add_stream(name=STREAM, subjects=["bench.>"])
        yield js
        await client.close()


async def publish(js: Any, messages: int) -> float:  # noqa: ANN401
    await js.publish(SUBJECT, PAYLOAD)
    waiting: deque[Any] = deque()
    began = time.perf_counter()
    for _ in range(messages):
        if len(waiting) == ON_THEIR_WAY:
            await waiting.popleft()
        waiting.append(await js.publish_async(SUBJECT, PAYLOAD))
    for ack in waiting:
        await ack
    return time.perf_counter() - began


async def pull(js: Any, messages: int) -> float:  # noqa: ANN401
    subscription = await js.pull_subscribe(SUBJECT, "puller")
    (first,) = await subscription.fetch(1, timeout=20)
    await first.ack()
    began = time.perf_counter()
    left = messages
    while left:
        found = await subscription.fetch(min(BATCH, left), timeout=20)
        for message in found:
            await message.ack()
        left -= len(found)
    return time.perf_counter() - began


async def main(side: str, durability: str, messages: int) -> None:
    there = server() if side == "nats" else facade(side, durability)
    async with there as js:
        seconds = await publish(js, messages), await pull(js, messages)
    print(json.dumps({"messages": messages, "published_s": seconds[0], "pulled_s": seconds[1]}))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
