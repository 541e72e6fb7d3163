"""The two doors of a daemon: the servers for clients, and one reserved for operators.

Clients have a server for each listener policy; these servers share their limits.

The operators' server has its own socket in the data directory, and its own limits of connections
and calls, so operators get in when clients have used up theirs. It serves queries and changes, and
no records. Both doors open and close together.

Invariant: a call at the operators' door occupies the reserve only for the time of a query; records
are never served there.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from dss_core.answers import Held
from dss_core.default_paths import OPERATORS_SOCKET_NAME
from dss_core.errors import SocketPathTooLong
from dssd.access.permissions import Role
from dssd.addresses import Address, UnixAddress, unix_address
from dssd.data_directory import DataDirectory
from dssd.events.model import Note
from dssd.ownership.socket_keeper import SocketKeeper
from dssd.rpc.arrivals import ArrivalWatch
from dssd.rpc.audit import Audit
from dssd.rpc.calls import Calls
from dssd.rpc.certificates import Certificates
from dssd.rpc.connection_bounds import Connections
from dssd.rpc.entry import Entries
from dssd.rpc.login_watch import LoginWatch
from dssd.rpc.server import Capacity, Register, RpcServer
from dssd.rpc.slow_consumers import SlowConsumerWatch
from dssd.sessions.limits import DELIVERY_BYTES_MAX
from dssd.supervision.containment import Service

OPERATOR_CONNECTIONS_MAX = 64
OPERATOR_CALLS_MAX = 256
"""Connections and calls reserved for operators: a few people and their monitoring."""


_LOG = logging.getLogger(__name__)

_OPERATORS = Capacity(OPERATOR_CONNECTIONS_MAX, OPERATOR_CALLS_MAX)


def operators_address(directory: DataDirectory) -> UnixAddress | None:
    """Where operators are served; None where no socket can have that path."""
    try:
        return unix_address(directory.path / OPERATORS_SOCKET_NAME)
    except SocketPathTooLong as error:
        _LOG.warning(
            "operators have no socket of their own: %s",
            error.message,
            extra={"event": "operators.no-socket"},
        )
        return None


def check_free(addresses: Sequence[Address], metrics: Address | None) -> None:
    """Refuse addresses at which another process listens, before anything else is opened.

    They are taken last, so that clients of a daemon that starts are not left waiting.

    Raises:
        AddressInUse: another process listens there.
    """
    for address in (*addresses, *([] if metrics is None else [metrics])):
        address.clear_stale()


class Doors:
    """Both servers. `crash` is told of every programmer's error that ends the daemon.

    `known_bytes` gives the heap use that the daemon accounts for, beyond parts with a fixed bound.
    """

    def __init__(
        self,
        registers: Sequence[Register],
        crash: Callable[[BaseException], None],
        audit: Audit,
        note: Note,
        capacity: Capacity,
        known_bytes: Callable[[], int],
        entries: Entries,
        addresses: Sequence[Address],
    ) -> None:
        self._note = note
        self._known_bytes = known_bytes
        self._entries = entries
        self._wanted = tuple(addresses)
        self._addresses: tuple[Address, ...] = ()
        self._sockets = SocketKeeper((), note)
        self.operators_socket = ""
        """Empty where there is none."""
        self.connections = Connections(note, capacity.connections_max, lambda: self.calls.named())
        """Those of clients."""
        self.calls = Calls(capacity.calls_max, note, self.connections.process)
        """Those of clients."""
        self._clients = {
            policy: RpcServer(
                registers, crash, audit, self.calls, capacity, note=note, entry=entries.of(policy)
            )
            for policy in dict.fromkeys(address.policy for address in addresses)
        }
        self._reserve = Connections(note, _OPERATORS.connections_max)
        self._questions = Calls(_OPERATORS.calls_max, note, self._reserve.process)
        roles = frozenset({Role.READ, Role.OPERATE, Role.ADMIN})
        self._operators = RpcServer(
            registers, crash, audit, self._questions, _OPERATORS, roles=roles, note=note
        )

    def bind(self, operators: UnixAddress | None) -> tuple[Address, ...]:
        """Take all addresses; returns those for clients, with the ports that were chosen.

        Raises:
            AddressInUse: another process listens there, or it is not allowed.
        """
        self.operators_socket = "" if operators is None else str(operators)
        bound = tuple(self._clients[each.policy].bind([each])[0] for each in self._wanted)
        own = () if operators is None else self._operators.bind([operators])
        self.connections.listens_at(bound)
        self._reserve.listens_at(own)
        self._addresses = (*bound, *own)
        return bound

    @property
    def certificates(self) -> Certificates | None:
        """What TLS is served with."""
        return self._entries.certificates

    def held(self, delivery_bytes: int) -> Held:
        """What clients hold."""
        return Held(
            connections=sum(self.connections.held.values()),
            connections_max=self.connections.most,
            calls=sum(self.calls.held.values()),
            calls_max=self.calls.most,
            delivery_bytes=delivery_bytes,
            delivery_bytes_max=DELIVERY_BYTES_MAX,
        )

    def watches(self) -> Sequence[Service]:
        """The tasks that must run while the doors are open, with their names."""
        self._sockets = SocketKeeper(self._addresses, self._note)
        arrivals = ArrivalWatch(
            (self.calls, self._questions),
            (self.connections, self._reserve),
            self._note,
            self._known_bytes,
        )
        return (
            ("clogged sockets", SlowConsumerWatch(self._addresses, self._note).run),
            ("connections", self.connections.run),
            ("connections of operators", self._reserve.run),
            ("messages on their way", arrivals.run),
            ("logins", LoginWatch(self.calls, self._entries.access).run),
            ("names of sockets", self._sockets.run),
            *self._watched_certificates(),
        )

    def _watched_certificates(self) -> Sequence[Service]:
        certificates = self._entries.certificates
        return () if certificates is None else (("certificates", certificates.run),)

    async def start(self) -> None:
        """Answer calls; the health is not serving yet."""
        await self._operators.start()
        for server in self._clients.values():
            await server.start()

    async def serving(self) -> None:
        """Let the health service say that this daemon takes work."""
        await self._operators.serving()
        for server in self._clients.values():
            await server.serving()

    async def drain(self) -> None:
        """Let the health service say, for good, that this daemon takes no more work."""
        for server in self._clients.values():
            await server.drain()
        await self._operators.drain()

    async def stop(self, grace_s: float | None) -> None:
        """Take no new calls; cancel those that have not ended after the grace, if any."""
        self._sockets.let_go()
        async with asyncio.TaskGroup() as tasks:
            for server in (*self._clients.values(), self._operators):
                tasks.create_task(server.stop(grace_s), name="stop a server")
