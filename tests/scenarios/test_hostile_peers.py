"""Peers that take without giving: idle connections, half messages, garbage.

Every one speaks HTTP/2 by hand to a real daemon.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dssd.data_directory import SOCKET_NAME
from support.daemon_process import DaemonProcess, running, short_directory
from support.raw_http2 import GOAWAY, PING, RawPeer, frame

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one daemon for all


class Daemon:
    """A daemon, and where its sockets are."""

    def __init__(self, process: DaemonProcess, directory: Path) -> None:
        self.process = process
        self.socket = directory / SOCKET_NAME


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def daemon() -> AsyncIterator[Daemon]:
    with short_directory() as directory:
        async with running("--data-dir", str(directory)) as process:
            yield Daemon(process, directory)
            assert await process.stop() == 0
            assert "Traceback" not in process.said


async def test_what_a_peer_says_when_it_goes_away_stays_out_of_the_log(daemon: Daemon) -> None:
    said = b"bye\n2026-01-01 INFO dssd: forged \x1b[31m"

    def go_away() -> None:
        with RawPeer(daemon.socket) as peer:
            peer.greet()
            peer.send(frame(GOAWAY, 0, 0, bytes(8) + said))
            peer.send(frame(PING, 0, 0, bytes(8)))
            peer.heard(PING)

    await asyncio.to_thread(go_away)
    assert daemon.process.said.count("\n") == 1, daemon.process.said
