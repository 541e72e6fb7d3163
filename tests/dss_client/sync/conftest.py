"""One real daemon for the module, and a client without asyncio."""

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import dss_client.sync
from support.daemon_process import DaemonProcess, short_directory

_NUMBERS = count()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Where a daemon of this module listens."""
    with asyncio.Runner() as runner, short_directory() as home:
        socket = f"unix:{home}/s"
        starting = DaemonProcess.start("--data-dir", str(Path(home) / "d"), "--listen", socket)
        daemon = runner.run(starting)
        yield socket
        runner.run(daemon.stop())


@pytest.fixture
def client(endpoint: str) -> Iterator[dss_client.sync.Client]:
    with dss_client.sync.connect(endpoint=endpoint) as client:
        yield client


@pytest.fixture
def topic(client: dss_client.sync.Client) -> str:
    """An empty topic of two streams, of this test alone."""
    name = f"t{next(_NUMBERS)}"
    client.topics.create(name, partitions=2)
    return name
