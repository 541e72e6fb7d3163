"""The servicer of `Sessions`: one call of `Attach` is one connection of a session.

Three tasks: one reads the client's items, one writes the items for it, one runs the session. The
call ends when the client is gone, when it has sent its last item, or when the session was ended;
then the session is detached at once, whatever the reason was.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import grpc
import grpc.aio

from dss_api.v1 import sessions_pb2, sessions_pb2_grpc
from dss_api.values import message_of
from dss_core.errors import DssError, NotOpened, TimedOut
from dssd.loop_yield import LoopTurn
from dssd.machines.delivery.events import Deliver
from dssd.rpc.origin import is_local, peer_of
from dssd.rpc.principal import login_of
from dssd.rpc.session_items import encoded, items_from, opening_from, refused
from dssd.sessions.client_items import Bundle
from dssd.sessions.listing import SessionView
from dssd.sessions.session import Session
from dssd.sessions.sessions import Sessions

SESSION_FAREWELL_S = 2.0
"""Time for sending the last items of an ended session. A client that no longer reads must not hold
its call."""


SESSION_OPEN_WAIT_S = 30.0
"""A call that does not open its session for this long is ended."""


SESSIONS_LISTED_MAX = 2_000
"""Sessions in one answer: some 600 KiB with the longest names; a caller asks for the next page."""


Context = grpc.aio.ServicerContext[Any, Any]
Requests = AsyncIterator[sessions_pb2.SessionUp]


class SessionsServicer(sessions_pb2_grpc.SessionsServicer):
    """Decodes, calls the session, encodes."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._attached: dict[Context, Session] = {}

    def attached(self) -> list[tuple[Context, Session]]:
        """The calls of connected clients, and their sessions."""
        return list(self._attached.items())

    async def Attach(  # type: ignore[override] # it writes to the context; the stub says iterator
        self, request_iterator: Requests, context: Context
    ) -> None:
        """Connect the client to its session."""
        try:
            async with asyncio.timeout(SESSION_OPEN_WAIT_S):
                session = await self._open(request_iterator, context)
        except TimeoutError:
            error = TimedOut(what="Opening the session", seconds=SESSION_OPEN_WAIT_S)
            await _write(context, refused(error, final=True))
            return
        if session is None:
            return
        self._attached[context] = session
        try:
            await self._serve(session, request_iterator, context)
        finally:
            del self._attached[context]
            self._sessions.detach(session)

    async def List(
        self, request: sessions_pb2.ListSessionsRequest, context: Context
    ) -> sessions_pb2.ListSessionsReply:
        """A page of all sessions, by client id."""
        limit = min(request.limit or SESSIONS_LISTED_MAX, SESSIONS_LISTED_MAX)
        views = await self._sessions.listed(request.after_client_id, limit + 1)
        return sessions_pb2.ListSessionsReply(
            sessions=map(summary_message, views[:limit]), more=len(views) > limit
        )

    async def _open(self, requests: Requests, context: Context) -> Session | None:
        """The session that the client opens; None where it went away without one."""
        async for message in requests:
            if message.WhichOneof("item") != "open":
                if not await _write(context, refused(NotOpened())):
                    return None
                continue
            try:
                login = login_of(context)
                payer = login.principal.name if login.key else ""
                opening = opening_from(message.open, login.principal.name)
                whence = replace(
                    opening, payer=payer, peer=peer_of(context), is_local=is_local(context)
                )
                return await self._sessions.attach(whence)
            except DssError as error:
                await _write(context, refused(error, final=True))
                return None
        return None

    async def _serve(self, session: Session, requests: Requests, context: Context) -> None:
        name = session.client_id
        line = _Line(context)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(session.run(), name=f"session {name}")
            reading = tasks.create_task(_read_items(session, requests), name=f"read {name}")
            writing = tasks.create_task(_write_items(session, line), name=f"write {name}")
            ends = (running, reading, writing)
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            session.left = await _has_left(reading, line)
            self._sessions.detach(session)
            # A live client still gets the queued items, the reason of the end among them.
            await asyncio.wait((writing,), timeout=SESSION_FAREWELL_S)
            for task in (reading, writing):
                task.cancel()


class _Line:
    """Sends items to one client, one at a time, as gRPC requires."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._turn = asyncio.Lock()

    async def write(self, message: sessions_pb2.SessionDown | bytes) -> bool:
        """Send an item; False where the connection is lost."""
        async with self._turn:
            return await _write(self._context, message)


async def _has_left(reading: asyncio.Task[bool], line: _Line) -> bool:
    """Whether the client ended its side of the call and is still alive.

    For gRPC the end of a killed client looks like a last item. But then the call accepts no more
    items: it is cancelled, or sending an item without a kind fails.
    """
    if not reading.done() or reading.cancelled() or reading.exception() or not reading.result():
        return False
    with suppress(TimeoutError):
        async with asyncio.timeout(SESSION_FAREWELL_S):
            return await line.write(sessions_pb2.SessionDown())
    return True  # it does not read, but its connection is intact


def summary_message(view: SessionView) -> sessions_pb2.SessionSummary:
    """A session on the wire."""
    return message_of(
        sessions_pb2.SessionSummary,
        view,
        expiry_s=view.expiry_ms // 1_000,
        private_subscriptions=view.private,
    )


async def _read_items(session: Session, requests: Requests) -> bool:
    """Handle the client's items; returns whether it ended its side of the call without a
    violation."""
    try:
        async for message in requests:
            await _take(session, message)
    except DssError as denied:
        # Send the error as an item: an abort during another send may lose it.
        session.stop(denied)
        return False
    return True


async def _take(session: Session, message: sessions_pb2.SessionUp) -> None:
    try:
        items = items_from(message)
    except DssError as error:
        session.refuse(error)
        return
    turn = LoopTurn()
    for item in items:
        await session.take(item)
        await turn.give_way()


async def _write_items(session: Session, line: _Line) -> None:
    try:
        while (message := await _next_message(session)) is not None:
            if not await line.write(message):
                return
    finally:
        session.outgoing.written()


async def _next_message(session: Session) -> sessions_pb2.SessionDown | bytes | None:
    # Drop the item here: while a client does not read, its bytes would be held twice.
    item = await session.next_item()
    if isinstance(item, Deliver | Bundle):
        session.note_sent(item)
    return None if item is None else encoded(item)


async def _write(context: Context, message: sessions_pb2.SessionDown | bytes) -> bool:
    """Send an item; False where the connection is lost."""
    try:
        await context.write(message)
    except (asyncio.InvalidStateError, grpc.aio.InternalError, grpc.aio.UsageError):
        return False
    return True
