"""Two hundred clients, half of them hostile, against one daemon: `python bench/soak.py`, a minute.

A calm, a siege, a recovery. In all three it is measured what a well-behaved pair sees, how long an
operator waits for an answer, and what the daemon takes of memory; and at the end what was refused.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from processes import BenchError, Daemon, Process, running_daemon, started_program
from rich.console import Console
from rich.table import Table
from workload import PARTITIONS, TOPIC

import dss_client
from dss_core.errors import DssError

PAIR_TOPIC = "pair"
RECORDS = 20_000
RECORD_BYTES = 1_000
PARTS_S = {"calm": 8.0, "siege": 32.0, "recovery": 20.0}
HOSTILE = {
    "idle": 4_096,
    "halves": 17,
    "never-read": 17,
    "garbage": 17,
    "naks": 17,
    "loops": 17,
}
"""Clients of each kind; the idle connections are those of one client. With 15 more that only hold a
few, there are a hundred."""
IDLE_FEW = 15
GOOD_PROCESSES = 7
GOOD_A_PROCESS = 14
"""With the pair a hundred."""
GOOD_EVERY_S = "0.1"
"""How often two records come for each of their streams."""
OPERATOR_EVERY_S = 0.5
MEMORY_EVERY_S = 0.25
OPERATOR_WAIT_S = 10.0


@dataclass(slots=True)
class Part:
    """What was seen in one part."""

    began_ns: int
    latencies_ms: list[float] = field(default_factory=list)
    operator_ms: list[float] = field(default_factory=list)
    operator_errors: int = 0
    memory_mib: list[int] = field(default_factory=list)


class Observed:
    """The parts, the newest last."""

    def __init__(self) -> None:
        self.parts: dict[str, Part] = {}

    @property
    def now(self) -> Part:
        """The part that is on."""
        return next(reversed(self.parts.values()))

    def begin(self, name: str) -> None:
        """A part begins."""
        self.parts[name] = Part(time.monotonic_ns())

    def heard(self, line: bytes) -> None:
        """A line of the pair."""
        _, _, took_ms = line.decode().strip().partition(" ")
        if took_ms:
            self.now.latencies_ms.append(float(took_ms))


async def fill(daemon: Daemon) -> None:
    """The topics, and records for those who come for them."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create(TOPIC, partitions=PARTITIONS)
        await client.topics.create(PAIR_TOPIC, partitions=1)
        async with client.producer(TOPIC) as producer:
            keys = [b"%d" % number for number in range(RECORDS)]
            await producer.send_columns(payloads=[os.urandom(RECORD_BYTES)] * RECORDS, keys=keys)


def resident_mib(pid: int) -> int:
    """What a process takes."""
    statm = Path(f"/proc/{pid}/statm").read_text().split()
    return int(statm[1]) * os.sysconf("SC_PAGESIZE") >> 20


async def watch_memory(daemon: Daemon, observed: Observed) -> None:
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        pid = (await client.daemon.status()).pid
    while True:
        observed.now.memory_mib.append(resident_mib(pid))
        await asyncio.sleep(MEMORY_EVERY_S)


async def operate(daemon: Daemon, observed: Observed) -> None:
    """Ask as an operator does, over a new connection each time."""
    while True:
        began = time.perf_counter()
        try:
            endpoint = dss_client.operators_endpoint(daemon.endpoint) or daemon.endpoint
            async with (
                asyncio.timeout(OPERATOR_WAIT_S),
                dss_client.connect(endpoint=endpoint) as client,
            ):
                await client.daemon.status()
            observed.now.operator_ms.append((time.perf_counter() - began) * 1e3)
        except (DssError, TimeoutError):
            observed.now.operator_errors += 1
        await asyncio.sleep(OPERATOR_EVERY_S)


