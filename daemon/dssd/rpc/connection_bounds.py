"""Counts the connections of each peer, and cuts those of a peer with too many.

gRPC accepts connections itself and does not say who they belong to. So this module examines the
sockets: the kernel names the process behind a unix socket, and the address on TCP. Once a call on a
connection logs in by a token or a certificate, the connection counts for that principal, because
all clients behind a proxy share one address. A peer with more connections than are left free loses
its newest ones and keeps the oldest.

Invariant: only a connection to the addresses of one server is counted or cut. Between two looks a
peer may hold more; gRPC's own bound holds at all times. This module must not know what the
connections are for.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from dssd.addresses import Address, UnixAddress
from dssd.events.kinds import PEER_REFUSED
from dssd.events.model import Event, Note
from dssd.fair_share import fair_level
from dssd.loop_yield import LoopTurn
from dssd.rpc.sockets import borrowed, descriptors, pinned, socket_inode
from dssd.rpc.unix_peers import Process, credentials_of, process_of

PEER_CONNECTIONS_MIN = 8
"""Connections that every peer keeps, however few are left: a client has one, a program a few."""

CONNECTIONS_LOOK_S = 0.5
CONNECTIONS_LOOK_AGAIN_S = 0.25
"""How often connections are counted, and how soon again after some were cut: a peer fills the freed
room in about half a second. Counting 4,096 takes 20 ms, in steps."""

CONNECTIONS_LOOK_SHARE = 0.1
"""Share of the event loop's time. Examining 4,096 new connections takes some 100 ms, and a cut peer
may return with as many each time."""


Peer = Process | str
"""A process of this machine, an address, or a principal that has a name."""


class Connections:
    """Those to one server, which takes so many of them."""

    def __init__(
        self, note: Note, connections_max: int, named: Callable[[], Mapping[str, str]] = dict
    ) -> None:
        self._named = named
        """By address and port: the named principal with open calls there."""
        self._addresses: dict[str, int] = {}
        """Of the connections over TCP: which socket it is."""
        self._paths: frozenset[str] = frozenset()
        self._ports: frozenset[int] = frozenset()
        self._note = note
        self._max = connections_max
        self._sockets: dict[int, Peer | None] = {}
        """By inode, the oldest first; None for a socket of something else."""
        self._held: Mapping[Peer, int] = {}
        self._processes: dict[int, Process] = {}

    def listens_at(self, addresses: Sequence[Address]) -> None:
        """The server took these addresses."""
        unix = [each for each in addresses if isinstance(each, UnixAddress)]
        self._paths = frozenset(str(each.path) for each in unix)
        self._ports = frozenset(
            each.port for each in addresses if not isinstance(each, UnixAddress)
        )

    @property
    def held(self) -> Mapping[Peer, int]:
        """How many connections each peer had at the last look."""
        return self._held

    @property
    def most(self) -> int:
        """How many there may be."""
        return self._max

    def process(self, pid: int) -> Process | None:
        """The process of that id, if it was connected at the last look."""
        return self._processes.get(pid)

    async def run(self) -> NoReturn:
        """Look until cancelled; sooner again after something was cut, for it may come back."""
        while True:
            turn = LoopTurn()
            has_cut = await self._look(turn)
            rest_s = CONNECTIONS_LOOK_AGAIN_S if has_cut else CONNECTIONS_LOOK_S
            await asyncio.sleep(max(rest_s, turn.held_s() / CONNECTIONS_LOOK_SHARE))

    async def look(self) -> bool:
        """Examine every socket once; returns whether a peer had too many and lost some."""
        return await self._look(LoopTurn())

    async def _look(self, turn: LoopTurn) -> bool:
        try:
            numbers = descriptors()
        except OSError:  # none is left to look with
            return False
        seen: dict[int, int] = {}
        for descriptor in numbers:
            await turn.give_way()
            inode = socket_inode(descriptor)
            if inode is None:
                continue
            seen[inode] = descriptor
            if inode not in self._sockets:
                self._sockets[inode] = self._peer_at(descriptor, inode)
        self._sockets = {inode: self._sockets[inode] for inode in self._sockets if inode in seen}
        self._addresses = {where: i for where, i in self._addresses.items() if i in seen}
        for where, principal in self._named().items():
            if (inode := self._addresses.get(where)) is not None:
                self._sockets[inode] = principal
        self._held = Counter(peer for peer in self._sockets.values() if peer is not None)
        self._processes = {peer.pid: peer for peer in self._held if isinstance(peer, Process)}
        return await self._level(seen, turn)

    async def _level(self, seen: Mapping[int, int], turn: LoopTurn) -> bool:
        level = fair_level(self._held.values(), self._max, PEER_CONNECTIONS_MIN)
        greedy = {peer: count for peer, count in self._held.items() if count > level}
        if not greedy:
            return False
        excess = {peer: count - level for peer, count in greedy.items()}
        for inode, peer in reversed(self._sockets.items()):
            if peer is not None and excess.get(peer, 0):
                await turn.give_way()
                excess[peer] -= 1
                _cut(seen[inode], inode)
        for peer, count in greedy.items():
            self._note(_refused(peer, count, level))
        return True

    def _peer_at(self, descriptor: int, inode: int) -> Peer | None:
        with suppress(OSError), borrowed(descriptor) as connection:
            if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return None
            name = connection.getsockname()
            if connection.family == socket.AF_UNIX:
                return self._process_at(connection) if name in self._paths else None
            if connection.family in (socket.AF_INET, socket.AF_INET6) and name[1] in self._ports:
                address, port = connection.getpeername()[:2]
                self._addresses[place_of(address, port)] = inode
                return str(address)
        return None

    def _process_at(self, connection: socket.socket) -> Process:
        pid, uid = credentials_of(connection)
        known = self._processes.get(pid)
        if known is None:
            known = self._processes[pid] = process_of(pid, uid)
        return known


def place_of(address: str, port: int | str) -> str:
    """The other end of a connection over TCP."""
    return f"{address} {port}"


def _cut(descriptor: int, inode: int) -> None:
    with suppress(OSError), pinned(descriptor, inode) as connection:
        connection.shutdown(socket.SHUT_RDWR)


def _refused(peer: Peer, count: int, level: int) -> Event:
    return Event(
        PEER_REFUSED,
        str(peer),
        f"It had {count} connections, more than were left free; {count - level} were cut.",
        {"connections": str(count), "cut": str(count - level)},
    )
