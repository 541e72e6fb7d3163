"""The guard around every call: it authenticates and authorizes the caller, audits the call, and
turns errors into statuses.

This is the only place where conditions become gRPC statuses. A servicer raises a `DssError` and is
done. Any other exception, except its own cancellation, is a programmer's error. It stops the
daemon, because the state of memory is unknown then. Only if the method moves no records and the
core did not raise the error, the error ends just its call (`dssd.supervision.containment`).

The guard drives streaming handlers itself, so that the generator of an answer is closed at once, in
its own task, when the peer goes away. It also reads the requests itself, single ones as streams of
one, which look the same on the wire: gRPC would wait for a message forever and hold the part that
has arrived.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from dss_core.errors import DiskFailed, DssError, LoginRefused, MessageUnreadable
from dssd.access.access import Login
from dssd.access.permissions import Role
from dssd.descriptors import shortage_in
from dssd.events.kinds import LOGIN_REFUSED
from dssd.events.model import Event, Note, unheard
from dssd.exception_groups import condition_in
from dssd.rpc.audit import Audit
from dssd.rpc.calls import LOST, Calls, OpenCall
from dssd.rpc.entry import OPEN_TO_ALL, Entry
from dssd.rpc.errors import abort
from dssd.rpc.permits import Checked
from dssd.rpc.principal import (
    METHOD_ROLES,
    has_role,
    login_of,
    note_login,
    note_payer,
    require,
)
from dssd.supervision.containment import contain, is_the_cores

if TYPE_CHECKING:  # gRPC's own class cannot be subscripted when it runs
    MethodHandler = grpc.RpcMethodHandler[Any, Any]

Context = grpc.aio.ServicerContext[Any, Any]
Handler = Callable[[Any, Any], Any]
Crash = Callable[[BaseException], None]

FIRST_SENT_S = 0.5
"""How long a denied call waits for the first message of its client, which is on its way."""

_BESIDE_THE_CORE = frozenset({Role.READ, Role.OPERATE, Role.ADMIN})
"""Methods of these roles query and change; the other roles move records."""


class Guard(grpc.aio.ServerInterceptor):
    """Wraps the handler of every method, once."""

    def __init__(
        self,
        crash: Crash,
        audit: Audit,
        calls: Calls,
        roles: frozenset[Role],
        note: Note = unheard,
        entry: Entry = OPEN_TO_ALL,
    ) -> None:
        self._crash = crash
        self._note = note
        self._audit = audit
        self._calls = calls
        self._roles = roles
        """What is served here at all."""
        self._logins = entry.logins
        self._permits = entry.permits
        self._wrapped: dict[str, MethodHandler] = {}
        """By method; bounded by the methods that are served."""

    async def intercept_service(
        self,
        continuation: "Callable[[grpc.HandlerCallDetails], Awaitable[MethodHandler | None]]",
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "MethodHandler | None":
        """The guarded handler of the method that is called."""
        method = handler_call_details.method
        wrapped = self._wrapped.get(method)
        if wrapped is not None:
            return wrapped
        handler = await continuation(handler_call_details)
        if handler is None:  # gRPC answers UNIMPLEMENTED
            return handler
        self._wrapped[method] = self._wrap(method, handler)
        return self._wrapped[method]

    def _wrap(self, method: str, handler: "MethodHandler") -> "MethodHandler":
        make, behaviour = _parts(handler)
        inner = _streaming(behaviour) if handler.response_streaming else behaviour
        decode = _decoder(handler.request_deserializer)

        async def allowed(request: Any, context: Context) -> object:  # noqa: ANN401 - of any method
            login = login_of(context)
            if not handler.request_streaming:
                request = decode(request)
            check = None if self._permits is None else self._permits.check_of(method, login)
            if check is None or METHOD_ROLES.get(method) not in self._roles:
                require(login.principal, method, self._roles)
                return await inner(request, context)
            assert self._permits is not None, "it made the check"
            if not has_role(login.principal, method):
                first = await anext(request, None) if handler.request_streaming else request
                raise self._permits.role_denial(method, login.principal, first)
            if handler.request_streaming:
                return await inner(Checked(request, check), context)
            check(request)
            answer = await inner(request, context)
            return self._permits.trimmed(method, login.principal, answer)

        watched = self._audit.watched(method, decode, allowed)

        async def guarded(_: object, context: Context) -> object:
            call: OpenCall | None = None
            try:
                login = self._login(context)
                note_login(login)
                with self._calls.open(context, login) as call:
                    note_payer(call.peer)
                    async with call.while_allowed():
                        request = call if handler.request_streaming else await call.only()
                        return await watched(request, context)
            except (asyncio.CancelledError, grpc.aio.AbortError):
                raise
            except BaseException as error:
                condition = condition_in(error) or shortage_in(error)
                condition = condition or self._contained(method, error)
                if condition is None or isinstance(condition, DiskFailed):
                    self._crash(condition or error)
                    raise
                await _first_sent(context, call)
                await _abort(context, condition)
                return None

        wrapped: MethodHandler = make(
            guarded,
            # The audit reads a single request by itself.
            request_deserializer=decode if handler.request_streaming else None,
            response_serializer=_encoder(handler.response_serializer),
        )
        return wrapped

    def _login(self, context: Context) -> Login:
        try:
            return self._logins.login(context)
        except LoginRefused as refused:
            address, reason = context.peer().rpartition(":")[0], refused.fields["reason"]
            sentence = f"A call was refused: {reason}."
            self._note(Event(LOGIN_REFUSED, address, sentence, {"reason": reason}))
            raise

    def _contained(self, method: str, error: BaseException) -> DssError | None:
        """The condition of an error that ends its call alone; None: it ends the daemon."""
        if METHOD_ROLES.get(method) not in _BESIDE_THE_CORE or is_the_cores(error):
            return None
        assert isinstance(error, Exception)
        return contain(f"call {method.rpartition('.')[2]}", error, self._note)


async def _first_sent(context: Context, call: OpenCall | None) -> None:
    """Wait for the first message of a client, unless it has arrived.

    If it crosses with the end of the call, the client's gRPC loses the status of the call.
    """
    if call is not None and call.has_heard:
        return
    with suppress(TimeoutError, *LOST):
        async with asyncio.timeout(FIRST_SENT_S):
            await context.read()


async def _abort(context: Context, condition: DssError) -> None:
    # Nobody is left to be told where the connection goes before the status has left. gRPC ends
    # the call quietly as one that was aborted, but only if this error does not reach it.
    with suppress(grpc.aio.InternalError):
        await abort(context, condition)


def _parts(handler: "MethodHandler") -> tuple[Callable[..., Any], Handler]:
    """The kind of the handler, and its behaviour. A single request is read as a stream of one."""
    match handler.request_streaming, handler.response_streaming:
        case False, False:
            return grpc.stream_unary_rpc_method_handler, _present(handler.unary_unary)
        case False, True:
            return grpc.stream_stream_rpc_method_handler, _present(handler.unary_stream)
        case True, False:
            return grpc.stream_unary_rpc_method_handler, _present(handler.stream_unary)
        case _:
            return grpc.stream_stream_rpc_method_handler, _present(handler.stream_stream)


def _present(behaviour: Handler | None) -> Handler:
    assert behaviour is not None, "a handler without the behaviour of its kind"
    return behaviour


def _decoder(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
    """The deserialiser of a method, which raises a condition where it cannot read."""
    assert deserialize is not None, "a method without a deserialiser"

    def decode(message: bytes) -> Any:  # noqa: ANN401 - the message of any method
        try:
            return deserialize(message)
        except DecodeError as error:
            name = getattr(deserialize, "__qualname__", "its message").removesuffix(".FromString")
            raise MessageUnreadable(message=name, reason=error) from error

    return decode


def _encoder(serialize: Callable[[Any], bytes] | None) -> Callable[[Any], bytes]:
    """The serialiser of a method, which leaves alone what is bytes already."""
    assert serialize is not None, "a method without a serialiser"

    def encode(message: Any) -> bytes:  # noqa: ANN401 - the message of any method
        return message if isinstance(message, bytes) else serialize(message)

    return encode


def _streaming(behaviour: Handler) -> Handler:
    async def stream(request: object, context: Context) -> None:
        replies = behaviour(request, context)
        if not hasattr(replies, "__aiter__"):  # it writes to the context by itself
            await replies
            return
        async with aclosing(replies):
            async for reply in replies:
                try:
                    await context.write(reply)
                except (grpc.aio.InternalError, grpc.aio.UsageError):
                    return  # the peer is gone: nobody is left to be told

    return stream
