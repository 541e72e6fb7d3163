"""Running a bench: publish and deliver as fast as possible, then one record after the other."""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from dss_core.errors import DssError, IllegalArgument, TimedOut
from dssctl.bench.figures import Part
from dssctl.connection import connected, in_time, require_daemon
from dssctl.limits import BENCH_LATENCY_S
from dssctl.settings import Settings

if TYPE_CHECKING:
    from dss_client import Client, Producer, Subscription

BENCH_FRAMES_OUT = 4
"""How many appends wait for their answers at a time: enough to keep a disk busy."""

BENCH_BYTES_MAX = 4 << 30
BENCH_DISK_PART = 0.1
"""The most that a bench may publish: this many bytes, and this share of the free space."""

BENCH_KEPT_MS = 3_600_000
"""The retention of its topic, in case nobody is left to remove it."""

BENCH_DRAIN_S = 30.0
"""How long published records may take to come back; longer means that delivery stands still."""

BENCH_CLEAN_UP_S = 15.0
"""The timeout for removing topic and group at the end; a daemon that is gone cannot do it."""

BENCH_SHOWN_EVERY_S = 0.2
"""The pause between two updates of the progress."""


Show = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """What is measured."""

    records: int
    size_bytes: int
    frame_records: int
    partitions: int
    durability: str
    single_records: int
    """Records for latencies, one after the other."""
    seconds: float
    """The longest time for publishing."""

    @property
    def bytes(self) -> int:
        """The bytes of all payloads."""
        return self.records * self.size_bytes


@dataclass(slots=True)
class _Progress:
    """How far a run is."""

    published: int = 0
    delivered: int = 0
    all_published: bool = field(default=False)


async def measured(settings: Settings, plan: BenchPlan, show: Show) -> list[Part]:
    """Run it.

    Raises:
        IllegalArgument: it would take too much of the disk.
        TimedOut: published records do not come back.
        DssError: the daemon is away, or refuses.
    """
    name = f"dssctl-bench-{secrets.token_hex(4)}"
    async with connected(settings) as publisher, connected(settings) as consumer:
        await require_daemon(publisher, settings)
        await _require_room(publisher, settings, plan)
        seconds = plan.seconds + BENCH_LATENCY_S + BENCH_DRAIN_S
        try:
            async with (
                _own_topic(publisher, settings, name, plan),
                asyncio.timeout(seconds),
                publisher.producer(name) as producer,
                consumer.subscribe(f"$share/{name}/{name}/#", start="earliest") as subscription,
            ):
                parts = await _at_full_speed(plan, producer, subscription, show)
                return [*parts, *await _one_by_one(plan, producer, subscription)]
        except TimeoutError as late:
            raise TimedOut(what="The bench", seconds=f"{seconds:g}") from late


async def _require_room(client: "Client", settings: Settings, plan: BenchPlan) -> None:
    status = await in_time(settings, client.daemon.status())
    room = min(BENCH_BYTES_MAX, int(status.disk_free_bytes * BENCH_DISK_PART))
    if plan.bytes > room:
        rule = f"so much is published: {plan.bytes:,} bytes; {room:,} may be, here"
        raise IllegalArgument(argument="--records times --size", rule=rule)


@asynccontextmanager
async def _own_topic(
    client: "Client", settings: Settings, name: str, plan: BenchPlan
) -> AsyncIterator[None]:
    """A topic and a group that are removed afterwards, even after Ctrl-C."""
    try:
        await in_time(
            settings,
            client.topics.create(
                name,
                partitions=plan.partitions,
                durability=plan.durability,
                # If this process is killed, retention removes the records soon.
                retention_ms=BENCH_KEPT_MS,
            ),
        )
        yield
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(BENCH_CLEAN_UP_S):
                with suppress(DssError):
                    await client.groups.remove(f"{name}@{name}/#", if_exists=True)
                await client.topics.remove(name, force=True, if_exists=True)


async def _at_full_speed(
    plan: BenchPlan, producer: "Producer", subscription: "Subscription", show: Show
) -> list[Part]:
    progress = _Progress()
    began = perf_counter()
    async with asyncio.TaskGroup() as tasks:
        delivering = tasks.create_task(
            _deliver(progress, subscription), name="dssctl bench deliver"
        )
        shown = tasks.create_task(_show(plan, progress, show), name="dssctl bench show")
        latencies = await _publish(plan, producer, progress)
        took = perf_counter() - began
        if progress.delivered >= progress.published:
            delivering.cancel()
        # Not awaited directly, because then our own cancellation would look like the task's.
        await asyncio.wait([delivering])
        delivered_s = perf_counter() - began
        shown.cancel()
    size = progress.published * plan.size_bytes
    return [
        Part("publish", progress.published, took, size, tuple(latencies)),
        Part("deliver", progress.delivered, delivered_s, progress.delivered * plan.size_bytes),
    ]


async def _publish(plan: BenchPlan, producer: "Producer", progress: _Progress) -> list[float]:
    """Publish frames, a few at a time; returns how long each took until it was stored."""
    latencies: list[float] = []
    out: deque[asyncio.Task[None]] = deque()
    until = perf_counter() + plan.seconds

    async def send(payloads: list[bytes]) -> None:
        sent = perf_counter()
        await producer.send_columns(payloads)
        latencies.append(perf_counter() - sent)
        progress.published += len(payloads)

    async with asyncio.TaskGroup() as tasks:
        left = plan.records
        while left and perf_counter() < until:
            count = min(plan.frame_records, left)
            left -= count
            payloads = [bytes(plan.size_bytes)] * count
            out.append(tasks.create_task(send(payloads), name="dssctl bench frame"))
            if len(out) >= BENCH_FRAMES_OUT:
                await out.popleft()
    progress.all_published = True
    return latencies


async def _deliver(progress: _Progress, subscription: "Subscription") -> None:
    """Take and acknowledge until all published records came."""
    async with aclosing(subscription.batches()) as batches:
        async for batch in batches:
            await batch.ack()
            progress.delivered += len(batch)
            if progress.all_published and progress.delivered >= progress.published:
                return


async def _show(plan: BenchPlan, progress: _Progress, show: Show) -> None:
    while True:
        show(progress.delivered, plan.records)
        await asyncio.sleep(BENCH_SHOWN_EVERY_S)


async def _one_by_one(
    plan: BenchPlan, producer: "Producer", subscription: "Subscription"
) -> list[Part]:
    """One record at a time: how long until it was stored, and until it arrived here."""
    acks: list[float] = []
    ends: list[float] = []
    began = perf_counter()
    async with aclosing(subscription.batches()) as batches:
        while len(acks) < plan.single_records and perf_counter() - began < BENCH_LATENCY_S:
            sent = perf_counter()
            await producer.send(bytes(plan.size_bytes))
            acks.append(perf_counter() - sent)
            batch = await anext(batches)
            ends.append(perf_counter() - sent)
            await batch.ack()
    took = perf_counter() - began
    size = len(acks) * plan.size_bytes
    return [
        Part("ack", len(acks), took, size, tuple(acks)),
        Part("end-to-end", len(ends), took, size, tuple(ends)),
    ]
