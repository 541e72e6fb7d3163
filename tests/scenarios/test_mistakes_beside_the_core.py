"""A daemon that makes a mistake once in all that stands beside its core: it goes on, and tells."""

import asyncio
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import dss_client
from dss_client.changes import RunTask
from dss_core.errors import InternalError
from support.daemon_process import DaemonProcess, running

BROKEN_DAEMON = str(Path(__file__).parent / "programs" / "broken_daemon.py")
SERVICES = {
    "clogged sockets", "ends of pauses", "heap", "leases of jobs", "logins",
    "looks for watchers", "messages on their way", "metrics", "retention", "retention ahead",
    "rows of removed topics", "samples for questions", "schedules", "trim operations",
    "trims of queues",
}  # fmt: skip
ASKED = {"call Topics/List", "task lag-check"}
CONNECTIONS = {"connections", "connections of operators"}
"""Either: they do the same."""
PATIENCE_S = 60.0


def scraped(url: str) -> dict[str, float]:
    """How many mistakes of each part a scrape shows; empty where the scrape failed."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            text = answer.read().decode()
    except urllib.error.HTTPError as failed:
        return {} if failed.code == 500 and b"ZeroDivisionError" in failed.read() else {"": 0}
    found = re.findall(r'^dss_internal_errors_total{part="(.+)"} (.+)$', text, re.MULTILINE)
    return {part: float(times) for part, times in found}


async def counted(daemon: DaemonProcess, parts: set[str]) -> dict[str, float]:
    """The metric, once all parts are in it."""
    url = re.search(r"metrics at (http://\S+)", daemon.said)
    assert url is not None
    async with asyncio.timeout(PATIENCE_S):
        while True:
            values = await asyncio.to_thread(scraped, url[1])
            if all(values.get(part) for part in parts):
                return values
            await asyncio.sleep(0.05)


async def noted(client: dss_client.Client, count: int) -> set[tuple[str, str]]:
    """Of which parts so many events tell, and how bad it is."""
    found: set[tuple[str, str]] = set()
    async with asyncio.timeout(PATIENCE_S):
        async for event in client.events.watch(after=0):
            if event.code == "internal.error":
                found.add((event.subject, event.severity))
            if len(found) == count:
                break
    return found


async def test_whatever_makes_a_mistake_beside_the_core_goes_on_and_tells() -> None:
    broken = (BROKEN_DAEMON, "blunders-beside")
    async with (
        running("--dev", "--metrics", "127.0.0.1:0", program=broken) as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await client.topics.create("orders", partitions=1)
        with pytest.raises(InternalError, match="call Topics/List ended this: ZeroDivisionError"):
            await client.topics.list()
        assert [each.topic.name for each in await client.topics.list()] == ["orders"]
        run = await client.operations.apply(RunTask("lag-check"))
        run = await client.operations.ended(run.number)
        assert run.state == "failed"
        assert "ZeroDivisionError: a programmer's error" in run.failure
        async with asyncio.timeout(PATIENCE_S):
            async for _ in client.watch("groups"):
                break
        values = await counted(daemon, SERVICES | ASKED)
        told = {part for part, times in values.items() if times}
        assert told - CONNECTIONS == SERVICES | ASKED
        assert told & CONNECTIONS
        assert await noted(client, len(told)) == {(part, "error") for part in told}
        async with client.producer("orders") as producer:
            await producer.send(b"x")
        assert {part for part in told if f"unforeseen error in {part}" in daemon.said} == told
        assert daemon.said.count("Traceback") >= len(told)
        assert await daemon.stop() == 0
