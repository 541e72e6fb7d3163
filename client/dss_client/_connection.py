"""The connection to one daemon: its channel, its options, and what its failures mean.

Invariant: no gRPC error leaves this module; callers see `DssError`.
"""

import asyncio
import os
from collections.abc import Awaitable
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar, cast

import grpc
import grpc.aio

from dss_api.v1 import types_pb2
from dss_client._channel import channel_to, way_of
from dss_client._credentials import NOTHING_TO_SHOW, Credentials
from dss_client._endpoint import Endpoint
from dss_client._forks import the_forks
from dss_client._outages import Outages
from dss_client._ways import Ways
from dss_client.late_daemon import late
from dss_client.limits import CALL_TIMEOUT_S
from dss_core.errors import (
    CallUnknown,
    ClientClosed,
    DaemonNotTrusted,
    DssError,
    OutcomeUnknown,
    Overloaded,
    PermissionDenied,
    UnknownCondition,
    Unreachable,
    from_wire,
)
from dss_core.limits import MESSAGE_BYTES_MAX, METADATA_BYTES_MAX

if TYPE_CHECKING:
    from dss_api.v1 import (
        access_pb2_grpc,
        backups_pb2_grpc,
        daemon_pb2_grpc,
        events_pb2_grpc,
        groups_pb2_grpc,
        jobs_pb2_grpc,
        log_pb2_grpc,
        operations_pb2_grpc,
        queues_pb2_grpc,
        schedules_pb2_grpc,
        sessions_pb2_grpc,
        topics_pb2_grpc,
        watch_pb2_grpc,
    )

CONNECT_WAIT_MS = 60_000
"""Longer than `CALL_TIMEOUT_S`: a daemon that is there but does not answer is late, not
unreachable."""


CHANNEL_BACKOFF_MS = 100
CHANNEL_BACKOFF_MAX_MS = 300
"""Shorter than our own pauses, so that these decide."""


ERROR_METADATA_KEY = "dss-error-bin"

CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.initial_reconnect_backoff_ms", CHANNEL_BACKOFF_MS),
    # Despite its name, it is how long an attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", CONNECT_WAIT_MS),
    ("grpc.max_reconnect_backoff_ms", CHANNEL_BACKOFF_MAX_MS),
    ("grpc.enable_http_proxy", 0),
    # Otherwise it would take over from other channels of this process that nobody is there.
    ("grpc.use_local_subchannel_pool", 1),
)

Request = TypeVar("Request")
Answer = TypeVar("Answer")
Up = TypeVar("Up")
Down = TypeVar("Down")


class ConnectionLostError(Exception):
    """A streaming call is over; `reason` says why. It stays inside this package."""

    def __init__(self, reason: DssError) -> None:
        super().__init__(reason)
        self.reason = reason


def _channel_options() -> tuple[tuple[str, int | str], ...]:
    # The daemon finds the process among its peers, so that its audit can name it.
    return (*CHANNEL_OPTIONS, ("grpc.primary_user_agent", f"dss-client pid/{os.getpid()}"))


