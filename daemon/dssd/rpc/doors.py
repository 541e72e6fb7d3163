"""The two doors of a daemon: one server for everybody, and one with a reserve for operators.

Whatever clients take of the first one, connections or calls, the second one has its own, at a
socket of its own in the data directory: who looks after the daemon gets in when nobody else does.
It serves what reads and changes, and no records. Both open and close together.

Invariant: what is served at the operators' door takes nothing from the reserve for longer than a
question takes, records least of all.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import NoReturn

from dss_core.errors import SocketPathTooLong
from dssd.addresses import Address, UnixAddress, unix_address
from dssd.data_directory import OPERATORS_SOCKET_NAME, DataDirectory
from dssd.events.model import Note
from dssd.rpc.audit import Audit
from dssd.rpc.connections import Connections
from dssd.rpc.limits import OPERATOR_CALLS_MAX, OPERATOR_CONNECTIONS_MAX
from dssd.rpc.principal import Role
from dssd.rpc.server import Capacity, Register, RpcServer
from dssd.rpc.slow_consumers import SlowConsumerWatch

_LOG = logging.getLogger(__name__)

_OPERATORS = Capacity(OPERATOR_CONNECTIONS_MAX, OPERATOR_CALLS_MAX)


def operators_address(directory: DataDirectory) -> UnixAddress | None:
    """Where operators are served; None where no socket can have that path."""
    try:
        return unix_address(directory.path / OPERATORS_SOCKET_NAME)
    except SocketPathTooLong as error:
        _LOG.warning("operators have no socket of their own: %s", error.message)
        return None


class Doors:
    """Both servers. `crash` is told of every programmer's error in a call."""

    def __init__(
        self,
        registers: Sequence[Register],
        crash: Callable[[BaseException], None],
        audit: Audit,
        note: Note,
        capacity: Capacity,
    ) -> None:
        self._note = note
        self._capacity = capacity
        self._clients = RpcServer(registers, crash, audit, capacity)
        self._operators = RpcServer(
            registers, crash, audit, _OPERATORS, roles=frozenset({Role.READ, Role.OPERATE})
        )
        self._connections: list[Connections] = []
        self._slow = SlowConsumerWatch((), note)

    def bind(
        self, addresses: Sequence[Address], operators: UnixAddress | None
    ) -> tuple[Address, ...]:
        """Take all addresses; returns those for clients, with the ports that were chosen.

        Raises:
            AddressInUse: another process listens there, or it is not allowed.
        """
        bound = self._clients.bind(addresses)
        own = () if operators is None else self._operators.bind([operators])
        self._connections = [
            Connections(bound, self._note, self._capacity.connections_max),
            Connections(own, self._note, OPERATOR_CONNECTIONS_MAX),
        ]
        self._slow = SlowConsumerWatch((*bound, *own), self._note)
        return bound

    def watches(self) -> Sequence[tuple[str, Coroutine[None, None, NoReturn]]]:
        """What has to run while they are open, with its name."""
        clients, operators = self._connections
        return (
            ("clogged sockets", self._slow.run()),
            ("connections", clients.run()),
            ("connections of operators", operators.run()),
        )

    @property
    def connections(self) -> Connections:
        """Those of clients."""
        return self._connections[0]

    async def start(self) -> None:
        """Answer calls; the health is not serving yet."""
        await self._operators.start()
        await self._clients.start()

    async def serving(self) -> None:
        """Let the health service say that this daemon takes work."""
        await self._operators.serving()
        await self._clients.serving()

    async def drain(self) -> None:
        """Let the health service say, for good, that this daemon takes no more work."""
        await self._clients.drain()
        await self._operators.drain()

    async def stop(self, grace_s: float | None) -> None:
        """Take no new calls; cancel those that have not ended after the grace, if any."""
        async with asyncio.TaskGroup() as tasks:
            for server in (self._clients, self._operators):
                tasks.create_task(server.stop(grace_s), name="stop a server")
