"""How long a rewind of a live group takes: until it is done, and until all streams deliver again.

Fifty members in eight processes share 64 streams; one of the processes has a single member, which a
second measurement freezes just before. All streams are rewound to their first records. A time runs
from the call to a delivery, by the clock that all processes share. With a frozen member, only the
streams of the others count: its own wait for the end of its lease.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from failover import Deliveries
from processes import Daemon, Process, started_program, within

import dss_client

TOPIC = "rewound"
STREAMS = 64
RECORDS = 12_800
PROCESSES = 7
MEMBERS_A_PROCESS = 7
"""And one that is alone in its process: fifty in all."""
ALONE = "alone"
SETTLED_MS = 500
POLL_S = 0.05
WAIT_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Rewound:
    """From the call, in milliseconds."""

    done_ms: float
    """Until the operation was done."""
    all_ms: float
    """Until each stream that counts was delivered again."""


async def rewind(daemon: Daemon, group: str, *, frozen: bool) -> Rewound:
    """Rewind the group of fifty to its first records, once it has consumed all."""
    deliveries = Deliveries()
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        _members(daemon, group, deliveries) as alone,
    ):
        held = await _settled(client, group)
        waited_for = frozenset(stream for streams in held.values() for stream in streams)
        if frozen:
            waited_for -= held[ALONE]
            alone.send_signal(signal.SIGSTOP)
        called_ns = time.monotonic_ns()
        deliveries.begin(called_ns)
        operation = await client.operations.rewind(group, to="earliest")
        served_ns = await deliveries.of(waited_for, "the rewound streams")
        ended = await client.operations.ended(operation.number)
        assert ended.state == "done", ended
        assert ended.ended_at_ms is not None
        done_ms = ended.ended_at_ms - ended.applied_at_ms
        return Rewound(done_ms, (served_ns[-1] - called_ns) / 1e6)


async def fill(daemon: Daemon) -> None:
    """A topic of 64 streams with some hundred records each."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create(TOPIC, partitions=STREAMS)
        async with client.producer(TOPIC) as producer:
            for number in range(RECORDS):
                await producer.enqueue(b"x" * 100, key=b"key-%d" % number)


@contextlib.asynccontextmanager
async def _members(daemon: Daemon, group: str, deliveries: Deliveries) -> AsyncIterator[Process]:
    """Fifty members at work; yields the process of the one that is alone."""
    async with contextlib.AsyncExitStack() as stack:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.groups.create(f"$share/{group}/{TOPIC}/#", start="earliest")
        together = [(str(MEMBERS_A_PROCESS),)] * PROCESSES
        processes = [
            await stack.enter_async_context(
                started_program(
                    *("members", daemon.endpoint, group, TOPIC, *who), heard=deliveries.heard
                )
            )
            for who in (*together, ("1", ALONE))
        ]
        for process in processes:
            await process.ready()
        yield processes[-1]


async def _settled(client: dss_client.Client, group: str) -> dict[str, frozenset[str]]:
    """The streams of each member, once all have some, all is consumed, and nothing moves."""
    async with within(WAIT_SECONDS_MAX, f"the group {group} to have consumed all"):
        while True:
            grants = await client.grants.list(group)
            still = all(
                grant.state == "granted" and grant.state_age_ms >= SETTLED_MS and grant.lag == 0
                for grant in grants
            )
            held: dict[str, set[str]] = {}
            for grant in grants:
                held.setdefault(grant.client_id, set()).add(grant.stream)
            if still and len(held) == MEMBERS_A_PROCESS * PROCESSES + 1:
                return {name: frozenset(streams) for name, streams in held.items()}
            await asyncio.sleep(POLL_S)
