import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from http.client import HTTPConnection

import pytest

from dss_core.errors import AddressInUse
from dssd.addresses import TcpAddress
from dssd.events.model import unheard
from dssd.metrics.readings import Readings
from dssd.metrics.server import MetricsServer

ANY_PORT = TcpAddress("127.0.0.1", 0)


def scraped(address: TcpAddress, path: str = "/metrics") -> tuple[int, str]:
    connection = HTTPConnection(address.host, address.port, timeout=60)
    with closing(connection):
        connection.request("GET", path)
        with connection.getresponse() as answer:
            return answer.status, answer.read().decode()


@asynccontextmanager
async def serving(server: MetricsServer) -> AsyncIterator[TcpAddress]:
    address = server.bind(ANY_PORT)
    running = asyncio.create_task(server.run())
    try:
        yield address
    finally:
        running.cancel()
        await asyncio.wait([running])


async def topics() -> Readings:
    readings = Readings()
    readings.put("dss_topics", 7)
    return readings


async def test_a_scrape_shows_what_is_read_at_that_time() -> None:
    async with serving(MetricsServer(topics, unheard)) as address:
        status, text = await asyncio.to_thread(scraped, address)
    assert status == 200
    assert "\ndss_topics 7.0\n" in text
    assert "# HELP dss_topics Topics." in text
    assert "\nprocess_resident_memory_bytes " in text


@pytest.mark.parametrize(("path", "expected"), [("/", 200), ("/metric", 404)])
async def test_another_path_says_where_the_metrics_are(path: str, expected: int) -> None:
    async with serving(MetricsServer(topics, unheard)) as address:
        status, text = await asyncio.to_thread(scraped, address, path)
    assert status == expected
    assert 'href="/metrics"' in text
    assert "dss_topics" not in text


async def test_an_address_that_is_taken_is_refused_before_anything_is_served() -> None:
    with socket.create_server((ANY_PORT.host, 0)) as taken:
        address = TcpAddress(ANY_PORT.host, taken.getsockname()[1])
        with pytest.raises(AddressInUse, match=str(address)):
            MetricsServer(topics, unheard).bind(address)


async def test_a_loop_that_does_not_answer_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dssd.metrics.server.SCRAPE_S_MAX", 0.0)
    async with serving(MetricsServer(topics, unheard)) as address:
        assert (await asyncio.to_thread(scraped, address))[0] == 503


async def test_a_scrape_that_waits_does_not_hold_up_the_end() -> None:
    asked = asyncio.Event()

    async def never() -> Readings:
        asked.set()
        return await asyncio.Event().wait() and Readings()

    async with serving(MetricsServer(never, unheard)) as address:
        waiting = asyncio.create_task(asyncio.to_thread(scraped, address))
        await asked.wait()
    assert (await waiting)[0] == 503


async def test_a_peer_that_says_nothing_holds_up_others_for_a_time_only(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dssd.metrics.server._Handler.timeout", 0.05)
    async with serving(MetricsServer(topics, unheard)) as address:
        with socket.create_connection((address.host, address.port)):
            assert (await asyncio.to_thread(scraped, address))[0] == 200
    assert capfd.readouterr().err == ""
