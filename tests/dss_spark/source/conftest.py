"""A daemon for each file, with a topic of two streams that has some records of every kind."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import dss_client.sync
from support.daemon_process import DaemonProcess, short_directory
from support.spark_source import Filled, filled


@pytest.fixture(scope="module")
def client() -> Iterator[dss_client.sync.Client]:
    """Of a daemon of this file."""
    with asyncio.Runner() as runner, short_directory() as home:
        endpoint = f"unix:{home}/s"
        arguments = ("--data-dir", str(Path(home) / "d"), "--listen", endpoint)
        daemon = runner.run(DaemonProcess.start(*arguments))
        with dss_client.sync.connect(endpoint=endpoint) as connected:
            yield connected
        runner.run(daemon.stop())


@pytest.fixture(scope="module")
def orders(client: dss_client.sync.Client) -> Filled:
    """The topic ``orders``."""
    return filled(client, "orders")
