"""What TLS and a token cost, beside a unix socket of the same daemon, in turn.

Programs find the authority and the token where all clients do, in the environment: a client on a
unix socket shows neither.
"""

import contextlib
import os
import shutil
import socket
import statistics
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc.aio
from processes import Daemon, run_program, running_daemon
from processor_time import Meter

import dss_client
from dss_api.v1 import topics_pb2, topics_pb2_grpc
from dss_client.access import Permission

CONNECTIONS = 1_000
CHECKED_TURNS, CHECKED_CALLS = 20, 200
"""Turns of a token's check, and calls of each kind in one."""

EVERYTHING = (Permission("consume", ("#",), ("*",)), Permission("produce", ("#",)))


@dataclass(frozen=True, slots=True)
class Reached:
    """A daemon, and where it is reached by TLS."""

    daemon: Daemon
    remote: str
    open_to_all: str
    """On this machine, without TLS: for anybody, and for who has a token."""
    by_token: str
    token: str


@contextlib.asynccontextmanager
async def reached() -> AsyncIterator[Reached]:
    """A daemon that takes tokens over TLS, and a token that programs find."""
    folder = Path(tempfile.mkdtemp(prefix="dss-bench-tls-"))
    try:
        made = await run_program("certificates", str(folder))
        port, open_port, token_port = (_free_port() for _ in range(3))
        files = ("--tls-cert", str(made["cert"]), "--tls-key", str(made["key"]))
        listens = (
            *("--listen", f"127.0.0.1:{port},tls,clients=tokens"),
            *("--listen", f"127.0.0.1:{open_port}"),
            *("--listen", f"127.0.0.1:{token_port},clients=tokens"),
        )
        async with running_daemon(*listens, *files) as daemon:
            async with dss_client.connect(endpoint=daemon.endpoint) as client:
                token = (await client.access.add_token("bench", EVERYTHING)).token
            with _in_the_environment(folder, str(made["ca"]), token):
                own = f"127.0.0.1:{open_port}", f"127.0.0.1:{token_port}"
                yield Reached(daemon, f"dss://127.0.0.1:{port}", *own, token)
    finally:
        shutil.rmtree(folder)


async def token_check_us(where: Reached, topic: str) -> float:
    """Processor time of the daemon for who calls, whether they may, and what ends the call with
    that: of a call at a listener that asks for a token, more than at one that lets in anybody. Both
    are shown the token."""
    async with dss_client.connect(endpoint=where.daemon.endpoint) as client:
        meter = Meter((await client.daemon.status()).pid)
    shown = (("authorization", f"Bearer {where.token}"),)
    async with (
        grpc.aio.insecure_channel(where.open_to_all) as anybody,
        grpc.aio.insecure_channel(where.by_token) as known,
    ):
        more = []
        for _ in range(CHECKED_TURNS):
            plain = await meter.median_ms(lambda: _asked(anybody, topic, shown), 1)
            checked = await meter.median_ms(lambda: _asked(known, topic, shown), 1)
            more.append((checked - plain) / CHECKED_CALLS * 1e3)
    return statistics.median(more)


async def _asked(
    channel: grpc.aio.Channel, topic: str, metadata: tuple[tuple[str, str], ...]
) -> None:
    stub = topics_pb2_grpc.TopicsStub(channel)
    for _ in range(CHECKED_CALLS):
        await stub.Describe(topics_pb2.DescribeTopicRequest(name=topic), metadata=metadata)


@contextlib.contextmanager
def _in_the_environment(folder: Path, ca: str, token: str) -> Iterator[None]:
    file = folder / "token"
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as opened:
        opened.write(token)
    said = {"DSSCTL_TLS_CA": ca, "DSSCTL_TOKEN_FILE": str(file)}
    os.environ.update(said)
    try:
        yield
    finally:
        for name in said:
            del os.environ[name]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
