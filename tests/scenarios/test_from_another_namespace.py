"""A daemon on one host of a network; clients, commands and a bulk driver on another.

The hosts are network namespaces: nothing on the second reaches the daemon but by TLS over the link.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import dss_client
from dss_client.access import Permission
from dss_client.changes import CreateJob
from dss_core.errors import ExitCode
from support.certificates import Authority
from support.daemon_process import DaemonProcess, short_directory
from support.dssctl_call import environment
from support.network_namespaces import Host, two_hosts
from support.proof_share import only_in_proof

PROGRAMS = Path(__file__).parent / "programs"
PATIENCE_S = 120.0
REACHES = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5).close()
except OSError as error:
    sys.exit(type(error).__name__)
"""

pytestmark = [pytest.mark.slow("programs that start from nothing"), only_in_proof]


class Site:
    """The daemon, and the other host."""

    def __init__(self, daemon: DaemonProcess, there: Host, folder: Path, ca: Path) -> None:
        self.local, remote = daemon.endpoints
        self.remote = f"dss://{remote.removeprefix('dss://')}"
        self._there = there
        self._folder = folder
        self._ca = ca

    async def token(self, name: str, *permissions: Permission) -> Path:
        """A token, in a file on the other host."""
        async with dss_client.connect(endpoint=self.local) as admin:
            made = await admin.access.add_token(name, permissions)
        path = self._folder / f"{name}.token"
        path.touch(0o600)
        path.write_text(made.token)
        return path

    async def python(self, *arguments: str, token_file: Path | None = None) -> tuple[int, str]:
        """Run Python on the other host: its exit code, and all that it said."""
        files = {"DSSCTL_TLS_CA": str(self._ca), "TMPDIR": str(self._folder)}
        if token_file is not None:
            files["DSSCTL_TOKEN_FILE"] = str(token_file)
        process = await asyncio.create_subprocess_exec(
            *(*self._there.enter, sys.executable, *arguments),
            cwd=self._folder,
            env=environment(**files),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return process.returncode, said.decode()

    async def dssctl(self, token_file: Path, *arguments: str) -> tuple[int, str]:
        """Run a command on the other host."""
        command = ("-m", "dssctl", "--endpoint", self.remote, *arguments)
        return await self.python(*command, token_file=token_file)


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    authority = Authority(folder)
    there_folder = folder / "there"
    there_folder.mkdir()
    with two_hosts() as (here, there), short_directory() as short:
        pair = authority.signed(here.address, f"IP:{here.address}")
        daemon = await DaemonProcess.start(
            *("--data-dir", f"{short}/data", "--listen", f"unix:{short}/s"),
            *("--listen", f"{here.address}:0,tls,clients=tokens"),
            *("--tls-cert", str(pair.cert), "--tls-key", str(pair.key)),
            tracer=here.enter,
        )
        try:
            yield Site(daemon, there, there_folder, authority.cert)
            assert await daemon.stop() == 0
            assert "Traceback" not in daemon.said
        finally:
            await daemon.kill()


async def test_programs_commands_and_drivers_work_from_another_host_by_their_tokens(
    tmp_path: Path,
) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        site(tmp_path) as made,
        dss_client.connect(endpoint=made.local) as admin,
    ):
        for name in ("orders", "copies", "payments"):
            await admin.topics.create(name, partitions=2)
        await only_the_link_leads_there(made)
        await a_program_does_what_its_token_allows(made)
        await commands_read_and_are_told_what_they_would_need(made)
        await a_driver_copies(made, admin)


async def only_the_link_leads_there(made: Site) -> None:
    host, _, port = made.remote.removeprefix("dss://").rpartition(":")
    assert await made.python("-c", REACHES, host, port) == (0, "")
    code, said = await made.python("-c", REACHES, "127.0.0.1", port)
    assert (code, said.strip()) == (1, "ConnectionRefusedError")


async def a_program_does_what_its_token_allows(made: Site) -> None:
    permissions = (
        Permission("produce", ("orders/eu/#",)),
        Permission("consume", ("orders/eu/#",), ("billing",)),
    )
    token_file = await made.token("worker", *permissions)
    program = str(PROGRAMS / "limited_worker.py")
    code, said = await made.python(program, made.remote, token_file=token_file)
    assert code == 0, said
    told = json.loads(said.splitlines()[-1])
    assert told["taken"] == list(range(20))
    assert told["topics"] == ["orders"]
    assert "--role produce --topic orders/us/1" in told["outside"]
    assert "--role operate --topic 'orders/#'" in told["removing"]


async def commands_read_and_are_told_what_they_would_need(made: Site) -> None:
    token_file = await made.token("reader", Permission("read", ("orders/#",), ("*",)))
    code, said = await made.dssctl(token_file, "groups", "ls", "-o", "template={name} {lag}")
    assert (code, said) == (ExitCode.OK, "billing 0\n")
    for command, wanted in (
        (("produce", "orders", str(PROGRAMS / "member.py")), "--role produce --topic 'orders/#'"),
        (("topics", "rm", "orders", "-y"), "--role operate --topic 'orders/#'"),
        (("groups", "rm", "billing", "-y"), "--role operate --topic 'orders/eu/#' --group billing"),
        (("topics", "describe", "payments"), "--role read --topic 'payments/#'"),
        (("topics", "describe", "no-such"), "--role read --topic 'no-such/#'"),
    ):
        code, said = await made.dssctl(token_file, *command)
        assert code == ExitCode.DENIED, said
        assert f"dssctl principals allow token:reader {wanted}." in said
    code, said = await made.dssctl(Path(os.devnull), "topics", "ls")
    assert code not in (ExitCode.OK, ExitCode.DENIED), "it has no token"


async def a_driver_copies(made: Site, admin: dss_client.Client) -> None:
    change = CreateJob("far", "replay", source="orders", target="copies")
    await admin.operations.apply(await admin.operations.plan(change), reason="a test")
    reads, writes = Permission("consume", ("orders/#",)), Permission("produce", ("copies/#",))
    command = ("-m", "dss_bulk", "far", "--endpoint", made.remote)
    half = await made.token("half", reads)
    code, said = await made.python(*command, token_file=half)
    assert code != 0
    assert "--role produce --topic 'copies/#'" in said
    code, said = await made.python(*command, token_file=await made.token("driver", reads, writes))
    assert code == 0, said
    copied = [each.payload async for each in admin.read("copies/#")]
    assert sorted(copied) == sorted([each.payload async for each in admin.read("orders/#")])
    assert copied
