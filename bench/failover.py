"""How long streams go without service when a member of a group or the daemon dies.

Two members share the topic while a producer sends to every partition each few milliseconds, so that
a gap shows at once; all are processes of their own. A time runs from the signal to a delivery, by
the clock that all of them share, and counts for a stream that was hit only: which streams the dead
member held says the daemon's own list of grants, taken just before the signal.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass

from processes import Daemon, Process, run_program, started_program, within
from workload import PARTITIONS

import dss_client

MEMBERS = ("one", "two")
SETTLED_MS = 500
"""Streams that were granted for so long stay: joins are gathered for less."""
POLL_S = 0.02
WAIT_SECONDS_MAX = 30.0
LARGE_LOG_BYTES = 1 << 30
LARGE_LOG_RECORDS = 10_000_000


@dataclass(frozen=True, slots=True)
class Gap:
    """How long streams were not served, in milliseconds from the signal."""

    first_ms: float
    """Until the first of them was served again."""
    all_ms: float
    """Until each of them was."""


class Deliveries:
    """When each stream was first delivered since a moment, as members say it."""

    def __init__(self) -> None:
        self._since_ns = 0
        self._first_ns: dict[str, int] = {}
        self._news = asyncio.Event()

    def begin(self, since_ns: int) -> None:
        """Forget all, and what comes later but is older."""
        self._since_ns = since_ns
        self._first_ns = {}

    def heard(self, line: bytes) -> None:
        """Take what a member printed."""
        at, _, stream = line.decode().strip().partition(" ")
        if stream and int(at) > self._since_ns:
            known_ns = self._first_ns.get(stream)
            self._first_ns[stream] = int(at) if known_ns is None else min(known_ns, int(at))
            self._news.set()

    async def of(self, streams: Collection[str], what: str) -> list[int]:
        """When each of the streams was first delivered, once all were; ascending."""
        async with within(WAIT_SECONDS_MAX, what):
            while not self._first_ns.keys() >= set(streams):
                self._news.clear()
                await self._news.wait()
        return sorted(self._first_ns[stream] for stream in streams)


@dataclass(frozen=True, slots=True)
class Scene:
    """Two members that share the topic evenly while it grows."""

    processes: dict[str, Process]
    deliveries: dict[str, Deliveries]
    held: dict[str, frozenset[str]]
    """The streams of each, as the daemon listed them a moment ago."""


@contextlib.asynccontextmanager
async def scene(daemon: Daemon, group: str) -> AsyncIterator[Scene]:
    """Two members at work, by their client ids."""
    deliveries = {name: Deliveries() for name in MEMBERS}
    async with contextlib.AsyncExitStack() as stack:
        processes: dict[str, Process] = {}
        for name in MEMBERS:
            program = started_program(
                "member", daemon.endpoint, group, name, heard=deliveries[name].heard
            )
            processes[name] = await stack.enter_async_context(program)
        producer = await stack.enter_async_context(started_program("steady", daemon.endpoint))
        for process in (*processes.values(), producer):
            await process.ready()
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            held = await shared_evenly(client, group)
            for name in MEMBERS:
                await deliveries[name].of(held[name], f"records of every stream at {name}")
            held = await shared_evenly(client, group)
            yield Scene(processes, deliveries, held)


async def shared_evenly(client: dss_client.Client, group: str) -> dict[str, frozenset[str]]:
    """The streams of each member, once each has its part and nothing moves any more."""
    async with within(WAIT_SECONDS_MAX, f"the streams of the group {group} to be shared evenly"):
        while True:
            grants = await client.grants.list(group)
            still = all(
                grant.state == "granted" and grant.state_age_ms >= SETTLED_MS for grant in grants
            )
            held = {
                name: frozenset(grant.stream for grant in grants if grant.client_id == name)
                for name in MEMBERS
            }
            if still and all(len(own) == PARTITIONS // len(MEMBERS) for own in held.values()):
                return held
            await asyncio.sleep(POLL_S)


async def member_death(daemon: Daemon, group: str, signal_: signal.Signals) -> Gap:
    """From a member's death, or freeze, to deliveries of its streams at the other member."""
    dead, living = MEMBERS
    async with scene(daemon, group) as at_work:
        deliveries = at_work.deliveries[living]
        signalled_ns = time.monotonic_ns()
        at_work.processes[dead].send_signal(signal_)
        deliveries.begin(signalled_ns)
        what = f"the streams of a member after {signal_.name} at the other"
        return _gap(signalled_ns, await deliveries.of(at_work.held[dead], what))


async def daemon_death(daemon: Daemon, group: str) -> Gap:
    """From kill -9 of the daemon, started again at once, to deliveries of all streams."""
    async with scene(daemon, group) as at_work:
        signalled_ns = time.monotonic_ns()
        await daemon.end(signal.SIGKILL)
        await daemon.start()
        # What a member had fetched before the kill is handed out within moments of it.
        listening_ns = time.monotonic_ns()
        for deliveries in at_work.deliveries.values():
            deliveries.begin(listening_ns)
        served_ns = [
            at_ns
            for name, deliveries in at_work.deliveries.items()
            for at_ns in await deliveries.of(
                at_work.held[name], f"the streams of {name} after the daemon's death"
            )
        ]
        return _gap(signalled_ns, sorted(served_ns))


async def fill_log(daemon: Daemon) -> None:
    """Let the log hold `LARGE_LOG_BYTES`, and a segment that is not sealed."""
    await run_program("produce_columns", daemon.endpoint, str(LARGE_LOG_RECORDS))
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        size_bytes = (await client.daemon.status()).log_bytes
    assert size_bytes >= LARGE_LOG_BYTES, size_bytes


def _gap(signalled_ns: int, served_ns: list[int]) -> Gap:
    return Gap((served_ns[0] - signalled_ns) / 1e6, (served_ns[-1] - signalled_ns) / 1e6)