@contextlib.asynccontextmanager
async def besieged(daemon: Daemon, kinds: Collection[str]) -> AsyncIterator[None]:
    """All hostile clients, each kind a process of its own."""
    path = daemon.endpoint.removeprefix("unix:")
    async with contextlib.AsyncExitStack() as stack:
        started: list[Process] = []
        for kind, count in (*HOSTILE.items(), ("idle", IDLE_FEW)):
            if kind not in kinds:
                continue
            program = started_program("hostile", kind, path, str(count))
            started.append(await stack.enter_async_context(program))
        for process in started:
            await process.ready()
        yield


@contextlib.asynccontextmanager
async def good_clients(daemon: Daemon) -> AsyncIterator[None]:
    """Members of a group that share what a steady producer sends."""
    async with contextlib.AsyncExitStack() as stack:
        members = ("members", daemon.endpoint, "good", TOPIC, str(GOOD_A_PROCESS))
        running = [
            await stack.enter_async_context(started_program(*members))
            for _ in range(GOOD_PROCESSES)
        ]
        await stack.enter_async_context(started_program("steady", daemon.endpoint, GOOD_EVERY_S))
        for program in running:
            await program.ready()
        yield


async def soak(scale: float, kinds: Collection[str]) -> tuple[Observed, dict[str, int]]:
    """Run the parts; returns what was seen, and what was refused, by the peer's program."""
    observed = Observed()
    observed.begin("start")
    async with running_daemon() as daemon:
        await fill(daemon)
        async with (
            started_program("pair", daemon.endpoint, PAIR_TOPIC, heard=observed.heard) as pair,
            good_clients(daemon),
        ):
            await pair.ready()
            async with asyncio.TaskGroup() as tasks:
                watches = [
                    tasks.create_task(watch_memory(daemon, observed), name="memory"),
                    tasks.create_task(operate(daemon, observed), name="operator"),
                ]
                for name, seconds in PARTS_S.items():
                    siege = besieged(daemon, kinds) if name == "siege" else contextlib.nullcontext()
                    async with siege:
                        observed.begin(name)
                        await asyncio.sleep(seconds * scale)
                for watch in watches:
                    watch.cancel()
            return observed, await refused(daemon)


async def refused(daemon: Daemon) -> dict[str, int]:
    """Events of refusals, by their code and what was refused."""
    counts: defaultdict[str, int] = defaultdict(int)
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        page = await client.events.list(codes=("peer.refused", "consumer.slow"))
    for event in page.events:
        what = next(iter(event.fields), "") if event.code == "peer.refused" else ""
        counts[f"{event.code} {what}".strip()] += event.times
    return counts


def rows(observed: Observed) -> Iterator[tuple[str, ...]]:
    for name in PARTS_S:
        part = observed.parts[name]
        if len(part.latencies_ms) < 2 or len(part.operator_ms) < 2:
            raise BenchError(f"nothing was heard in the {name}")
        cut = statistics.quantiles(part.latencies_ms, n=100)
        yield (
            name,
            f"{len(part.latencies_ms)}",
            f"{cut[49]:.1f}",
            f"{cut[98]:.1f}",
            f"{max(part.latencies_ms):.0f}",
            f"{statistics.median(part.operator_ms):.0f}",
            f"{max(part.operator_ms):.0f}",
            f"{part.operator_errors}",
            f"{max(part.memory_mib)}",
            f"{part.memory_mib[-1]}",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the length of each part")
    parser.add_argument("kinds", nargs="*", default=list(HOSTILE), help=", ".join(HOSTILE))
    arguments = parser.parse_args()
    observed, counts = asyncio.run(soak(arguments.scale, arguments.kinds))
    table = Table(title="200 clients, half of them hostile", title_justify="left")
    for name in (
        *("part", "records", "p50 ms", "p99 ms", "max ms"),
        *("operator p50", "max ms", "failed", "memory max MiB", "at the end"),
    ):
        table.add_column(name, justify="left" if name == "part" else "right")
    for row in rows(observed):
        table.add_row(*row)
    console = Console(width=120)
    console.print(table)
    for what, count in sorted(counts.items()):
        console.print(f"{what}: {count}")


if __name__ == "__main__":
    main()
