"""Cuts connections whose peer takes nothing any more out of a socket that has something for it.

gRPC's keepalive ping waits behind what is being written. Where a peer freezes with its socket full,
the ping never leaves, so its absence is never noticed, and a member would keep its streams for
ever. The kernel knows: what lies in that socket does not change.

Invariant: only a connection of this daemon is cut, and only after the same number of unread bytes,
above 0, at so many looks in a row. A peer that runs empties its socket within milliseconds even
while its program computes: gRPC's own threads read it, and HTTP/2 holds the rest back on our side.
It must not know what the connections are for; whoever serves one finds it lost.
"""

import asyncio
import fcntl
import logging
import os
import socket
import stat
import termios
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from dssd.addresses import Address, UnixAddress
from dssd.limits import CLOG_LOOK_S, CLOG_LOOKS_MAX
from dssd.loop_yield import LoopTurn

_LOG = logging.getLogger(__name__)

DESCRIPTORS = Path("/proc/self/fd")

_Sight = tuple[int, int]
"""The inode of a socket, and the bytes in it."""


class SlowConsumerWatch:
    """Looks at the sockets of the connections to these addresses, again and again."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._paths = {str(each.path) for each in addresses if isinstance(each, UnixAddress)}
        self._ports = {each.port for each in addresses if not isinstance(each, UnixAddress)}
        self._looks: dict[_Sight, int] = {}
        """At how many looks in a row each was seen."""

    async def run(self) -> NoReturn:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(CLOG_LOOK_S)
            await self.look()

    async def look(self) -> None:
        """Look at every socket once; cut those that have not changed for `CLOG_LOOKS_MAX` looks.

        Looks, not time, are counted: after a pause of the whole machine a peer has had none either.
        """
        try:
            descriptors = _descriptors()
        except OSError as error:  # none is left to look with
            _LOG.debug("no look at the sockets: %s", error)
            return
        looks: dict[_Sight, int] = {}
        turn = LoopTurn()
        for descriptor in descriptors:
            await turn.give_way()
            sight = _sight(descriptor)
            if sight is None:
                continue
            looks[sight] = self._looks.get(sight, 0) + 1
            if looks[sight] >= CLOG_LOOKS_MAX:
                self._cut(descriptor, sight)
        self._looks = looks

    def _cut(self, descriptor: int, sight: _Sight) -> None:
        # gRPC may close the descriptor at any time and the kernel give it to another file. It
        # cannot take a duplicate from us, so that is what is looked at again.
        try:
            own = os.dup(descriptor)
        except OSError:  # gRPC has closed it, or none is left: the next look tries again
            return
        if _sight(own) != sight:
            os.close(own)
            return
        with socket.socket(fileno=own) as connection, suppress(OSError):  # the peer has left
            if self._is_of_this_daemon(connection):
                _LOG.warning("a peer takes nothing any more: cutting its connection")
                connection.shutdown(socket.SHUT_RDWR)

    def _is_of_this_daemon(self, connection: socket.socket) -> bool:
        name = connection.getsockname()
        return name in self._paths if isinstance(name, str) else name[1] in self._ports


def _descriptors() -> list[int]:
    return [int(entry.name) for entry in DESCRIPTORS.iterdir()]


def _sight(descriptor: int) -> _Sight | None:
    """What lies in a socket for its peer; None where there is nothing, or no socket."""
    unread_bytes = array("i", [0])
    try:
        # The kernel's SIOCOUTQ has the value of a terminal's TIOCOUTQ.
        fcntl.ioctl(descriptor, termios.TIOCOUTQ, unread_bytes)
        if not unread_bytes[0]:
            return None
        file = os.fstat(descriptor)
    except OSError:
        return None
    return (file.st_ino, unread_bytes[0]) if stat.S_ISSOCK(file.st_mode) else None
