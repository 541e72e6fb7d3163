"""What growth of a topic costs: its producers at a switch, and whoever has many generations.

Fifty producers send a record each fifty milliseconds, and a *gap* is what lies between two acks of
one of them. A topic of sixteen generations is held to one generation of as many streams.
"""

import asyncio
import json
import signal
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from processes import Daemon, Process, run_program, running_daemon, started_program, within
from processor_time import Meter, own_s
from results import Row
from workload import PARTITIONS, TOPIC

import dss_client
from dss_core.changes import GrowTopic

PROCESSES = 5
PRODUCERS_A_PROCESS = 10
SWITCHES = 12
SWITCH_EVERY_S = 1.5
SETTLED_S = 3.0
SEEN_SECONDS_MAX = 30.0
SWITCHES_UNDER_LOAD = 3
LOADED_RECORDS = 6_000_000
"""About as long as the switches take that come a second apart."""
GENERATIONS = 16
STREAMS = 1_024
GROUPS = 50
RECORDS = 20_480
IDLE_S = 5.0
CALLS = 31
"""Behind the first, which looks at all streams; the median of few is that of its aftermath."""


UNSWITCHED = "the same, not switched"
ONE = "one generation of 1,024"


def rows() -> dict[str, Row]:
    """Those that `measured` fills."""
    return {
        "switched50": Row("50 producers, between acks at a switch, p50", "ms", ""),
        "switched99": Row("  p99", "ms", "<= 200"),
        "switched_max": Row("  the longest", "ms", ""),
        "unswitched99": Row("  apart from switches, p99", "ms", "baseline"),
        "switch_daemon": Row("  processor time of a switch, daemon", "ms", ""),
        "switch_clients": Row("  the five processes of producers", "ms", ""),
        "switch_cost": Row("a switch, in seconds of what is produced", "s", "<= 1"),
        "anew": Row("a full buffer routed anew, until stored", "ms", "", UNSWITCHED),
        "anew_cpu": Row("  processor time of the producer", "ms", "", UNSWITCHED),
        "anew_held": Row("  its loop held for at most", "ms", "", UNSWITCHED),
        "generations_listed": Row("50 groups listed, 16 generations", "ms", "", ONE, "<= 1.1"),
        "generations_start": Row("  processor time of a start", "ms", "", ONE, "<= 1.1"),
        "generations_idle": Row("  of a second without work", "ms", "", ONE, "<= 1.1"),
    }


async def measured(table: dict[str, Row]) -> None:
    """One round."""
    async with new_topic() as daemon:
        at_switches = await rested(daemon)
    percents = statistics.quantiles(at_switches.switched_ms, n=100)
    table["switched50"].add(percents[49])
    table["switched99"].add(percents[98])
    table["switched_max"].add(max(at_switches.switched_ms))
    table["unswitched99"].add(statistics.quantiles(at_switches.calm_ms, n=100)[98])
    table["switch_daemon"].add(at_switches.daemon_cpu_ms)
    table["switch_clients"].add(at_switches.clients_cpu_ms)
    took_s = []
    for switches in (0, SWITCHES_UNDER_LOAD):
        async with new_topic() as daemon:
            took_s.append(await loaded_s(daemon, switches=switches))
    table["switch_cost"].add((took_s[1] - took_s[0]) / SWITCHES_UNDER_LOAD)
    async with new_topic() as daemon:
        still, anew = [await routed_anew(daemon, each) for each in (0, 2 * PARTITIONS)]
    table["anew"].add(anew["seconds"] * 1e3, still["seconds"] * 1e3)
    table["anew_cpu"].add(anew["cpu_ms"], still["cpu_ms"])
    table["anew_held"].add(anew["held_ms"], still["held_ms"])
    one, many = await shape(1), await shape(GENERATIONS)
    table["generations_listed"].add(many.listed_ms, one.listed_ms)
    table["generations_start"].add(many.started_cpu_ms, one.started_cpu_ms)
    table["generations_idle"].add(many.idle_cpu_ms, one.idle_cpu_ms)


@asynccontextmanager
async def new_topic() -> AsyncIterator[Daemon]:
    """A daemon with the bench's topic, empty."""
    async with running_daemon() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create(TOPIC, partitions=PARTITIONS)
        yield daemon


@dataclass(frozen=True, slots=True)
class Rested:
    """Of all producers over all switches, in milliseconds."""

    switched_ms: list[float]
    """The gap of each producer at each switch."""
    calm_ms: list[float]
    """All other gaps."""
    daemon_cpu_ms: float
    """Processor time of a switch: what was spent more than in as long a time without one."""
    clients_cpu_ms: float


@dataclass(frozen=True, slots=True)
class Shape:
    """What a daemon takes for a topic and fifty groups."""

    listed_ms: float
    """Processor time of the daemon for a list of the groups."""
    started_cpu_ms: float
    """The same for an orderly start."""
    idle_cpu_ms: float
    """The same for a second without work."""


class _Heard:
    """What the producers' processes say."""

    def __init__(self) -> None:
        self.by_switch: dict[int, list[float]] = {}
        self.calm_ms: list[float] = []
        self._more = asyncio.Event()

    def take(self, line: bytes) -> None:
        if not line.startswith(b"{"):
            return
        said = json.loads(line)
        if "ordinal" in said:
            self.by_switch.setdefault(said["ordinal"], []).append(said["gap_ms"])
            self._more.set()
        else:
            self.calm_ms += said["calm_ms"]

    async def all_at(self, switch: int, producers: int) -> None:
        """Wait until each of them has its first ack behind a switch."""
        async with within(SEEN_SECONDS_MAX, f"all producers to be through switch {switch}"):
            while len(self.by_switch.get(switch, ())) < producers:
                self._more.clear()
                await self._more.wait()


