"""Slow consumers: cuts a connection whose peer has stopped reading from its socket.

gRPC's keepalive ping waits behind the data that is being written. If a peer freezes while its
socket is full, the ping never leaves, gRPC never notices the missing answer, and the member would
keep its streams for ever. The kernel shows it: the number of unread bytes in that socket does not
change.

Invariant: only a connection of this daemon is cut, and only after several consecutive checks found
the same number of unread bytes, above 0. A running peer empties its socket within milliseconds even
while its program computes: gRPC's own threads read it, and HTTP/2 flow control holds the rest back
in the daemon. This module must not know what the connections are for; the call on a connection that
was cut finds it lost.
"""

import asyncio
import fcntl
import logging
import socket
import termios
from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from dssd.addresses import Address, UnixAddress
from dssd.events.kinds import CONSUMER_SLOW
from dssd.events.model import Event, Note
from dssd.loop_yield import LoopTurn
from dssd.rpc.sockets import descriptors, pinned, socket_inode
from dssd.rpc.unix_peers import credentials_of

CLOG_LOOK_S = 0.5
CLOG_LOOKS_MAX = 7
"""A frozen peer whose socket is full is not reached by a ping. It is cut once the kernel has held
the same unread bytes for it at so many looks in a row, 3 s as with the ping: where the socket fills
up before the ping would have left, 5.5 s after it froze, which is below the lease."""


_LOG = logging.getLogger(__name__)

_SocketState = tuple[int, int]
"""The inode of a socket, and the number of unread bytes in it."""


class SlowConsumerWatch:
    """Looks at the sockets of the connections to these addresses, again and again."""

    def __init__(self, addresses: Sequence[Address], note: Note) -> None:
        self._note = note
        self._paths = {str(each.path) for each in addresses if isinstance(each, UnixAddress)}
        self._ports = {each.port for each in addresses if not isinstance(each, UnixAddress)}
        self._looks: dict[_SocketState, int] = {}
        """In how many consecutive checks each state was seen."""

    async def run(self) -> NoReturn:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(CLOG_LOOK_S)
            await self.look()

    async def look(self) -> None:
        """Check every socket once; cut those unchanged for `CLOG_LOOKS_MAX` checks.

        Checks are counted, not time: while the whole machine pauses, a peer cannot read either.
        """
        try:
            numbers = descriptors()
        except OSError as error:  # none is left to look with
            _LOG.debug(
                "cannot look at the sockets now: %s", error, extra={"event": "sockets.unseen"}
            )
            return
        looks: dict[_SocketState, int] = {}
        turn = LoopTurn()
        for descriptor in numbers:
            await turn.give_way()
            state = _socket_state(descriptor)
            if state is None:
                continue
            looks[state] = self._looks.get(state, 0) + 1
            if looks[state] >= CLOG_LOOKS_MAX:
                self._cut(descriptor, state)
        self._looks = looks

    def _cut(self, descriptor: int, state: _SocketState) -> None:
        # Else gRPC has closed it, none is left (the next look tries again), or the peer has left.
        with suppress(OSError), pinned(descriptor, state[0]) as connection:
            if _socket_state(connection.fileno()) == state and self._is_of_this_daemon(connection):
                peer = _peer_of(connection)
                connection.shutdown(socket.SHUT_RDWR)
                self._note(_cut_event(peer, state))

    def _is_of_this_daemon(self, connection: socket.socket) -> bool:
        name = connection.getsockname()
        return name in self._paths if isinstance(name, str) else name[1] in self._ports


def _cut_event(peer: str, state: _SocketState) -> Event:
    unread_bytes = state[1]
    return Event(
        CONSUMER_SLOW,
        peer,
        f"It stopped reading with {unread_bytes} bytes unread; its connection was cut.",
        {"unread_bytes": str(unread_bytes)},
    )


def _peer_of(connection: socket.socket) -> str:
    """The address of the peer; on a unix socket, where it has none, its process.

    Raises:
        OSError: the peer has left.
    """
    if connection.family == socket.AF_UNIX:
        return f"process {credentials_of(connection)[0]}"
    host, port = connection.getpeername()[:2]
    return f"{host}:{port}"


def _socket_state(descriptor: int) -> _SocketState | None:
    """The unread bytes in a socket; None: nothing unread, or no socket."""
    unread_bytes = array("i", [0])
    try:
        # The kernel's SIOCOUTQ has the value of a terminal's TIOCOUTQ.
        fcntl.ioctl(descriptor, termios.TIOCOUTQ, unread_bytes)
        if not unread_bytes[0]:
            return None
    except OSError:
        return None
    inode = socket_inode(descriptor)
    return None if inode is None else (inode, unread_bytes[0])
