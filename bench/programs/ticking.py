"""Producers that send one record each fifty milliseconds, whatever happens to their topic.

Each has a connection of its own. Prints one line when each has its first ack; then, for every
switch that a producer goes through, the gap between its last ack from the old streams and its first
from the new ones; and each second all other gaps between acks. Goes on until it is killed.
"""

import asyncio
import json
import sys
import time
from contextlib import AsyncExitStack

from workload import KEYS, PAYLOAD, TOPIC

import dss_client
from dss_client import Delivery, Producer

TICK_S = 0.05
KEYS_APART = 97
"""Between the first keys of two producers."""


class Gaps:
    """Between the acks of one producer."""

    def __init__(self, calm_ms: list[float]) -> None:
        self._calm_ms = calm_ms
        self._ordinal = 0
        self._acked_s = time.perf_counter()

    def note(self, stream: str) -> None:
        """An ack has come."""
        now_s = time.perf_counter()
        gap_ms = (now_s - self._acked_s) * 1e3
        self._acked_s = now_s
        ordinal = int(stream.split("/")[1])
        if ordinal > self._ordinal:
            self._ordinal = ordinal
            print(json.dumps({"ordinal": ordinal, "gap_ms": gap_ms}), flush=True)
        else:
            self._calm_ms.append(gap_ms)


async def tick(producer: Producer, number: int, calm_ms: list[float]) -> None:
    """Send a record at each tick; one that is late goes at once."""
    ack = await producer.send(PAYLOAD, key=KEYS[number * KEYS_APART])
    gaps = Gaps(calm_ms)
    gaps.note(ack.stream)
    calm_ms.clear()

    async def acked(delivery: Delivery) -> None:
        gaps.note((await delivery).stream)

    due, key = time.perf_counter(), number * KEYS_APART
    async with asyncio.TaskGroup() as tasks:
        while True:
            key = (key + 1) % len(KEYS)
            delivery = await producer.enqueue(PAYLOAD, key=KEYS[key])
            tasks.create_task(acked(delivery), name="ack")
            due += TICK_S
            await asyncio.sleep(max(0.0, due - time.perf_counter()))


async def main(endpoint: str, producers: int) -> None:
    calm_ms: list[float] = []
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        for number in range(producers):
            client = await stack.enter_async_context(dss_client.connect(endpoint=endpoint))
            producer = await stack.enter_async_context(client.producer(TOPIC))
            tasks.create_task(tick(producer, number, calm_ms), name="producer")
            await asyncio.sleep(TICK_S / producers)
        print("ready", flush=True)
        while True:
            await asyncio.sleep(1)
            print(json.dumps({"calm_ms": [round(gap_ms, 1) for gap_ms in calm_ms]}), flush=True)
            calm_ms.clear()


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