class Connection:
    """One channel to one daemon, with the stubs of its services made on first use."""

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: Credentials = NOTHING_TO_SHOW,
        *,
        patient: bool = True,
    ) -> None:
        the_forks.opening()
        self.endpoint = endpoint
        self._is_closed = False
        self._ways = Ways(len(endpoint.ways))
        self.outages = Outages(endpoint.text, patient=patient, ways=self._ways)
        self._dialled = channel_to(endpoint, credentials, _channel_options(), self._ways)

    async def close(self) -> None:
        """End every call that is still open; none begins any more."""
        self._is_closed = True
        made = [
            name for name in vars(self) if isinstance(getattr(Connection, name, 0), cached_property)
        ]
        for stub in made:
            delattr(self, stub)
        await self._dialled.close()

    @property
    def _channel(self) -> grpc.aio.Channel:
        """That stubs are made on.

        Raises:
            ClientClosed: nothing is called any more.
        """
        self.refuse_closed()
        return self._dialled

    @cached_property
    def access(self) -> "access_pb2_grpc.AccessStub":
        """Stub of the service Access."""
        from dss_api.v1.access_pb2_grpc import AccessStub

        return AccessStub(self._channel)

    @cached_property
    def backups(self) -> "backups_pb2_grpc.BackupsStub":
        """Stub of the service Backups."""
        from dss_api.v1.backups_pb2_grpc import BackupsStub

        return BackupsStub(self._channel)

    @cached_property
    def topics(self) -> "topics_pb2_grpc.TopicsStub":
        """Stub of the service Topics."""
        from dss_api.v1.topics_pb2_grpc import TopicsStub

        return TopicsStub(self._channel)

    @cached_property
    def groups(self) -> "groups_pb2_grpc.GroupsStub":
        """Stub of the service Groups."""
        from dss_api.v1.groups_pb2_grpc import GroupsStub

        return GroupsStub(self._channel)

    @cached_property
    def grants(self) -> "groups_pb2_grpc.GrantsStub":
        """Stub of the service Grants."""
        from dss_api.v1.groups_pb2_grpc import GrantsStub

        return GrantsStub(self._channel)

    @cached_property
    def daemon(self) -> "daemon_pb2_grpc.DaemonStub":
        """Stub of the service Daemon."""
        from dss_api.v1.daemon_pb2_grpc import DaemonStub

        return DaemonStub(self._channel)

    @cached_property
    def events(self) -> "events_pb2_grpc.EventsStub":
        """Stub of the service Events."""
        from dss_api.v1.events_pb2_grpc import EventsStub

        return EventsStub(self._channel)

    @cached_property
    def jobs(self) -> "jobs_pb2_grpc.JobsStub":
        """Stub of the service Jobs."""
        from dss_api.v1.jobs_pb2_grpc import JobsStub

        return JobsStub(self._channel)

    @cached_property
    def operations(self) -> "operations_pb2_grpc.OperationsStub":
        """Stub of the service Operations."""
        from dss_api.v1.operations_pb2_grpc import OperationsStub

        return OperationsStub(self._channel)

    @cached_property
    def queues(self) -> "queues_pb2_grpc.QueuesStub":
        """Stub of the service Queues."""
        from dss_api.v1.queues_pb2_grpc import QueuesStub

        return QueuesStub(self._channel)

    @cached_property
    def schedules(self) -> "schedules_pb2_grpc.SchedulesStub":
        """Stub of the service Schedules."""
        from dss_api.v1.schedules_pb2_grpc import SchedulesStub

        return SchedulesStub(self._channel)

    @cached_property
    def log(self) -> "log_pb2_grpc.LogStub":
        """Stub of the service Log."""
        from dss_api.v1.log_pb2_grpc import LogStub

        return LogStub(self._channel)

    @cached_property
    def sessions(self) -> "sessions_pb2_grpc.SessionsStub":
        """Stub of the service Sessions."""
        from dss_api.v1.sessions_pb2_grpc import SessionsStub

        return SessionsStub(self._channel)

    @cached_property
    def watch(self) -> "watch_pb2_grpc.WatchStub":
        """Stub of the service Watch."""
        from dss_api.v1.watch_pb2_grpc import WatchStub

        return WatchStub(self._channel)

    async def ask(
        self, method: "grpc.aio.UnaryUnaryMultiCallable[Request, Answer]", request: Request
    ) -> Answer:
        """Ask something that changes nothing; it is repeated while a known daemon is away.

        Raises:
            DssError: the daemon's error, or why it cannot be reached.
        """
        return await self.outages.over(partial(self._once, method, request), repeats=True)

    async def change(
        self, method: "grpc.aio.UnaryUnaryMultiCallable[Request, Answer]", request: Request
    ) -> Answer:
        """Ask for a change; it is repeated only if it was certainly not made.

        Raises:
            OutcomeUnknown: the connection was lost before the answer came.
            DssError: the daemon's error, or why it cannot be reached.
        """
        return await self.outages.over(partial(self._once, method, request), repeats=False)

    async def _once(
        self, method: "grpc.aio.UnaryUnaryMultiCallable[Request, Answer]", request: Request
    ) -> Answer:
        self.refuse_closed()
        return await self.answer(method(request, timeout=CALL_TIMEOUT_S))

    def refuse_closed(self) -> None:
        """See that calls can be made.

        Raises:
            ClientClosed: not any more.
        """
        if self._is_closed:
            raise ClientClosed

    async def answer(self, call: Awaitable[Answer]) -> Answer:
        """Await a unary call, made once.

        Raises:
            DssError: the daemon's error, or why it cannot be reached.
        """
        try:
            answer = await call
        except grpc.aio.AioRpcError as error:
            raise self._lost(call, error) from error
        self.outages.heard()
        return answer

    async def read(self, call: "grpc.aio.StreamStreamCall[Up, Down]") -> Down:
        """The next item of a call that does not end by itself.

        Raises:
            ConnectionLostError: the call is over.
        """
        item = await self.read_or_end(call)
        if item is None:
            raise ConnectionLostError(self._cut())
        return item

    async def read_or_end(
        self, call: "grpc.aio.StreamStreamCall[Up, Down] | grpc.aio.UnaryStreamCall[Up, Down]"
    ) -> Down | None:
        """The next item of a call; None at its end.

        Raises:
            ConnectionLostError: the call has failed.
        """
        try:
            item = await call.read()
        except grpc.aio.AioRpcError as error:
            raise ConnectionLostError(self._lost(call, error)) from error
        except asyncio.CancelledError as error:
            self._raise_unless_ours(error)
            raise
        if item is grpc.aio.EOF:
            return None
        self.outages.heard()
        return cast("Down", item)

    async def write(self, call: "grpc.aio.StreamStreamCall[Up, Down]", item: Up) -> None:
        """Send an item over a call.

        Raises:
            ConnectionLostError: the call is over; nobody knows whether the item arrived.
        """
        try:
            await call.write(item)
        except grpc.aio.AioRpcError as error:
            raise ConnectionLostError(self._lost(call, error)) from error
        except asyncio.InvalidStateError as error:
            # What gRPC raises for a call that has ended already.
            raise ConnectionLostError(self._cut()) from error
        except asyncio.CancelledError as error:
            self._raise_unless_ours(error)
            raise

    def _raise_unless_ours(self, error: asyncio.CancelledError) -> None:
        """A call that its peer cancelled is reported as if this task had been cancelled."""
        task = asyncio.current_task()
        if task is not None and not task.cancelling():
            raise ConnectionLostError(self._cut()) from error

    def _cut(self) -> DssError:
        """Why a call ended that nobody gave a reason for."""
        return ClientClosed() if self._is_closed else OutcomeUnknown()

    def _lost(self, call: object, error: grpc.aio.AioRpcError) -> DssError:
        """The error of a failed call; if nobody answered, the next call takes another way."""
        condition = self.translated(error)
        if isinstance(condition, Unreachable):
            self._ways.lost(way_of(self._dialled, call))
        return condition

    def translated(self, error: grpc.aio.AioRpcError) -> DssError:
        """The error of a failed call."""
        for key, value in error.trailing_metadata() or ():
            if key == ERROR_METADATA_KEY and isinstance(value, bytes):
                self.outages.heard()
                return error_from_wire(types_pb2.Error.FromString(value))
        if self._is_closed:
            return ClientClosed()
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return CallUnknown(endpoint=self.endpoint.text)
        return self._of_status(error.code(), error.details() or "")

    def _of_status(self, status: grpc.StatusCode, details: str) -> DssError:
        """The error of a failed call for which the daemon named no condition."""
        match status:
            case grpc.StatusCode.UNAVAILABLE if _never_left(details):
                return self._not_reached(details)
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return late(self.endpoint.text, what="The call", seconds=CALL_TIMEOUT_S)
            case grpc.StatusCode.RESOURCE_EXHAUSTED if not _too_large(details):
                return Overloaded(what="The daemon, or the way to it,", limit="its own")
            case grpc.StatusCode.PERMISSION_DENIED | grpc.StatusCode.UNAUTHENTICATED:
                how = "What lies between this client and the daemon refused it"
                return PermissionDenied(
                    principal="this client", action="make this call", role="?", how=how
                )
            case (
                grpc.StatusCode.UNAVAILABLE
                | grpc.StatusCode.INTERNAL
                | grpc.StatusCode.UNKNOWN
                | grpc.StatusCode.CANCELLED
            ):
                return OutcomeUnknown()
            case _:
                return UnknownCondition(code=status.name, text=details)

    def _not_reached(self, details: str) -> DssError:
        text = self.endpoint.text
        if self.endpoint.tls and any(sign in details for sign in _UNTRUSTED):
            return DaemonNotTrusted(endpoint=text, reason=_untrusted(details))
        return Unreachable(endpoint=text)


