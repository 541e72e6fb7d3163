"""Finds the processes connected to the daemon's unix sockets, through the kernel.

gRPC tells the servicer of a call nothing of its unix peer, so a call cannot be traced to a socket.
A client says its process id in its user agent; that counts once the kernel names the same process
as the peer of a connection. Invariant: user and program are reported only for a connected process;
a mere claim of a caller is never reported as a fact.
"""

import pwd
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dssd.addresses import Address, UnixAddress
from dssd.loop_yield import LoopTurn
from dssd.rpc.sockets import borrowed, descriptors

_CREDENTIALS = struct.Struct("3i")
"""What the kernel says of a peer: its process, user and group."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process at the other end of a unix socket."""

    pid: int
    uid: int
    user: str
    program: str
    """Its command line from the kernel; empty if it has ended."""

    def __str__(self) -> str:
        """For people."""
        return f"{self.program or '?'}, pid {self.pid}, user {self.user}"


class UnixPeers:
    """Of the daemon that listens at these addresses."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._paths = {str(each.path) for each in addresses if isinstance(each, UnixAddress)}

    async def find(self, pid: int) -> Process | None:
        """The process of that id, if it is connected."""
        turn = LoopTurn()
        with suppress(OSError):  # no descriptor is left to look with
            for descriptor in descriptors():
                await turn.give_way()
                found = self._peer_at(descriptor)
                if found is not None and found[0] == pid:
                    return process_of(*found)
        return None

    def _peer_at(self, descriptor: int) -> tuple[int, int] | None:
        """Process and user of the peer; None: not a connection of the daemon."""
        with suppress(OSError), borrowed(descriptor) as connection:
            listens = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if connection.family == socket.AF_UNIX and not listens:
                return credentials_of(connection) if self._is_ours(connection) else None
        return None

    def _is_ours(self, connection: socket.socket) -> bool:
        return connection.getsockname() in self._paths


def credentials_of(connection: socket.socket) -> tuple[int, int]:
    """Process and user of the peer of a unix socket.

    Raises:
        OSError: the peer has left.
    """
    given = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(given)
    return pid, uid


def process_of(pid: int, uid: int) -> Process:
    """What the kernel knows of a process."""
    program = ""
    with suppress(OSError):  # it has ended
        program = Path(f"/proc/{pid}/comm").read_text().strip()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    return Process(pid, uid, user, program)
