"""Two hosts of a network, as two network namespaces with a link between them.

A command that runs in one reaches the other by the address of the link and by nothing else over
TCP; loopback is its own. Files are shared. Invariant: namespaces, link and addresses end with the
processes that hold them, which end with the test, whatever that ends of.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.prerequisites import NAMESPACES, leave_out

ADDRESSES = ("10.77.0.1", "10.77.0.2")
"""Each of one of the two; nobody else is in their network."""
_PREFIX_BITS = 24
_LINK = "dss0"
_HOLDER = "ip link set lo up && echo ready && exec cat"
"""Ends with the pipe that it reads."""


@dataclass(frozen=True, slots=True)
class Host:
    """One of the two."""

    address: str
    pid: int
    """Of the process that holds the namespace."""

    @property
    def enter(self) -> tuple[str, ...]:
        """The command in front of one that is to run there; it becomes that process."""
        return ("nsenter", f"--net=/proc/{self.pid}/ns/net")

    def ip(self, *arguments: str) -> None:
        """Configure its network."""
        _run(*self.enter, "ip", *arguments)


@contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """Two hosts that reach each other. The test is left out where that cannot be made."""
    for program in ("ip", "unshare", "nsenter"):
        if shutil.which(program) is None:
            leave_out(NAMESPACES, f"there is no {program} on PATH")
    with ExitStack() as stack:
        try:
            hosts = [stack.enter_context(_namespace(each)) for each in ADDRESSES]
            here, there = hosts
            peer = ("peer", "name", _LINK, "netns", str(there.pid))
            here.ip("link", "add", "name", _LINK, "type", "veth", *peer)
            for host in hosts:
                host.ip("addr", "add", f"{host.address}/{_PREFIX_BITS}", "dev", _LINK)
                host.ip("link", "set", _LINK, "up")
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", b"") or str(error).encode()
            leave_out(NAMESPACES, f"no network namespace can be made: {said.decode().strip()}")
        yield here, there


@contextmanager
def _namespace(address: str) -> Iterator[Host]:
    command = ["unshare", "--net", "sh", "-c", _HOLDER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stderr is not None
        try:
            if holder.stdout.readline() != b"ready\n":
                raise OSError(holder.stderr.read().decode())
            assert _namespace_of(holder.pid) != _namespace_of(os.getpid())
            yield Host(address, holder.pid)
        finally:
            holder.stdin.close()


def _namespace_of(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