def error_from_wire(error: types_pb2.Error) -> DssError:
    """The condition in an error item of the wire."""
    return from_wire(error.code, dict(error.fields), error.message)


_HANDSHAKE = "handshake failed"
_UNTRUSTED = (_HANDSHAKE, "verification check failed")
"""The two sources of certificate errors: the TLS library, and gRPC itself."""
_REASONS = {
    "unable to get local issuer certificate": "nobody that is trusted signed its certificate",
    "self-signed certificate": "nobody that is trusted signed its certificate",
    "certificate has expired": "its certificate has expired",
    "certificate is not yet valid": "its certificate is not valid yet",
    "Hostname Verification": "its certificate is for another name",
    "WRONG_VERSION_NUMBER": "it does not speak TLS there",
}


def _untrusted(details: str) -> str:
    """Why there is no TLS, in our words where we know it."""
    known = (reason for sign, reason in _REASONS.items() if sign in details)
    return next(known, details.rpartition(_HANDSHAKE)[2].strip(" ()"))


def _too_large(details: str) -> bool:
    """Whether a message was over the transport's limit: trying again cannot help."""
    return "larger than max" in details


def _never_left(details: str) -> bool:
    """Whether the transport says that no connection was made, so that the daemon did nothing."""
    said = details.lower()
    signs = ("failed to connect", "connection refused", "dns resolution failed", "errors resolving")
    return any(sign in said for sign in signs)
