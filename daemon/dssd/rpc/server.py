"""The gRPC server: its options, its addresses, and the order in which it stops.

Invariant: nothing is served before the caller says so, and an address is bound only if nobody else
listens there. gRPC itself would silently bind a unix socket over that of a running daemon.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from dss_core.errors import AddressInUse
from dss_core.limits import MESSAGE_BYTES_MAX, METADATA_BYTES_MAX
from dssd import limits
from dssd.access.permissions import ALL_ROLES, Role
from dssd.addresses import Address, TcpAddress
from dssd.events.model import Note, unheard
from dssd.rpc.audit import Audit
from dssd.rpc.calls import Calls
from dssd.rpc.entry import OPEN_TO_ALL, Entry
from dssd.rpc.guard import Guard
from dssd.rpc.limits import HANDSHAKE_TIMEOUT_MS

CONNECTION_IDLE_MS = 60_000
"""A connection without a call is ended after so long; gRPC's clients connect again by
themselves."""

CONCURRENT_STREAMS_MAX = 128
"""Calls per connection. A client needs a handful, and one for each topic that it produces to; more
wait in the client. Each may bring half a message of the largest size, 4 MiB."""

PEER_PING_INTERVAL_MIN_MS = 1_000
"""Clients ping every 2 s; a peer that pings faster than this is told to go away."""


OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.max_concurrent_streams", CONCURRENT_STREAMS_MAX),
    ("grpc.keepalive_time_ms", limits.KEEPALIVE_TIME_MS),
    ("grpc.http2.ping_timeout_ms", limits.PING_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", PEER_PING_INTERVAL_MIN_MS),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_TIMEOUT_MS),
    ("grpc.max_connection_idle_ms", CONNECTION_IDLE_MS),
)

CONNECTIONS_OPTION = "grpc.max_allowed_incoming_connections"

SERVICES = (
    "dss_api.v1.Daemon",
    "dss_api.v1.Events",
    "dss_api.v1.Topics",
    "dss_api.v1.Groups",
    "dss_api.v1.Grants",
    "dss_api.v1.Log",
    "dss_api.v1.Sessions",
    "dss_api.v1.Operations",
    "dss_api.v1.Watch",
    "dss_api.v1.Schedules",
    "dss_api.v1.Jobs",
    "dss_api.v1.Queues",
    "dss_api.v1.Access",
    "dss_api.v1.Backups",
)
"""Services with a health status of their own; the empty name is the whole server."""

Register = Callable[[grpc.aio.Server], None]

_HEALTH = health_pb2.HealthCheckResponse


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much a server takes."""

    connections_max: int = limits.CONNECTIONS_MAX
    calls_max: int = limits.CONCURRENT_CALLS_MAX


class _Health(health_aio.HealthServicer):  # type: ignore[misc] # the library has no types
    """The library's, with the method that it lacks: its `NotImplementedError` is no refusal, but
    a programmer's error, and would stop the daemon.
    """

    async def List(
        self, request: health_pb2.HealthListRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> health_pb2.HealthListResponse:
        """The health of every service."""
        names = ("", *SERVICES)
        asked = {name: health_pb2.HealthCheckRequest(service=name) for name in names}
        statuses = {name: await self.Check(each, context) for name, each in asked.items()}
        return health_pb2.HealthListResponse(statuses=statuses)


class RpcServer:
    """One gRPC server on all addresses. `crash` is told of every programmer's error in a call
    that ends the daemon.

    Each address takes so many connections and closes what comes beyond. A method whose role is not
    among these is refused. All of its addresses share one `Entry`, because gRPC asks either every
    client of a server for a certificate, or none.
    """

    def __init__(
        self,
        registers: Sequence[Register],
        crash: Callable[[BaseException], None],
        audit: Audit,
        calls: Calls,
        capacity: Capacity = Capacity(),
        *,
        roles: frozenset[Role] = ALL_ROLES,
        note: Note = unheard,
        entry: Entry = OPEN_TO_ALL,
    ) -> None:
        self._credentials = entry.credentials
        self._server = grpc.aio.server(
            interceptors=(Guard(crash, audit, calls, roles, note, entry),),
            options=(*OPTIONS, (CONNECTIONS_OPTION, capacity.connections_max)),
            maximum_concurrent_rpcs=capacity.calls_max,
        )
        self._health = _Health()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        for register in registers:
            register(self._server)

    def bind(self, addresses: Sequence[Address]) -> tuple[Address, ...]:
        """Take all addresses; returns them with the ports that were chosen for port 0.

        Raises:
            AddressInUse: another process listens there, or it is not allowed.
        """
        return tuple(self._bind(address) for address in addresses)

    async def start(self) -> None:
        """Answer calls; the health is not serving yet."""
        await self._tell_health(_HEALTH.NOT_SERVING)
        await self._server.start()

    async def serving(self) -> None:
        """Let the health service say that this daemon takes work."""
        await self._tell_health(_HEALTH.SERVING)

    async def drain(self) -> None:
        """Let the health service say, for good, that this daemon takes no more work."""
        await self._health.enter_graceful_shutdown()

    async def stop(self, grace_s: float | None) -> None:
        """Take no new calls; cancel those that have not ended after the grace, if any."""
        await self._server.stop(grace_s)

    def _bind(self, address: Address) -> Address:
        address.clear_stale()
        try:
            if self._credentials is None:
                port = self._server.add_insecure_port(address.target)
            else:
                port = self._server.add_secure_port(address.target, self._credentials)
        except RuntimeError as error:
            raise AddressInUse(address=address, reason=_first_line(error)) from error
        if port == 0:
            raise AddressInUse(address=address, reason="it could not be bound")
        return replace(address, port=port) if isinstance(address, TcpAddress) else address

    async def _tell_health(self, status: "health_pb2.HealthCheckResponse.ServingStatus") -> None:
        for service in ("", *SERVICES):
            await self._health.set(service, status)


def _first_line(error: BaseException) -> str:
    """Without gRPC's advice to its developers, which is behind a semicolon."""
    return (str(error).splitlines() or [""])[0].partition("; set GRPC_")[0]