class _Spending:
    """Processor time of the daemon, and of the processes of its producers."""

    def __init__(self, daemon_pid: int, producers: Sequence[Process]) -> None:
        self._daemon_pid = daemon_pid
        self._producers = producers

    async def over(self, work: Awaitable[object]) -> tuple[float, float]:
        """Milliseconds of both in `SWITCH_EVERY_S`, in which the work is done."""
        began_s, before = time.perf_counter(), self._spent_ms()
        await work
        await asyncio.sleep(max(0.0, began_s + SWITCH_EVERY_S - time.perf_counter()))
        share = SWITCH_EVERY_S / (time.perf_counter() - began_s)
        own, others = self._spent_ms()
        return (own - before[0]) * share, (others - before[1]) * share

    def _spent_ms(self) -> tuple[float, float]:
        others = sum(own_s(each.pid) for each in self._producers)
        return own_s(self._daemon_pid) * 1e3, others * 1e3


async def rested(daemon: Daemon) -> Rested:
    """Switch the bench's topic, which is empty and new, again and again below its producers."""
    heard = _Heard()
    switched, calm = [], []
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        _ticking(daemon, heard) as producers,
    ):
        spending = _Spending((await client.daemon.status()).pid, producers)
        await asyncio.sleep(SETTLED_S)
        heard.calm_ms.clear()
        for number in range(1, SWITCHES + 1):
            calm.append(await spending.over(asyncio.sleep(0)))
            switched.append(await spending.over(_seen_switch(client, heard, number)))
    gaps_ms = [gap_ms for each in heard.by_switch.values() for gap_ms in each]
    own, others = (
        statistics.median(each[of] for each in switched)
        - statistics.median(each[of] for each in calm)
        for of in range(2)
    )
    return Rested(gaps_ms, heard.calm_ms, own, others)


@asynccontextmanager
async def _ticking(daemon: Daemon, heard: _Heard) -> AsyncIterator[list[Process]]:
    async with AsyncExitStack() as stack:
        processes = []
        for _ in range(PROCESSES):
            program = started_program(
                "ticking", daemon.endpoint, str(PRODUCERS_A_PROCESS), heard=heard.take
            )
            processes.append(await stack.enter_async_context(program))
            await processes[-1].ready()
        yield processes


async def _seen_switch(client: dss_client.Client, heard: _Heard, number: int) -> None:
    await grow(client, PARTITIONS - number % 2)
    await heard.all_at(number, PROCESSES * PRODUCERS_A_PROCESS)


async def grow(client: dss_client.Client, partitions: int) -> None:
    """Another storage topic, and a switch to it."""
    row = await client.operations.apply(GrowTopic(TOPIC, partitions))
    ended = await client.operations.ended(row.number)
    assert ended.state == "done", ended


async def loaded_s(daemon: Daemon, *, switches: int) -> float:
    """How long so many records take by columns, switched a second apart meanwhile."""

    async def switch() -> None:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            for number in range(1, switches + 1):
                await asyncio.sleep(1)
                await grow(client, PARTITIONS - number % 2)

    async with asyncio.TaskGroup() as tasks:
        producing = tasks.create_task(
            run_program("produce_columns", daemon.endpoint, str(LOADED_RECORDS)), name="producer"
        )
        switching = tasks.create_task(switch(), name="switches")
        done = await producing
        assert switching.done(), "it ended before its topic was switched"
    return float(done["seconds"])


async def routed_anew(daemon: Daemon, partitions: int) -> dict[str, float]:
    """A full buffer, by a description of before its topic grew to these; 0: it has not."""
    return await run_program("routed_anew", daemon.endpoint, str(partitions))


async def shape(generations: int) -> Shape:
    """A daemon with a topic of 1,024 streams in so many generations, read by fifty groups."""
    async with running_daemon() as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await _grown_to(client, generations)
            for number in range(GROUPS):
                await client.groups.create(f"$share/group-{number}/{TOPIC}/#", start="earliest")
            assert (await client.groups.list())[0].streams == STREAMS
        await daemon.end(signal.SIGTERM)
        await daemon.start()
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            pid = (await client.daemon.status()).pid
            started_cpu_ms = own_s(pid) * 1e3
            await client.groups.list()
            listed_ms = await Meter(pid).median_ms(client.groups.list, CALLS)
            spent_s = own_s(pid)
            await asyncio.sleep(IDLE_S)
            idle_cpu_ms = (own_s(pid) - spent_s) / IDLE_S * 1e3
    return Shape(listed_ms, started_cpu_ms, idle_cpu_ms)


async def _grown_to(client: dss_client.Client, generations: int) -> None:
    """Two generations that follow each other differ, and have as many streams as two of a size."""
    each = STREAMS // generations
    await client.topics.create(TOPIC, partitions=each + (generations > 1))
    await _fill(client, RECORDS // generations)
    for number in range(1, generations):
        await grow(client, each + 1 - 2 * (number % 2))
        await _fill(client, RECORDS // generations)


async def _fill(client: dss_client.Client, records: int) -> None:
    async with client.producer(TOPIC) as producer:
        for number in range(records):
            await producer.enqueue(b"x", key=b"key-%d" % number)
