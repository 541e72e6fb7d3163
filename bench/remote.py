"""What TLS and a token cost, beside a unix socket of the same daemon, in turn.

Programs find the authority and the token where all clients do, in the environment: a client on a
unix socket shows neither.
"""

import contextlib
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from processes import Daemon, run_program, running_daemon

import dss_client
from dss_client.access import Permission

CONNECTIONS = 1_000
EVERYTHING = (Permission("consume", ("#",), ("*",)), Permission("produce", ("#",)))


@dataclass(frozen=True, slots=True)
class Reached:
    """A daemon, and where it is reached by TLS."""

    daemon: Daemon
    remote: str


@contextlib.asynccontextmanager
async def reached() -> AsyncIterator[Reached]:
    """A daemon that takes tokens over TLS, and a token that programs find."""
    folder = Path(tempfile.mkdtemp(prefix="dss-bench-tls-"))
    try:
        made = await run_program("certificates", str(folder))
        port = _free_port()
        files = ("--tls-cert", str(made["cert"]), "--tls-key", str(made["key"]))
        listens = ("--listen", f"127.0.0.1:{port},tls,clients=tokens")
        async with running_daemon(*listens, *files) as daemon:
            async with dss_client.connect(endpoint=daemon.endpoint) as client:
                token = (await client.access.add_token("bench", EVERYTHING)).token
            with _in_the_environment(folder, str(made["ca"]), token):
                yield Reached(daemon, f"dss://127.0.0.1:{port}")
    finally:
        shutil.rmtree(folder)


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
