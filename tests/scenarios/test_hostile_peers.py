"""Peers that take without giving: idle connections, half messages, garbage.

Each of them speaks HTTP/2 by hand to a real daemon.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import pytest_asyncio

import dss_client
from dss_core.default_paths import OPERATORS_SOCKET_NAME, SOCKET_NAME
from dss_core.errors import OutcomeUnknown, PermissionDenied, Unreachable
from dssctl import connection
from dssctl.settings import Settings
from dssd.limits import CONNECTIONS_MAX
from support.daemon_process import DaemonProcess, running, short_directory
from support.raw_http2 import GOAWAY, PING, RawPeer, frame

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one daemon for all


PROGRAMS = Path(__file__).parent / "programs"
IDLE = PROGRAMS / "idle_connections.py"
PATIENT = str(PROGRAMS / "patient_daemon.py")
PATIENCE_S = 60.0
"""Half of what this daemon leaves a connection that says nothing: the real one ends it after
seconds, and who comes in then does not owe that to what the peer lost."""


class Daemon:
    """A daemon, and where its sockets are."""

    def __init__(self, process: DaemonProcess, directory: Path) -> None:
        self.process = process
        self.socket = directory / SOCKET_NAME
        self.operators = directory / OPERATORS_SOCKET_NAME


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def daemon() -> AsyncIterator[Daemon]:
    with short_directory() as directory:
        arguments = ("--data-dir", str(directory))
        async with running(*arguments, program=[PATIENT], from_nothing=True) as process:
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

    at_start = daemon.process.said
    assert " listening on " in at_start
    await asyncio.to_thread(go_away)
    assert daemon.process.said == at_start


async def test_one_peer_with_all_connections_loses_half_and_nobody_else_is_locked_out(
    daemon: Daemon,
) -> None:
    async with dss_client.connect(endpoint=daemon.process.endpoint) as early:
        await early.daemon.status()
        async with idle_connections(daemon.socket, CONNECTIONS_MAX):
            # At once: by what is kept for operators.
            settings = Settings(endpoint=daemon.process.endpoint)
            status = await asyncio.to_thread(connection.ask, settings, asked)
            assert status.state == "serving"
            refused = await event_of(early, "peer.refused")
            assert "pid" in refused.subject
            (greediest, *_) = (await early.daemon.status()).peers
            assert (greediest.peer, greediest.calls) == (refused.subject, 0)
            async with asyncio.timeout(PATIENCE_S):
                await comes_in(daemon)


async def test_the_socket_of_operators_takes_no_records(daemon: Daemon) -> None:
    async with dss_client.connect(endpoint=f"unix:{daemon.operators}") as operator:
        await operator.topics.create("t", partitions=1)
        with pytest.raises(PermissionDenied):
            async with operator.producer("t") as producer:
                await producer.send(b"x")


@asynccontextmanager
async def idle_connections(path: Path, count: int) -> AsyncIterator[None]:
    """Another process with so many connections that say nothing."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, str(IDLE), str(path), str(count)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    assert await program.stdout.readline() == b"%d\n" % count
    try:
        yield
    finally:
        program.stdin.close()
        await program.wait()


async def comes_in(daemon: Daemon) -> None:
    """A newcomer tries until the daemon answers."""
    while True:
        with suppress(Unreachable, OutcomeUnknown):
            async with dss_client.connect(endpoint=daemon.process.endpoint) as late:
                await late.daemon.status()
                return


async def asked(client: dss_client.Client) -> dss_client.DaemonStatus:
    """The question of an operator."""
    return await client.daemon.status()


async def event_of(client: dss_client.Client, code: str) -> dss_client.Event:
    """The first event of that code, which is there or comes."""
    async with asyncio.timeout(PATIENCE_S):
        async for event in client.events.watch(after=0):
            if event.code == code:
                return event
    raise AssertionError("the events ended")
