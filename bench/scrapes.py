"""What a scrape of the metrics each second costs the throughput of a daemon.

The daemon has as many groups as a scrape may ever show, and ten times as many. Invariant: both
figures of a round come from the same daemon, on the same frames, one in front of the other and one
behind it, so that neither gets what a fresh or an aged daemon gains or loses.
"""

import asyncio
import contextlib
import socket
import statistics
import time
import urllib.request
from collections.abc import AsyncIterator

from processes import Daemon, run_program
from processor_time import Meter
from workload import TOPIC

import dss_client

GROUPS = 500
STREAMS = 64
RECORDS = 2_000_000
EVERY_S = 1.0
TURNS = (False, True, True, False)
"""Scraped or not."""


def free_port() -> int:
    """One that nobody has now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


async def fill(daemon: Daemon) -> None:
    """Groups of a wide topic that all fall behind."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create(TOPIC, partitions=STREAMS)
        for number in range(GROUPS):
            await client.groups.create(f"$share/g{number}/{TOPIC}/#", start="earliest")


async def cost_ms(daemon: Daemon, port: int) -> float:
    """Processor time of the daemon for one scrape."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        meter = Meter((await client.daemon.status()).pid)
    return await meter.median_ms(lambda: asyncio.to_thread(_fetch, port))


async def rates(daemon: Daemon, port: int) -> tuple[float, float, float]:
    """Millions of records a second without scrapes and with them, and a scrape in milliseconds."""
    found: dict[bool, list[float]] = {True: [], False: []}
    took_ms: list[float] = []
    for is_scraped in TURNS:
        async with scraped(port, took_ms) if is_scraped else contextlib.nullcontext():
            result = await run_program("produce_columns", daemon.endpoint, str(RECORDS))
        found[is_scraped].append(float(result["records"]) / float(result["seconds"]) / 1e6)
    return statistics.mean(found[False]), statistics.mean(found[True]), statistics.median(took_ms)


@contextlib.asynccontextmanager
async def scraped(port: int, took_ms: list[float]) -> AsyncIterator[None]:
    """Scrape each second, until the block ends."""
    scraping = asyncio.create_task(_scrape(port, took_ms), name="scrape")
    try:
        yield
    finally:
        scraping.cancel()
        await asyncio.wait([scraping])


async def _scrape(port: int, took_ms: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.to_thread(_fetch, port)
        took_ms.append((time.perf_counter() - began) * 1e3)
        await asyncio.sleep(EVERY_S)


def _fetch(port: int) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert b"dss_group_lag_records" in answer.read()
