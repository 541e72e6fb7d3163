"""The origin of a call: its transport and address, and on a unix socket the process.

Invariant: a fact that only the caller claims is marked as such.
"""

import re
from dataclasses import dataclass
from typing import Any

import grpc.aio

from dssd.rpc.unix_peers import Process, UnixPeers

Context = grpc.aio.ServicerContext[Any, Any]

_SAID_PID = re.compile(r"(?:^| )pid/([1-9][0-9]{0,8})(?: |$)")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a call comes from."""

    transport: str
    """As gRPC names the peer: an address, or ``unix:``."""
    process: Process | None = None

    def __str__(self) -> str:
        """For people."""
        if self.process is None:
            return self.transport
        return f"{self.transport} {self.process}"

    def fields(self) -> dict[str, str]:
        """For programs."""
        known = {"origin": self.transport}
        if self.process is not None:
            process = self.process
            known |= {"uid": str(process.uid), "user": process.user, "pid": str(process.pid)}
            known["program"] = process.program
        return known


async def origin_of(context: Context, peers: UnixPeers) -> Origin:
    """Where a call comes from, as far as the kernel says so."""
    transport = context.peer()
    pid = said_pid(context)
    if pid is None or not is_local(context):
        return Origin(transport)
    return Origin(transport, await peers.find(pid))


def is_local(context: Context) -> bool:
    """Whether the caller is on a unix socket, where a lost connection means that it is dead."""
    return context.peer().startswith("unix:")


def peer_of(context: Context) -> str:
    """The origin of a call as text, without a system call: the process id is the caller's claim."""
    transport = context.peer()
    pid = said_pid(context) if is_local(context) else None
    return transport if pid is None else f"{transport} pid {pid}, as it says"


def said_pid(context: Context) -> int | None:
    """The process id that a client says in its user agent."""
    for name, value in context.invocation_metadata() or ():
        if name == "user-agent" and isinstance(value, str):
            said = _SAID_PID.search(value)
            return int(said[1]) if said else None
    return None
