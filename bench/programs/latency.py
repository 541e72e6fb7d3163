"""One record from producer to consumer, both in this process, over the daemon; in milliseconds.

Each record is timed twice: until its ack, and until it is handed out. Given the endpoint of
`echo_server.py`, blocks of records take turns with blocks of the bare echo, of one message of the
same size, and of the echo that is durable first.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import grpc
from workload import KEYS, PARTITIONS, PAYLOAD, TOPIC

import dss_client
from dss_core.build import build_frame
from dss_core.columns import Columns

SAMPLES = 400
BLOCKS = 8
GAP_S = 0.002
WARM_UP = 20
Once = Callable[[], Awaitable[None]]


class Probe:
    """Sends records and takes them again."""

    def __init__(
        self, producer: dss_client.Producer, subscription: dss_client.Subscription
    ) -> None:
        self.ack_ms: list[float] = []
        self.delivery_ms: list[float] = []
        self._producer = producer
        self._subscription = subscription
        self._number = 0
        self._sent: dict[bytes, float] = {}
        self._came = asyncio.Semaphore(0)

    async def receive(self) -> None:
        """Take records until cancelled."""
        async for record in self._subscription:
            began = self._sent.pop(record.payload, None)
            if began is not None:
                self.delivery_ms.append((time.perf_counter() - began) * 1e3)
                self._came.release()
            await record.ack()

    async def once(self) -> None:
        """Send a record; it is acknowledged and handed out when this returns."""
        self._number += 1
        payload = (b"probe %08d " % self._number).ljust(len(PAYLOAD), b".")
        began = self._sent[payload] = time.perf_counter()
        await self._producer.send(payload, key=KEYS[self._number % len(KEYS)])
        self.ack_ms.append((time.perf_counter() - began) * 1e3)
        await self._came.acquire()


class Echo:
    """Sends a message and takes it again."""

    def __init__(self, channel: grpc.aio.Channel, method: str) -> None:
        self.taken_ms: list[float] = []
        columns = Columns(payloads=[PAYLOAD], keys=[KEYS[0]], subjects=TOPIC, timestamps_us=0)
        self._message = build_frame(columns, partition=0, producer_id=bytes(16), sequence=0)
        multi: grpc.aio.StreamStreamMultiCallable[bytes, bytes]
        multi = channel.stream_stream(f"/bare.Bare/{method}")
        self._call = multi()

    async def once(self) -> None:
        """Send the message and read it."""
        began = time.perf_counter()
        await self._call.write(self._message)
        await self._call.read()
        self.taken_ms.append((time.perf_counter() - began) * 1e3)


async def repeat(count: int, once: Once) -> None:
    for _ in range(count):
        await once()
        await asyncio.sleep(GAP_S)


def shown(name: str, taken_ms: list[float]) -> dict[str, float]:
    return {
        f"{name}_p50_ms": statistics.median(taken_ms),
        f"{name}_p99_ms": statistics.quantiles(taken_ms, n=100)[98],
    }


async def main(endpoint: str, group: str, echo_endpoint: str | None) -> None:
    lent = asyncio.Semaphore(0)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(dss_client.connect(endpoint=endpoint))
        producer = await stack.enter_async_context(client.producer(TOPIC))
        subscription = await stack.enter_async_context(
            client.subscribe(f"$share/{group}/{TOPIC}/#", on_grant=lambda _: lent.release())
        )
        # The first record is sent when every stream is lent, so that joining is not in it.
        for _ in range(PARTITIONS):
            await lent.acquire()
        probe = Probe(producer, subscription)
        measured: dict[str, list[float]] = {"ack": probe.ack_ms, "delivery": probe.delivery_ms}
        turns: list[Once] = [probe.once]
        if echo_endpoint is not None:
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(echo_endpoint))
            echo, synced = Echo(channel, "Echo"), Echo(channel, "EchoSynced")
            measured |= {"echo": echo.taken_ms, "synced": synced.taken_ms}
            turns = [echo.once, synced.once, probe.once]
        async with asyncio.TaskGroup() as tasks:
            receiving = tasks.create_task(probe.receive())
            for once in turns:
                await repeat(WARM_UP, once)
            for taken_ms in measured.values():
                taken_ms.clear()
            for _ in range(BLOCKS):
                for once in turns:
                    await repeat(SAMPLES // BLOCKS, once)
            receiving.cancel()
    results: dict[str, float] = {}
    for name, taken_ms in measured.items():
        results |= shown(name, taken_ms)
    print(json.dumps(results))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None))
