"""What an operator waits for who looks at a million dead letters, and what that costs the others.

A page is asked for as ``dssctl dlq ls`` does it, which counts 20,000 by error and says "at least".
What holds the loop is measured by processor time (`bench/programs/stepped_daemon.py`): the longest
turn of it that any of the calls takes.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from bulk import most_resident_mib
from lanes import declare, fail
from processes import Daemon, running_daemon
from processor_time import own_s
from results import Row
from steps import PROGRAM, longest_ms
from workload import PARTITIONS, PAYLOAD, TOPIC

import dss_client
from dss_core.changes import RedriveDeadLetters

DEAD, KEYS = 1_000_000, 50_000
SENT_AT_ONCE = 50_000
GROUP = "failed"
PAGE = 20
COUNTED = 20_000
"""By `dssctl` where nobody says `--exact`."""
CALLS = 9
NOTHING = "python -c pass"


def rows() -> dict[str, Row]:
    """Those that `measured` fills."""
    return {
        "dead_listed": Row("dlq ls of 1,000,000, the whole command", "ms", "", NOTHING),
        "dead_page": Row("  its first page, as the daemon gives it", "ms", "<= 200"),
        "dead_page_held": Row("  longest turn of the loop meanwhile", "ms", "<= 5"),
        "dead_errors": Row("dlq errors --exact of 1,000,000", "s", ""),
        "dead_errors_held": Row("  longest turn of the loop meanwhile", "ms", "<= 5"),
        "dead_keys": Row("dlq keys --exact of 1,000,000, 50,000 keys", "s", ""),
        "dead_keys_held": Row("  longest turn of the loop meanwhile", "ms", "<= 5"),
        "dead_plan": Row("plan of a redrive of one error in four", "s", ""),
        "dead_plan_held": Row("  longest turn of the loop meanwhile", "ms", "<= 5"),
        "dead_cpu": Row("all of these, processor time of the daemon", "s", ""),
        "dead_mib": Row("  the most memory of the daemon", "MiB", ""),
    }


class Took(NamedTuple):
    """One thing that was asked."""

    seconds: float
    held_ms: float
    """The longest turn of the daemon's loop meanwhile."""


async def _took(daemon: Daemon, call: Callable[[], Awaitable[object]], calls: int = 1) -> Took:
    """The median of so many calls, and the longest turn of all of them."""
    await longest_ms(daemon)
    seconds = []
    for _ in range(calls):
        began = time.perf_counter()
        await call()
        seconds.append(time.perf_counter() - began)
    return Took(statistics.median(seconds), await longest_ms(daemon))


async def measured(table: dict[str, Row]) -> None:
    """One round."""
    async with (
        running_daemon(program=(PROGRAM,)) as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await _fill(daemon, client)
        pid = (await client.daemon.status()).pid
        spent_s = own_s(pid)
        await _asked(table, daemon, client)
        table["dead_cpu"].add(own_s(pid) - spent_s)
        table["dead_mib"].add(most_resident_mib(pid) or 0.0)


async def _fill(daemon: Daemon, client: dss_client.Client) -> None:
    """All records of the topic die, batch by batch for another reason."""
    await client.topics.create(TOPIC, partitions=PARTITIONS)
    await declare(daemon, GROUP)
    keys = [b"key-%05d" % number for number in range(KEYS)]
    async with client.producer(TOPIC) as producer:
        for _ in range(DEAD // SENT_AT_ONCE):
            await producer.send_columns(payloads=[PAYLOAD] * SENT_AT_ONCE, keys=keys)
    await fail(daemon, "reject", GROUP, DEAD)
    counts = await client.queues.errors(GROUP, at_most=1)
    assert counts.total == DEAD, f"{counts.total} are dead"


async def _asked(table: dict[str, Row], daemon: Daemon, client: dss_client.Client) -> None:
    queues = client.queues

    async def page() -> None:
        newest = await queues.newest(GROUP, PAGE)
        counts = await queues.errors(GROUP, at_most=COUNTED)
        assert (len(newest.entries), newest.total) == (PAGE, DEAD)
        assert COUNTED <= counts.counted < DEAD

    async def errors() -> None:
        counts = await queues.errors(GROUP)
        assert counts.counted == sum(each.count for each in counts.errors) == DEAD

    async def keys() -> None:
        counts = await queues.keys(GROUP)
        assert counts.looked_at_all
        assert {each.count for each in counts.keys} == {DEAD // KEYS}
        assert len(counts.keys) == KEYS

    fingerprint = (await queues.errors(GROUP, at_most=1)).errors[0].fingerprint

    async def plan() -> None:
        planned = await client.operations.plan(RedriveDeadLetters(GROUP, error=fingerprint))
        assert planned.streams

    took = await _took(daemon, page, CALLS)
    table["dead_page"].add(took.seconds * 1e3)
    table["dead_page_held"].add(took.held_ms)
    for name, call in (("errors", errors), ("keys", keys), ("plan", plan)):
        took = await _took(daemon, call)
        table[f"dead_{name}"].add(took.seconds)
        table[f"dead_{name}_held"].add(took.held_ms)
    listed, nothing = await asyncio.to_thread(_listed_ms, daemon.endpoint)
    table["dead_listed"].add(listed, nothing)


def _listed_ms(endpoint: str) -> tuple[float, float]:
    """``dssctl dlq ls`` by the clock, and an interpreter that does nothing; medians, in turns."""
    dssctl = str(Path(sys.executable).with_name("dssctl"))
    ours = [dssctl, "--endpoint", endpoint, "dlq", "ls", GROUP]
    took: list[list[float]] = [[], []]
    for _ in range(CALLS):
        for command, into in zip((ours, [sys.executable, "-c", "pass"]), took, strict=True):
            began = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            into.append((time.perf_counter() - began) * 1e3)
    return statistics.median(took[0]), statistics.median(took[1])
